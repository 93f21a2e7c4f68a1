# SPDX-License-Identifier: MIT
"""Other simulators, asked for the same work in environments of their own (bench/peers)."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedlab import trace
from schedlab.base.host.interpreter import PYTHON
from schedlab.base.toolchain.build import SIMULATOR
from schedlab.base.toolchain.policies import STANDARD
from schedlab.errors import MachineUnfit
from schedlab.metrics import compute
from schedlab.paths import ROOT, in_caches
from schedlab_tools.benchmarks.simulator_speed import printed

Ends = tuple[float | None, ...]
"""The times at which processes ended, in units; None: a process never ended."""

FOLDER = ROOT / "bench" / "peers"
RUNNER = FOLDER / "run.py"
PEERS = {
    "os-simulator": (1,),
    "cpu-scheduler": (1,),
    "cpusched-ash-win-cpu": (1,),
    "vance": (1,),
    "simso": (1, 4),
}
"""Packages of PyPI, with the numbers of CPUs that each can have."""
_LIMIT_SECONDS = 600
_UNIT_NS = 1_000_000
TIE = ((0, 4), (2, 4))
GAP = ((0, 4), (10, 4))
"""Arrival and run time of two processes, in units; the slice is 2. As in bench/peers/run.py."""
_TIES: dict[Ends, str] = {(6, 8): "AABBAABB", (4, 8): "AAAABBBB"}
_GAP_ENDS = (4, 14)


@dataclass(frozen=True)
class Peer:
    """What one of them answered; `failure` says why it did not."""

    name: str
    cpus: int
    per_second: float | None = None
    """Decisions, of CPU time of one core."""
    tie: Ends = ()
    gap: Ends = ()
    failure: str = ""

    @property
    def schedule_of_tie(self) -> str:
        """The task that runs at each time in the case TIE; the schedule is one of two, or a
        mistake."""
        return _TIES.get(self.tie, "neither") if self.tie else ""

    @property
    def remark(self) -> str:
        """What the case GAP shows, for which there is one right answer."""
        if self.failure:
            return self.failure
        if None in self.gap:
            return "loses a task that arrives when none is left"
        if self.gap != _GAP_ENDS:
            ends = " and ".join(f"{end:g}" for end in self.gap if end is not None)
            return f"wrong: tasks that arrive at 0 and 10 and run for 4 end at {ends}"
        return ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "cpus": self.cpus,
            "decisions_per_second": self.per_second,
            "tie": self.schedule_of_tie,
            "remark": self.remark,
        }


def ask(name: str, cpus: int) -> Peer:
    """Installs one of PEERS, if need be, and runs it."""
    try:
        told = answer_of(name, RUNNER, name, cpus, limit_s=_LIMIT_SECONDS)
    except MachineUnfit as error:
        return Peer(name, cpus, failure=str(error).removeprefix(f"{name} "))
    speed = told["speed"]["decisions"] / told["speed"]["seconds"]
    return Peer(name, cpus, speed, tuple(told["tie"]), tuple(told["gap"]))


def answer_of(name: str, runner: Path, *words: object, given: str = "", limit_s: int) -> Any:
    """What a peer answers, read from JSON: a program of bench/peers, in the peer's environment, with these words and
    this input. Raises MachineUnfit if it cannot be installed, fails, or takes longer."""
    try:
        done = subprocess.run(
            [str(word) for word in (environment(name), runner, *words)],
            input=given,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise MachineUnfit(f"{name} takes longer than {limit_s} s") from None
    except subprocess.CalledProcessError as error:
        raise MachineUnfit(f"{name} does not run here: {_last_line(error.stderr)}") from None
    return json.loads(done.stdout)


def _last_line(text: str | None) -> str:
    lines = (text or "").strip().splitlines()
    return lines[-1].strip() if lines else "it says nothing"


def environment(name: str) -> Path:
    """The Python that has the peer, in the cache; made as a whole or not at all."""
    lock = FOLDER / f"{name}.lock"
    key = hashlib.sha256(lock.read_bytes()).hexdigest()[:16]
    place = in_caches(f"peers/{name}-{key}-{sys.version_info.major}.{sys.version_info.minor}")
    if not place.exists():
        with new_folder(place) as folder:
            install(folder, lock)
    return place / "bin" / "python"


@contextmanager
def new_folder(place: Path) -> Iterator[Path]:
    """Becomes `place` when all has gone well."""
    place.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{place.name}.", dir=place.parent))
    try:
        yield folder
        folder.rename(place)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def install(folder: Path, lock: Path) -> None:
    """Installs those versions and no others: pip checks their hashes."""
    clean = {key: text for key, text in os.environ.items() if not key.startswith("PYTHON")}
    python = folder / "bin" / "python"
    for command in (
        [*PYTHON, "-m", "venv", str(folder)],
        [
            str(python),
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
            "--quiet",
            "--require-hashes",
            "-r",
            str(lock),
        ],
    ):
        subprocess.run(
            command, env=clean, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
        )


def ours(per_second: float, cpus: int = 1) -> Peer:
    """Our own simulator on the two cases."""
    return Peer("schedlab", cpus, per_second, ends_of(TIE), ends_of(GAP))


def ends_of(work: tuple[tuple[int, int], ...]) -> Ends:
    """A task that arrives wakes up: a fork would need a parent that is on a CPU just then. Work lacks a
    nanosecond: a task that is done at a tick would have to come back to end, since ticks go first."""
    lines = ["program root", "  group root", "  mark begin"]
    lines += [f"  fork p{index}" for index in range(len(work))]
    lines += ["  wait"] * len(work) + ["  mark end"]
    for index, (arrival, units) in enumerate(work):
        lines += [f"program p{index}", f"  group p{index}"]
        lines += [f"  sleep until {arrival}ms"] * bool(arrival) + [
            f"  run {units * _UNIT_NS - 1}ns"
        ]
    options = ["--policy", STANDARD, "--set", "slice=2", "--tick", str(_UNIT_NS), "--costs", "none"]
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        workload, events = Path(folder) / "workload.txt", Path(folder) / "trace.bin"
        workload.write_text("\n".join(lines) + "\n")
        printed([SIMULATOR, *options, "--trace", events, workload])
        processes = compute(trace.read(events)).processes
    ends = {row["group"]: row["exit_ns"] for row in processes.iter_rows(named=True)}
    return tuple(round(ends[f"p{index}"] / _UNIT_NS, 3) for index in range(len(work)))

# SPDX-License-Identifier: MIT
"""How fast the simulator is on this host, beside what was asked of it and beside other simulators.

The figures are a host's, in CPU time of one core, the least of some rounds: others on the host can
only add to it. What holds everywhere are the ratios of one start."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from schedlab.base.toolchain.build import SIMULATOR, build
from schedlab.errors import SchedlabError
from schedlab.paths import BUILD

SPEED = BUILD / "simulator_speed"
_LINE = re.compile(r"^bench simulator-(\S+) (\d+) ([\d.]+)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Decision:
    """What a decision takes. All processes only compute; round-robin decides at each tick."""

    name: str
    processes: int
    nanoseconds: float

    @property
    def per_second(self) -> float:
        return 1e9 / self.nanoseconds


@dataclass(frozen=True)
class Aim:
    """Something that was asked of the simulator. `most` is met if `value` is not above it."""

    name: str
    value: float
    most: float
    unit: str

    @property
    def verdict(self) -> str:
        return "met" if self.value <= self.most else "not met"

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": self.verdict}


def measure() -> list[Decision]:
    """The program bench/simulator_speed.c, its trace into a file of a folder that goes."""
    build(f"build/{SPEED.name}", "simulator")
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        return decisions(printed([SPEED, Path(folder) / "trace.bin"]))


def decisions(text: str) -> list[Decision]:
    """Reads lines "bench simulator-NAME PROCESSES NANOSECONDS"."""
    found = [Decision(name, int(count), float(time)) for name, count, time in _LINE.findall(text)]
    if not found:
        raise SchedlabError(f"{SPEED} printed no line `bench simulator-NAME PROCESSES NANOSECONDS`")
    return found


def aims(measured: Sequence[Decision], process_bytes: int) -> list[Aim]:
    """What was asked for, and what came out."""
    times = {(one.name, one.processes): one.nanoseconds for one in measured}
    few, many = times["decision", 100], times["decision", 100_000]
    return [
        Aim("a decision, 100 processes, no trace", few, 100, "ns"),
        Aim("the same with a trace, to a file", times["decision-traced", 100], 1000 / 3, "ns"),
        Aim(
            "a decision over a bare loop of pick and enqueue",
            few / times["bare-loop", 100],
            10,
            "times",
        ),
        Aim("a decision with 100,000 processes over one with 100", many / few, 2, "times"),
        Aim("memory for a process, under the policy that needs most", process_bytes, 256, "bytes"),
    ]


def process_bytes(policies: Sequence[str]) -> int:
    """What the simulator says that a process takes, under the policy that needs most."""
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        workload = Path(folder) / "workload.txt"
        workload.write_text("program root\n  run 1ms\n")
        told = [
            count("process_bytes", printed([SIMULATOR, "--policy", policy, "--no-trace", workload]))
            for policy in policies
        ]
    return max(told)


def count(name: str, text: str) -> int:
    """A count in the output of `schedlab-sim`."""
    found = re.search(rf"^{name} (\d+)$", text, re.MULTILINE)
    if not found:
        raise SchedlabError(f"schedlab-sim printed no line `{name} NUMBER`")
    return int(found[1])


def printed(command: Sequence[str | Path], status: int = 0) -> str:
    """What a program prints; it must end with this status."""
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != status:
        raise SchedlabError(f"{command[0]} failed:\n{done.stderr.strip()}")
    return done.stdout

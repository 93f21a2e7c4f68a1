# SPDX-License-Identifier: MIT
"""Compares sched_ext in the simulator with Linux: callbacks and times of the same object and workload.

bench/scx-agreement/guest.json has the runs of the Linux guest. The simulator's runs are repeated
whenever they are compared.
"""

import hashlib
import json
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

from schedlab import trace
from schedlab.base.toolchain.build import build
from schedlab.paths import ROOT
from schedlab.sched_ext.extraction import ObjectFile
from schedlab.sched_ext.kernel import compile_for_bpf
from schedlab.sched_ext.loading import load_object
from schedlab.sched_ext.user_space import MachineFacts
from schedlab.trace import Trace
from schedlab.trace.format import Kind
from schedlab.workload import workload_files
from schedlab.workload.text import encode_workload

FOLDER = ROOT / "bench" / "scx-agreement"
GUEST_RUNS = FOLDER / "guest.json"
OBJECTS = ROOT / "tests" / "sched_ext" / "objects"
SHARED_SOURCES = (OBJECTS / "scheduler.h", ROOT / "linux" / "guest" / "callback_log.h")
SIMULATOR = "build/sim/schedlab-sim"
TICK_NS = 4_000_000
LIMIT_NS = 10_000_000_000
SEED = 1
LETTERS = {
    "select_cpu": "S",
    "enqueue": "E",
    "dequeue": "Q",
    "dispatch": "D",
    "runnable": "R",
    "running": "B",
    "stopping": "P",
    "quiescent": "I",
    "tick": "T",
    "enable": "N",
    "set_weight": "W",
    "init_task": "F",
    "exit_task": "X",
    "cgroup_move": "M",
}
"""The callbacks that are compared, as letters. `dispatch` belongs to the previous task."""


INTERRUPTION = "PB"
"""A process of a higher class takes the CPU (stopping), and the task continues (running)."""
_TASKS = ("hog", "light", "heavy")
"""Names of tasks in the workloads."""


@dataclass(frozen=True)
class Case:
    """A scheduler with a workload on a number of CPUs."""

    scheduler: str
    workload: str
    cpus: int

    @property
    def workload_file(self) -> Path:
        return FOLDER / f"{self.workload}.json"

    @property
    def inputs(self) -> str:
        """Hash of what the guest's run depends on."""
        source = OBJECTS / f"{self.scheduler}.bpf.c"
        files = (source, *SHARED_SOURCES, self.workload_file)
        return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]


CASES = (
    Case("fifo", "mixed", 1),
    Case("vtime", "mixed", 1),
)


@dataclass(frozen=True)
class TaskRun:
    """One task's callbacks and turnaround in a run."""

    name: str
    callbacks: str
    """Letters, in the order of the calls."""
    turnaround_ns: int


@dataclass(frozen=True)
class Agreement:
    """How far two runs of a case agree."""

    callbacks: tuple[int, int]
    """On Linux, and in the simulator."""
    transitions: float
    """The part of pairs of successive callbacks of a task that both runs have."""
    uninterrupted: float
    """The same without interruptions of tasks, which do not change the schedule."""
    turnaround: float
    """The largest relative difference of a task's turnaround."""


def compile_logged(case: Case, folder: Path) -> Path:
    """Compiles a case's scheduler so that it records its callbacks."""
    target = folder / f"{case.scheduler}.bpf.o"
    options = ("-fhosted", "-DLOGGED", f"-I{OBJECTS}")
    compile_for_bpf(OBJECTS / f"{case.scheduler}.bpf.c", target, options)
    return target


def tasks_of(events: Trace, calls: Iterable[tuple[str, int]]) -> list[TaskRun]:
    """Returns the workload's tasks in the order of their names and forks.

    `calls`: names of callbacks and PIDs, in the order of the calls.
    """
    letters: dict[int, list[str]] = {}
    for name, pid in calls:
        if name in LETTERS:
            letters.setdefault(pid, []).append(LETTERS[name])
    rows = events.events.with_row_index("row")
    named = rows.join(events.texts, on="row").filter(pl.col("kind") == int(Kind.EXEC))
    names = dict(named.select("process", "text").rows())
    forks = _first_times(rows, Kind.FORK, "first")
    exits = _first_times(rows, Kind.EXIT, "process")
    return [
        TaskRun(names[pid], "".join(letters.get(pid, ())), exits[pid] - begin)
        for pid, begin in sorted(forks.items(), key=lambda fork: (names.get(fork[0], ""), fork))
        if pid in exits and names.get(pid) in _TASKS
    ]


def _first_times(rows: pl.DataFrame, kind: Kind, column: str) -> dict[int, int]:
    chosen = rows.filter(pl.col("kind") == int(kind)).select(column, "time_ns")
    return {int(pid): int(time) for pid, time in chosen.rows()}


def simulate(case: Case) -> list[TaskRun]:
    """Runs a case in the simulator."""
    build(SIMULATOR)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = compile_logged(case, folder)
        file = ObjectFile(case.scheduler, path, path.read_bytes())
        machine = MachineFacts.of_equal_cpus(case.cpus, 1_000_000_000 // TICK_NS)
        image = folder / "image"
        image.write_bytes(load_object(file, machine, {}).image)
        steps = folder / "workload.steps"
        steps.write_bytes(
            encode_workload(
                workload_files.read_workload_file(case.workload_file), SEED, TICK_NS, case.cpus
            )
        )
        command: list[str | Path] = [ROOT / SIMULATOR, "--policy", f"scx:{image}", "--cpus"]
        command += [str(case.cpus), "--tick", str(TICK_NS), "--limit", str(LIMIT_NS)]
        command += ["--seed", str(SEED)]
        command += ["--trace", folder / "trace.bin", "--callbacks", folder / "callbacks", steps]
        subprocess.run(command, check=True, capture_output=True)
        lines = (folder / "callbacks").read_text().splitlines()
        return tasks_of(trace.read(folder / "trace.bin"), map(_call_of, lines))


def _call_of(line: str) -> tuple[str, int]:
    """Reads `TIME CPU NAME PID`."""
    _, _, name, pid = line.split()
    return name, int(pid)


def guest_calls(console: str, scheduler: str) -> list[tuple[str, int]]:
    """Reads the callbacks that linux/guest/attach.c has printed."""
    lines = (line for line in console.splitlines() if line.startswith("callback "))
    calls = [_call_of(line.removeprefix("callback ")) for line in lines]
    return [(name.removeprefix(f"{scheduler}_"), pid) for name, pid in calls]


def compare(linux: Sequence[TaskRun], simulator: Sequence[TaskRun]) -> Agreement:
    """Compares two runs, task by task."""
    sequences = [[task.callbacks for task in tasks] for tasks in (linux, simulator)]
    uninterrupted = [[text.replace(INTERRUPTION, "") for text in texts] for texts in sequences]
    differences = [
        abs(there.turnaround_ns - here.turnaround_ns) / there.turnaround_ns
        for there, here in zip(linux, simulator, strict=True)
    ]
    return Agreement(
        (_count_callbacks(linux), _count_callbacks(simulator)),
        _common_part(*sequences),
        _common_part(*uninterrupted),
        max(differences, default=0.0),
    )


def _common_part(linux: Iterable[str], simulator: Iterable[str]) -> float:
    """Returns the common part of the transitions within sequences."""
    first, second = (
        Counter(pair for text in texts for pair in pairwise(text)) for texts in (linux, simulator)
    )
    total = max(first.total(), second.total())
    return (first & second).total() / total if total else 1.0


def _count_callbacks(tasks: Iterable[TaskRun]) -> int:
    return sum(len(task.callbacks) for task in tasks)


def read_guest_runs() -> dict[Case, Mapping[str, Any]]:
    """Returns the stored runs of the guest: inputs, kernel, and tasks."""
    entries = json.loads(GUEST_RUNS.read_text()) if GUEST_RUNS.exists() else []
    return {Case(entry["scheduler"], entry["workload"], entry["cpus"]): entry for entry in entries}


def stored_tasks(entry: Mapping[str, Any]) -> list[TaskRun]:
    return [TaskRun(**task) for task in entry["tasks"]]


def entry_of(case: Case, kernel: str, tasks: Iterable[TaskRun]) -> dict[str, Any]:
    """Returns what is stored of a guest's run."""
    return {
        **asdict(case),
        "inputs": case.inputs,
        "kernel": kernel,
        "tasks": [asdict(task) for task in tasks],
    }

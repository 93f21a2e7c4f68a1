# SPDX-License-Identifier: MIT
"""The suites of studies 1 and 4, each experiment as a program of the kernel and as a workload file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from schedlab.studies.experiment import TICK_NS, Depth
from schedlab.studies.experiments import EXPERIMENTS, LOTTERY_TESTS, PRIORITY_TESTS, TIMING_TESTS
from schedlab.studies.files import FILES, Described
from schedlab.workload import workload_files
from schedlab.workload.changes import Change
from schedlab.workload.model import WorkloadFile

SIZES = (2, 6, 20, 40)
"""CPU-bound processes of study 4's mixed benchmark, of those that were measured."""

_TO_THE_MARK_NS = 5_000
"""The time from waking to the mark on Spike: the rest of a turn (docs/simulator.md)."""


@dataclass(frozen=True)
class Window:
    """A run's window."""

    begin_ns: int
    end_ns: int


@dataclass(frozen=True)
class Pair:
    """An experiment on both machines."""

    experiment: str
    depth: Depth = "full"
    """Quick: lottery tests have a shorter window."""
    competition: bool = False
    """All are let go at the beginning of a tick, and measured later."""

    @property
    def tick_ns(self) -> int:
        return EXPERIMENTS[self.experiment].tick_ns or TICK_NS

    @property
    def command(self) -> str:
        """What runs on the kernel."""
        return EXPERIMENTS[self.experiment].command_at(self.tick_ns, self.depth)

    @property
    def described(self) -> Described:
        return FILES[self.experiment]

    def file(self, on_kernel: Window | None = None) -> WorkloadFile:
        """The workload file with the window that it had on the kernel."""
        changes = dict(self.described.changed(self.depth))
        if on_kernel is not None:
            changes.update(self._gate(on_kernel) if self.competition else _begin(on_kernel))
        return _read(self.described, tuple(changes.items()))

    def _gate(self, on_kernel: Window) -> Iterator[Change]:
        """Opened in the same tick: as many before the end, which all know when it opens."""
        last = on_kernel.end_ns // self.tick_ns
        warm_up, window = (20, 50) if self.depth == "quick" else (100, 500)
        yield "starter.phases.the best.sleep.until", f"{last - warm_up - window}ticks"
        for task in self.described.read().tasks:
            if task.group not in _WITHOUT_END:
                yield f"tasks.{task.name}.run1.until", f"{last - window}ticks"
                yield f"tasks.{task.name}.run2.until", f"{last}ticks"


_WITHOUT_END = ("I/O", "short", "mixed")
"""Groups of the lottery tests that work by rounds, not until the end of the window."""


def _begin(on_kernel: Window) -> Iterator[Change]:
    yield "starter.delay", f"{on_kernel.begin_ns - _TO_THE_MARK_NS}ns"


@cache
def _read(described: Described, changes: tuple[Change, ...]) -> WorkloadFile:
    return workload_files.read(described.path, changes)


def pairs(everything: bool) -> Iterator[Pair]:
    """What is compared unless experiments are named. Four of the priority tests are timing tests."""
    for test in TIMING_TESTS:
        yield Pair(f"s1-timing-{test}")
    for test in PRIORITY_TESTS:
        yield Pair(f"s1-priority-{test}")
    if everything:
        yield Pair("s1-priority-suite")
    for size in SIZES if everything else SIZES[:-1]:
        yield Pair(f"s4-mixed-{size}")
    for name in ("s4-trace", "s4-sleeper", "s4-sleeper-late"):
        yield Pair(name)
    for test in LOTTERY_TESTS:
        yield Pair(f"s1-lottery-{test}", competition=True)


def named(experiment: str, depth: Depth = "full") -> Pair:
    """Any experiment that has a file; KeyError."""
    assert experiment in FILES
    competition = experiment.startswith("s1-lottery-") and "original" not in experiment
    return Pair(experiment, depth if competition else "full", competition)

# SPDX-License-Identifier: MIT
"""The suites of studies 1 and 4, each experiment as a program of the kernel and as a workload file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from schedlab import workload_files
from schedlab.studies.experiments import (
    EXPERIMENTS,
    LOTTERY_TESTS,
    PRIORITY_TESTS,
    TICK_NS,
    TIMING_TESTS,
    Depth,
)
from schedlab.studies.files import FILES, Described
from schedlab.workload_changes import Change
from schedlab.workload_model import WorkloadFile

SIZES = (2, 6, 20, 40)
"""CPU-bound processes of study 4's mixed benchmark, of those that were measured."""

_TO_THE_MARK_NS = 5_000
"""From waking to the mark, on Spike: the rest of a turn (docs/simulator.md)."""


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

    def file(self, begin_ns: int | None = None) -> WorkloadFile:
        """With its window from this time on, if it opens before processes come."""
        begin: tuple[Change, ...] = ()
        if begin_ns is not None and not self.competition:
            begin = (("starter.delay", f"{begin_ns - _TO_THE_MARK_NS}ns"),)
        return _read(self.described, (*self.described.changed(self.depth), *begin))


@cache
def _read(described: Described, changes: tuple[Change, ...]) -> WorkloadFile:
    return workload_files.read(described.path, changes)


def pairs(depth: Depth) -> Iterator[Pair]:
    """What is compared unless experiments are named. Four of the priority tests are timing tests."""
    for test in TIMING_TESTS:
        yield Pair(f"s1-timing-{test}", depth)
    for test in PRIORITY_TESTS:
        yield Pair(f"s1-priority-{test}", depth)
    if depth == "full":
        yield Pair("s1-priority-suite", depth)
    for size in SIZES if depth == "full" else SIZES[:-1]:
        yield Pair(f"s4-mixed-{size}")
    for name in ("s4-trace", "s4-sleeper", "s4-sleeper-late"):
        yield Pair(name)
    for test in LOTTERY_TESTS:
        yield Pair(f"s1-lottery-{test}", depth, competition=True)


def named(experiment: str, depth: Depth) -> Pair:
    """Any experiment that has a file; KeyError."""
    assert experiment in FILES
    competition = experiment.startswith("s1-lottery-") and "original" not in experiment
    return Pair(experiment, depth if competition else "full", competition)

# SPDX-License-Identifier: MIT
"""Maps experiments to workload files, so that simulator and kernel can be compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from schedlab.paths import ROOT
from schedlab.studies.experiment import WORK_NS, Depth
from schedlab.studies.experiments import (
    BURSTS_DELETED,
    EXPERIMENTS,
    LOTTERY_TESTS,
    MIXED_SIZES,
    PHASE_SIZES,
    STARVE_BURSTS,
    TIMING_TESTS,
)
from schedlab.studies.simulated import simulated
from schedlab.workload.changes import Change
from schedlab.workload.model import WorkloadFile
from schedlab.workload.workload_files import read

FOLDER = "workloads/files"


@dataclass(frozen=True)
class Described:
    """An experiment as a workload file."""

    name: str
    """The file's name without `.json`."""
    changes: tuple[Change, ...] = ()
    """Changes of the file."""
    quick: tuple[Change, ...] = ()
    """Further changes that make it as short as the experiment's quick run."""
    on_cpus: tuple[tuple[int, tuple[Change, ...]], ...] = ()
    """Further changes for a number of CPUs."""
    remark: str = ""
    """A sentence about differences from the program's work."""

    @property
    def workload(self) -> str:
        """The workload file, relative to the project's folder."""
        return f"{FOLDER}/{self.name}.json"

    @property
    def path(self) -> Path:
        return ROOT / self.workload

    def changed(self, depth: Depth = "full", cpus: int = 1) -> tuple[Change, ...]:
        """Returns the changes of the workload file."""
        values = dict(self.changes)
        if depth == "quick":
            values.update(self.quick)
        values.update(dict(self.on_cpus).get(cpus, ()))
        return tuple(values.items())

    def read(self, depth: Depth = "full", cpus: int = 1) -> WorkloadFile:
        return read(self.path, self.changed(depth, cpus))


_JOURNAL = (
    "To write a line is what it is for one process that is alone: under a lock, two waits for the"
    " disk. On the kernel, lines of two that are under way together are one transaction."
)
_DISK = (
    "How long an operation of the file system waits is the mean of a run of the kernel on three"
    " CPUs; there, it depends on what the others do."
)
_NO_EVENTS = "It computes as long, and does not tell its events: their latencies are the kernel's."
_ONLY_STUDY_SIZE = "For a tick of 10 ms, as the experiment has it."


def _study_1() -> Iterator[tuple[str, Described]]:
    for test in TIMING_TESTS:
        yield f"s1-timing-{test}", Described(f"timing-{test}")
        yield f"s1-priority-{test}", Described(f"priority-{test}")
    no_bursts = tuple((f"tasks.{group}.phases.work.run", "0") for group in ("io-5", "io-0"))
    yield BURSTS_DELETED, Described("priority-io-bound", no_bursts)
    yield "s1-priority-suite", Described("priority-suite", no_bursts)
    for test in LOTTERY_TESTS:
        yield f"s1-lottery-{test}", Described(f"lottery-{test}", quick=tuple(_quick_lottery(test)))
        yield (
            f"s1-lottery-original-{test}",
            Described(
                f"lottery-original-{test}",
                on_cpus=tuple(_starve_bursts()) if test == "starve" else (),
                remark=_ONLY_STUDY_SIZE,
            ),
        )


def _starve_bursts() -> Iterator[tuple[int, tuple[Change, ...]]]:
    for cpus, burst in STARVE_BURSTS.items():
        us = str(burst * WORK_NS // 1000)
        yield cpus, tuple((f"tasks.{group}.run", us) for group in _LOTTERY_GROUPS["starve"])


def _quick_lottery(test: str) -> Iterator[Change]:
    """Yields changes for 20 ticks of warm-up and 50 measured ticks, after tick 10."""
    yield "starter.phases.measure.window", "50ticks"
    for group in _LOTTERY_GROUPS[test]:
        yield f"tasks.{group}.run1.until", "30ticks"
        yield f"tasks.{group}.run2.until", "80ticks"
    if test == "mixed":
        yield "tasks.I/O.phases.work.loop", "70"
        yield "tasks.short.sleep", "21ticks"
        yield "tasks.mixed.phases.work.loop", "35"


_LOTTERY_GROUPS = {
    "low": ("A", "B", "C"),
    "basic": ("A+B", "C+D", "E+F", "G+H"),
    "switch": ("A", "B", "C"),
    "starve": ("A+B", "C+D", "E+F+G+H"),
    "grouped": ("1", "2", "3"),
    "mixed": ("CPU",),
}
"""Groups that compute until the window ends."""


def _study_2() -> Iterator[tuple[str, Described]]:
    """Yields study 1's files, without those of three tests."""
    for test in TIMING_TESTS:
        other = {
            "switch": Described("timing-switch", (("starter.phases.test.loop", "500"),)),
            "creation": Described(
                "timing-creation-echo",
                remark="To begin another program takes a time; nothing is read from the disk.",
            ),
        }
        yield f"s2-timing-{test}", other.get(test, Described(f"timing-{test}"))
        suite = "timing" if test == "io-bound" else "priority"
        yield f"s2-priority-{test}", Described(f"{suite}-{test}")


def _study_3() -> Iterator[tuple[str, Described]]:
    yield "s3-cpu", Described("study3-cpu")
    yield "s3-io", Described("study3-io", remark=_DISK)
    yield "s3-mixed", Described("study3-mixed", remark=_DISK)
    yield "s3-inversion", Described("study3-inversion")


def _study_4() -> Iterator[tuple[str, Described]]:
    yield "s4-trace", Described("study4-trace")
    for size in MIXED_SIZES:
        yield (
            f"s4-mixed-{size}",
            Described("study4-mixed", (("tasks.cpu.instance", str(size)),), remark=_JOURNAL),
        )
    short = (("tasks.cpu.run", "20ticks"),)
    yield "s4-sleeper", Described("sleeper", quick=short)
    yield "s4-sleeper-late", Described("sleeper-late", quick=short)


def _study_5() -> Iterator[tuple[str, Described]]:
    quick = (("tasks.event.run2.until", "256ms"),)
    yield "s5-cpubench", Described("cpubench", quick=quick, remark=_NO_EVENTS)
    yield "s5-cpubench-8", Described("cpubench-8", remark=_NO_EVENTS)


FILES: dict[str, Described] = {
    name: described
    for of_study in (_study_1, _study_2, _study_3, _study_4, _study_5)
    for name, described in of_study()
} | {entry.experiment.name: Described(entry.workload, entry.changes) for entry in simulated()}
"""Workload files by experiment (schedlab.studies.experiments)."""

WITHOUT: dict[str, str] = {
    "s4-rounds": "A file has processes of a kind as often as it says, and not more in each round.",
    **dict.fromkeys(
        ("s4-phases", *(f"s4-phases-{size}" for size in PHASE_SIZES)),
        "Its begin is drawn, and a file's workload begins at once.",
    ),
    "s5-wakeups": "Rounds begin until a time is over, and a file has no loop that the clock ends.",
    **{
        name: "It is run on Linux, most of it by programs that are not ours."
        for name, experiment in EXPERIMENTS.items()
        if experiment.machine and name not in FILES
    },
}
"""Experiments that no workload file can describe, with the reasons."""

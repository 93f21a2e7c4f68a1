# SPDX-License-Identifier: MIT
"""Maps experiments to workload files, so that simulator and kernel can be compared."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from schedlab.paths import ROOT
from schedlab.studies.experiment import ITERATION_NS, Depth
from schedlab.studies.experiments import (
    EXPERIMENTS,
    IO_WITHOUT_BURSTS,
    MIXED_EQUAL,
    MIXED_SIZES,
    MIXED_SWAPPED,
    PHASE_SIZES,
    STARVE_BURSTS,
    STARVE_ENDLESS,
    TIMING_TESTS,
)
from schedlab.studies.lottery_tests import TESTS_BY_NAME
from schedlab.studies.simulated import simulated_experiments
from schedlab.workload.changes import Change
from schedlab.workload.model import WorkloadFile
from schedlab.workload.workload_files import read_workload_file

WORKLOAD_FOLDER = "workloads/files"


@dataclass(frozen=True)
class ExperimentFile:
    """An experiment as a workload file."""

    name: str
    """The file's name without `.json`, or its path if it is below `studies`."""
    changes: tuple[Change, ...] = ()
    """Changes of the file."""
    quick_changes: tuple[Change, ...] = ()
    """Further changes that make it as short as the experiment's quick run."""
    changes_by_cpus: tuple[tuple[int, tuple[Change, ...]], ...] = ()
    """Further changes for a number of CPUs."""
    remark: str = ""
    """A sentence about differences from the program's work."""

    @property
    def workload(self) -> str:
        """The workload file, relative to the project's folder."""
        folder = "" if self.name.startswith("studies/") else f"{WORKLOAD_FOLDER}/"
        return f"{folder}{self.name}.json"

    @property
    def path(self) -> Path:
        """Returns the path of the workload file."""
        return ROOT / self.workload

    def changes_for(self, depth: Depth = "full", cpus: int = 1) -> tuple[Change, ...]:
        """Returns the changes of the workload file."""
        values = dict(self.changes)
        if depth == "quick":
            values.update(self.quick_changes)
        values.update(dict(self.changes_by_cpus).get(cpus, ()))
        return tuple(values.items())

    def read(self, depth: Depth = "full", cpus: int = 1) -> WorkloadFile:
        """Reads the workload file with its changes."""
        return read_workload_file(self.path, self.changes_for(depth, cpus))


_JOURNAL_REMARK = (
    "To write a line is what it is for one process that is alone: under a lock, two waits for the"
    " disk. On the kernel, lines of two that are under way together are one transaction."
)
_DISK_REMARK = (
    "How long an operation of the file system waits is the mean of a run of the kernel on three"
    " CPUs; there, it depends on what the others do."
)
_NO_EVENTS_REMARK = (
    "It computes as long, and does not tell its events: their latencies are the kernel's."
)
_TICK_REMARK = "For a tick of 10 ms, as the experiment has it."


def _study_1_files() -> Iterator[tuple[str, ExperimentFile]]:
    """Yields the workload files of study 1, by experiment."""
    for test in TIMING_TESTS:
        yield f"s1-timing-{test}", ExperimentFile(f"timing-{test}")
        yield f"s1-priority-{test}", ExperimentFile(f"priority-{test}")
    no_bursts = tuple((f"tasks.{group}.phases.work.run", "0") for group in ("io-5", "io-0"))
    yield IO_WITHOUT_BURSTS, ExperimentFile("priority-io-bound", no_bursts)
    yield "s1-priority-suite", ExperimentFile("priority-suite", no_bursts)
    yield MIXED_EQUAL, ExperimentFile("timing-mixed")
    for test in TESTS_BY_NAME:
        yield (
            f"s1-lottery-{test}",
            ExperimentFile(f"lottery-{test}", quick_changes=tuple(_quick_lottery(test))),
        )
        yield (
            f"s1-lottery-original-{test}",
            ExperimentFile(
                f"lottery-original-{test}",
                changes_by_cpus=tuple(_starve_bursts()) if test == "starve" else (),
                remark=_TICK_REMARK,
            ),
        )
    endless_loops = (
        (f"tasks.{group}.loop", "1000000000") for group in TESTS_BY_NAME["starve"].rows
    )
    yield (
        STARVE_ENDLESS,
        ExperimentFile(
            "lottery-original-starve",
            tuple(endless_loops),
            changes_by_cpus=tuple(_starve_bursts()),
            remark=_TICK_REMARK,
        ),
    )


def _starve_bursts() -> Iterator[tuple[int, tuple[Change, ...]]]:
    """Yields the length of bursts for each number of CPUs, as changes of the workload file."""
    for cpus, burst in STARVE_BURSTS.items():
        us = str(burst * ITERATION_NS // 1000)
        yield cpus, tuple((f"tasks.{group}.run", us) for group in TESTS_BY_NAME["starve"].rows)


def _quick_lottery(test: str) -> Iterator[Change]:
    """Yields changes for 20 ticks of warm-up and 50 measured ticks, after tick 10."""
    yield "starter.phases.measure.window", "50ticks"
    for group in (
        ("CPU",) if test == "mixed" else TESTS_BY_NAME[test].rows
    ):  # compute until the window ends
        yield f"tasks.{group}.run1.until", "30ticks"
        yield f"tasks.{group}.run2.until", "80ticks"
    if test == "mixed":
        yield "tasks.I/O.phases.work.loop", "70"
        yield "tasks.short.sleep", "21ticks"
        yield "tasks.mixed.phases.work.loop", "35"


def _study_2_files() -> Iterator[tuple[str, ExperimentFile]]:
    """Yields study 1's files, without those of three tests."""
    for test in TIMING_TESTS:
        special_files = {
            "switch": ExperimentFile("timing-switch", (("starter.phases.test.loop", "500"),)),
            "creation": ExperimentFile(
                "timing-creation-echo",
                remark="To begin another program takes a time; nothing is read from the disk.",
            ),
        }
        yield f"s2-timing-{test}", special_files.get(test, ExperimentFile(f"timing-{test}"))
        suite = "timing" if test == "io-bound" else "priority"
        yield f"s2-priority-{test}", ExperimentFile(f"{suite}-{test}")
    exchanged_priorities = (("tasks.mix-io.priority", "0"), ("tasks.mix-cpu.priority", "10"))
    yield MIXED_SWAPPED, ExperimentFile("priority-mixed", exchanged_priorities)


def _study_3_files() -> Iterator[tuple[str, ExperimentFile]]:
    """Yields the workload files of study 3, by experiment."""
    yield "s3-cpu", ExperimentFile("study3-cpu")
    yield "s3-io", ExperimentFile("study3-io", remark=_DISK_REMARK)
    yield "s3-mixed", ExperimentFile("study3-mixed", remark=_DISK_REMARK)
    yield "s3-inversion", ExperimentFile("study3-inversion")


def _study_4_files() -> Iterator[tuple[str, ExperimentFile]]:
    """Yields the workload files of study 4, by experiment."""
    yield "s4-trace", ExperimentFile("study4-trace")
    for size in MIXED_SIZES:
        yield (
            f"s4-mixed-{size}",
            ExperimentFile(
                "study4-mixed", (("tasks.cpu.instance", str(size)),), remark=_JOURNAL_REMARK
            ),
        )
    shorter_runs = (("tasks.cpu.run", "20ticks"),)
    yield "s4-sleeper", ExperimentFile("sleeper", quick_changes=shorter_runs)
    yield "s4-sleeper-late", ExperimentFile("sleeper-late", quick_changes=shorter_runs)


def _study_5_files() -> Iterator[tuple[str, ExperimentFile]]:
    """Yields the workload files of study 5, by experiment."""
    quick_changes = (("tasks.event.run2.until", "257ms"),)
    yield (
        "s5-cpubench",
        ExperimentFile("cpubench", quick_changes=quick_changes, remark=_NO_EVENTS_REMARK),
    )
    yield "s5-cpubench-8", ExperimentFile("cpubench-8", remark=_NO_EVENTS_REMARK)


EXPERIMENT_FILES: dict[str, ExperimentFile] = {
    name: described
    for of_study in (_study_1_files, _study_2_files, _study_3_files, _study_4_files, _study_5_files)
    for name, described in of_study()
} | {
    entry.experiment.name: ExperimentFile(entry.workload, entry.changes)
    for entry in simulated_experiments()
}
"""Workload files by experiment (schedlab.studies.experiments)."""

EXPERIMENTS_WITHOUT_FILE: dict[str, str] = {
    "s4-rounds": "A file has processes of a kind as often as it says, and not more in each round.",
    **dict.fromkeys(
        ("s4-phases", *(f"s4-phases-{size}" for size in PHASE_SIZES)),
        "Its begin is drawn, and a file's workload begins at once.",
    ),
    "s5-wakeups": "Rounds begin until a time is over, and a file has no loop that the clock ends.",
    **{
        name: "It is run on Linux, most of it by programs that are not ours."
        for name, experiment in EXPERIMENTS.items()
        if experiment.machine and name not in EXPERIMENT_FILES
    },
}
"""Experiments that no workload file can describe, with the reasons."""

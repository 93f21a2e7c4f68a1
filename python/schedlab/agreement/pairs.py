# SPDX-License-Identifier: MIT
"""Which workload file is which program of the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from schedlab import workload_files
from schedlab.paths import ROOT
from schedlab.studies.experiments import EXPERIMENTS, PRIORITY_TESTS, TIMING_TESTS
from schedlab.workload_changes import Change
from schedlab.workload_model import WorkloadFile

FILES = ROOT / "workloads" / "files"


@dataclass(frozen=True)
class Pair:
    """An experiment of a study, as a program of the kernel and as a file."""

    experiment: str
    name: str
    """Of the file."""
    command: str
    changes: tuple[Change, ...] = ()
    """Of the file."""
    competition: bool = False
    """All are let go at the beginning of a tick, and measured later."""
    long: bool = False
    """It takes long, and says little more than others."""

    @property
    def path(self) -> Path:
        return FILES / f"{self.name}.json"

    def file(self, begin_ns: int | None = None) -> WorkloadFile:
        """With its window from this time on, if it begins with processes that come one by one."""
        begin: tuple[Change, ...] = ()
        if begin_ns is not None and not self.competition:
            begin = (("starter.delay", f"{begin_ns}ns"),)
        return _read(self.path, (*self.changes, *begin))


@cache
def _read(path: Path, changes: tuple[Change, ...]) -> WorkloadFile:
    return workload_files.read(path, changes)


def _pair(experiment: str, name: str, *changes: Change, long: bool = False) -> Pair:
    return Pair(experiment, name, EXPERIMENTS[experiment].command, changes, long=long)


def _mixed(size: int) -> Pair:
    return _pair(f"s4-mixed-{size}", "mixed", ("tasks.cpu.instance", str(size)), long=size > 20)


PAIRS = (
    *(_pair(f"s1-timing-{test}", f"timing-{test}") for test in TIMING_TESTS),
    *(_pair(f"s1-priority-{test}", f"priority-{test}") for test in PRIORITY_TESTS),
    *(_mixed(size) for size in (2, 6, 20, 40)),
    _pair("s4-trace", "study4-trace"),
    _pair("s4-sleeper", "sleeper"),
    _pair("s4-sleeper-late", "sleeper-late"),
)

# SPDX-License-Identifier: MIT
"""Which workload file is which program of the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from schedlab import workload_files
from schedlab.paths import ROOT
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.workload_model import WorkloadFile

FILES = ROOT / "workloads" / "files"


@dataclass(frozen=True)
class Pair:
    """An experiment of a study, as a program of the kernel and as a file."""

    experiment: str
    name: str
    """Of the file."""
    command: str
    long: bool = False
    """It takes long, and says little more than others."""

    @property
    def path(self) -> Path:
        return FILES / f"{self.name}.json"

    def file(self) -> WorkloadFile:
        return _read(self.path)


@cache
def _read(path: Path) -> WorkloadFile:
    return workload_files.read(path)


def _pair(experiment: str, name: str, options: str = "", long: bool = False) -> Pair:
    return Pair(experiment, name, EXPERIMENTS[experiment].command + options, long)


PAIRS = (
    _pair("s1-timing-cpu-heavy", "cpu-heavy"),
    _pair("s1-priority-starvation", "starvation"),
    _pair("s4-mixed-20", "mixed"),
    _pair("s4-sleeper", "sleeper"),
)

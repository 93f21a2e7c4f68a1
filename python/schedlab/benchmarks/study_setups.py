# SPDX-License-Identifier: MIT
"""The setups of `./schedlab run` without arguments, as bench/study.csv has them, and what they cost.

The list stays as it is when the studies' own plan changes: what is measured before and after a change
is the same work.
"""

from __future__ import annotations

import csv
import io
import resource
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from schedlab.errors import WrongUsage
from schedlab.files.kept import read_text
from schedlab.machines.run import Run
from schedlab.paths import ROOT
from schedlab.toolchain.policies import parse_choices, parse_setting

MACHINE = "spike"
FILE = ROOT / "bench" / "study.csv"


def read(path: Path = FILE) -> tuple[Run, ...]:
    """Returns all setups, in the order of the list."""
    return tuple(_setup(row) for row in csv.DictReader(io.StringIO(read_text(path)), strict=True))


def _setup(row: dict[str, str]) -> Run:
    return Run(
        workload=row["workload"],
        policy=parse_choices(row["policy"])[0],
        settings=tuple(parse_setting(each) for each in row["settings"].split()),
        cpus=int(row["cpus"]),
        machine=MACHINE,
        seed=int(row["seed"]),
        tick_ns=int(row["tick_ns"]),
        limit_ns=int(row["limit_ns"]),
        memory_mib=int(row["memory_mib"]),
        label=row["experiment"],
    )


def chosen(setups: Sequence[Run], patterns: Iterable[str]) -> tuple[Run, ...]:
    """Returns the setups of the experiments that the patterns name, or all if there is no pattern.
    Raises WrongUsage for a pattern that names none."""
    wanted = tuple(patterns)
    for pattern in wanted:
        if not any(fnmatchcase(run.label, pattern) for run in setups):
            raise WrongUsage(
                f"--experiment {pattern}: the list has no experiment of that name; a pattern such as"
                " s4-* names several"
            )
    return tuple(
        run
        for run in setups
        if not wanted or any(fnmatchcase(run.label, pattern) for pattern in wanted)
    )


@dataclass(frozen=True)
class Cost:
    """What the setups took on this host, in seconds."""

    setups: int
    machines_s: float
    """CPU time of the machines."""
    python_s: float
    """CPU time of Python, which starts the machines and measures their traces."""
    report_s: float
    """CPU time of the report."""
    wall_s: float
    """Time from the first machine's start to the report's end."""

    @property
    def cpu_s(self) -> float:
        return self.machines_s + self.python_s + self.report_s

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "cpu_s": self.cpu_s}


@dataclass(frozen=True)
class Reading:
    """The clocks at one moment, in seconds."""

    own_s: float
    """CPU time of this process, with all of its threads."""
    children_s: float
    """CPU time of the processes that it started and that have ended."""
    wall_s: float


def reading() -> Reading:
    """Returns what the clocks show now."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Reading(time.process_time(), children.ru_utime + children.ru_stime, time.monotonic())


def cost(setups: int, began: Reading, ran: Reading, ended: Reading) -> Cost:
    """From the clocks before the runs, after them, and after the report."""
    return Cost(
        setups,
        machines_s=ran.children_s - began.children_s,
        python_s=ran.own_s - began.own_s,
        report_s=ended.own_s - ran.own_s + ended.children_s - ran.children_s,
        wall_s=ended.wall_s - began.wall_s,
    )

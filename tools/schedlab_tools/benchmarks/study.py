# SPDX-License-Identifier: MIT
"""Measures the cost of the configurations of the default `./schedlab run`, as listed in bench/study.csv.

The list stays fixed when the studies' plan changes, so that measurements before and after a change
cover the same work.
"""

import csv
import io
import resource
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

import click
from rich.table import Table

from schedlab.base.display.terminal import new_table
from schedlab.base.files.reading import read_text
from schedlab.base.toolchain.policies import parse_choices, parse_setting
from schedlab.commands.execution import check_finished, run_plan
from schedlab.commands.options import json_option
from schedlab.errors import FileRefused, WrongUsage
from schedlab.machines import machine_named
from schedlab.machines.spec import RunSpec
from schedlab.paths import ROOT
from schedlab.runs.collection import Collection, StoredRun
from schedlab.runs.parts import build_parts
from schedlab.runs.plan import Plan
from schedlab_tools.benchmarks.results import finish

MACHINE = "spike"
FILE = ROOT / "bench" / "study.csv"
COUNTS = ("cpus", "seed", "tick_ns", "limit_ns", "memory_mib")
"""Columns with a positive whole number."""
COLUMNS = ("experiment", "workload", "policy", "settings", *COUNTS)
_DIGITS = 18
"""The most digits of a number that certainly fits into 64 bits."""


def read(path: Path = FILE) -> tuple[RunSpec, ...]:
    """Returns all configurations, in the order of the list. Raises FileRefused, which names the line."""
    rows = csv.DictReader(io.StringIO(read_text(path), newline=""), restkey="too many", strict=True)
    try:
        if tuple(rows.fieldnames or ()) != COLUMNS:
            raise ValueError(f"the columns must be {','.join(COLUMNS)}")
        return tuple(_setup(row) for row in rows)
    except (ValueError, csv.Error) as error:
        raise FileRefused(f"{path}: line {max(rows.line_num, 1)}: {error}") from None


def _setup(row: Mapping[str, str | None]) -> RunSpec:
    """Returns the configuration of a row. Raises ValueError."""
    if tuple(row) != COLUMNS or None in row.values():
        raise ValueError(f"{len(COLUMNS)} columns are wanted")
    cells = cast("Mapping[str, str]", row)
    cpus, seed, tick_ns, limit_ns, memory_mib = (_count(name, cells[name]) for name in COUNTS)
    return RunSpec(
        workload=cells["workload"],
        policy=parse_choices(cells["policy"])[0],
        settings=tuple(parse_setting(setting) for setting in cells["settings"].split()),
        cpus=cpus,
        machine=machine_named(MACHINE),
        seed=seed,
        tick_ns=tick_ns,
        limit_ns=limit_ns,
        memory_mib=memory_mib,
        label=cells["experiment"],
    )


def _count(name: str, text: str) -> int:
    """Returns a positive whole number of a column. Raises ValueError."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS and int(text)):
        raise ValueError(f"{name} is '{text}'; a whole number above 0 is wanted")
    return int(text)


def select_setups(setups: Sequence[RunSpec], patterns: Iterable[str]) -> tuple[RunSpec, ...]:
    """Returns the configurations of the experiments that match the patterns, or all without patterns.

    Raises WrongUsage for a pattern without a match.
    """
    selected = tuple(patterns)
    for pattern in selected:
        if not any(fnmatchcase(run.label, pattern) for run in setups):
            raise WrongUsage(
                f"--experiment {pattern}: the list has no experiment of that name; a pattern such as"
                " s4-* names several"
            )
    return tuple(
        run
        for run in setups
        if not selected or any(fnmatchcase(run.label, pattern) for pattern in selected)
    )


@dataclass(frozen=True)
class Cost:
    """Cost of the configurations on this host, in seconds."""

    setups: int
    machines_s: float
    """CPU time of the machines."""
    python_s: float
    """CPU time of Python, which starts the machines and measures their traces."""
    report_s: float
    """CPU time of the report."""
    wall_s: float
    """Time from the start of the first machine to the end of the report."""

    @property
    def cpu_s(self) -> float:
        """Returns the total CPU time in seconds."""
        return self.machines_s + self.python_s + self.report_s

    def to_dict(self) -> dict[str, Any]:
        """Returns the cost for JSON."""
        return {**asdict(self), "cpu_s": self.cpu_s}


@dataclass(frozen=True)
class ClockReading:
    """The clocks at one moment, in seconds."""

    own_s: float
    """CPU time of this process, including all threads."""
    children_s: float
    """CPU time of its child processes that have ended."""
    wall_s: float


def read_clocks() -> ClockReading:
    """Returns the CPU time of this process and of its children, and the wall clock."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ClockReading(
        time.process_time(), children.ru_utime + children.ru_stime, time.monotonic()
    )


def cost(setups: int, began: ClockReading, ran: ClockReading, ended: ClockReading) -> Cost:
    """Computes the cost from the clocks before the runs, after them, and after the report."""
    return Cost(
        setups,
        machines_s=ran.children_s - began.children_s,
        python_s=ran.own_s - began.own_s,
        report_s=ended.own_s - ran.own_s + ended.children_s - ran.children_s,
        wall_s=ended.wall_s - began.wall_s,
    )


@click.command("study")
@click.option(
    "--experiment",
    "experiments",
    multiple=True,
    metavar="PATTERN",
    help="Only these, such as s4-mixed-20 or 's1-timing-*'. May be repeated.",
)
@json_option
def study(experiments: tuple[str, ...], as_json: bool) -> None:
    """Measure the CPU time of the default study: its machines, Python, and the report.

    The configurations are fixed in bench/study.csv, independent of the studies' current plan, so that
    measurements before and after a change cover the same work. The runs are not kept. Exit status 1 if a
    run fails.
    """

    measured = measure(select_setups(read(), experiments))
    finish(as_json, measured.to_dict(), (cost_table(measured),), ())


def measure(setups: tuple[RunSpec, ...]) -> Cost:
    """Returns the CPU and wall time of running the configurations, and of creating their report."""
    from schedlab.report.reproduction import REPORT_FOLDER, make_report

    build_parts(machine_named(MACHINE).parts)  # building is not part of the study
    began_at = read_clocks()
    with run_plan(lambda folder: Plan(folder, setups), None) as finished:
        ran_at = read_clocks()
        check_finished(finished, measured=True)
        runs = Collection(StoredRun(run.folder, run.manifest) for run in finished)
        make_report(runs, finished[0].folder.parent / REPORT_FOLDER)
        return cost(len(setups), began_at, ran_at, read_clocks())


def cost_table(measured: Cost) -> Table:
    """Returns the table of the cost."""
    table = new_table(
        f"{measured.setups} setups of the default study on this host",
        *("what", ">CPU seconds", ">wall seconds"),
    )
    table.add_row("machines", f"{measured.machines_s:,.1f}", "")
    table.add_row("Python: starts, traces, metrics", f"{measured.python_s:,.1f}", "")
    table.add_row("report", f"{measured.report_s:,.1f}", "", end_section=True)
    table.add_row("all", f"{measured.cpu_s:,.1f}", f"{measured.wall_s:,.1f}")
    return table

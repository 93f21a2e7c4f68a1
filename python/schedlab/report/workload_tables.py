# SPDX-License-Identifier: MIT
"""Tables of one workload: the results under each policy on each number of CPUs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from schedlab.analysis.comparison.statistics import Estimate
from schedlab.base.display.markdown import literal
from schedlab.base.display.names import unique_slugs
from schedlab.base.display.numbers import NO_VALUE, SHARE, TIME, Quantity, format_count
from schedlab.base.toolchain.policies import sort_policies
from schedlab.metrics.registry import METRICS, Metric
from schedlab.metrics.steady import BATCHES, steady_of
from schedlab.metrics.tails import tails
from schedlab.report.model import Cell, Column, Row, Table
from schedlab.report.wording import (
    COUNT_QUANTITY,
    SHARE_PERCENT,
    failure_cells,
    mean_over_seeds,
    mean_with_interval,
    provenance_text,
    repeatability_suffix,
    time_unit,
    with_common_decimals,
)
from schedlab.runs import collection as runs
from schedlab.runs.collection import Collection, ConfigurationRuns, Setup
from schedlab.units import format_time

NOTABLE_POINTS = 1.0
"""Deviation from the ideal share, in percentage points, that is marked."""
_GROUPS_MAX = 6
_PROCESSES_MAX = 12
"""Maximum number of tasks of one run in a table. Larger runs have them in their data."""
_SETUPS_MAX = 8
_SETUP_COLUMNS = (Column("policy", align="left"), Column("CPUs"))


@dataclass(frozen=True)
class ShownWait:
    """A single wait, and the name of its chart."""

    chart: str
    duration_ns: int


WaitLinks = Mapping[tuple[int, str], ShownWait]
"""Waits of the first seed's runs, by the configuration's index in the
workload and the summary's column.
"""


@dataclass(frozen=True)
class Workload:
    """The configurations of one table, which differ in policy and number of CPUs."""

    setups: tuple[ConfigurationRuns, ...]
    """The configurations, by CPUs, then by policy."""
    stem: str
    """The prefix of its tables' and charts' names."""

    @property
    def first(self) -> Setup:
        """Returns the first configuration."""
        return self.setups[0].setup

    @property
    def title(self) -> str:
        """The name, with a distinction from other workloads of the same name."""
        machine = "" if self.first.machine == "spike" else f", on {self.first.machine}"
        return f"{self.first.experiment}{machine}"

    @property
    def sections(self) -> tuple[int, ...]:
        """The indices of configurations where the number of CPUs changes."""
        return tuple(
            number
            for number in range(1, len(self.setups))
            if self.setups[number].setup.cpus != self.setups[number - 1].setup.cpus
        )

    def rows_of(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Returns this workload's rows of a frame of the collection."""
        return rows_of_setups(frame, self.setups)


def find_workloads(collection: Collection) -> list[Workload]:
    """Returns all workloads in the order of the runs."""
    setups_by_workload: dict[tuple[str, str, int], list[ConfigurationRuns]] = {}
    for setup, repeated in collection.repeated.items():
        setups_by_workload.setdefault((setup.experiment, setup.machine, setup.tick_ns), []).append(
            repeated
        )
    stems = unique_slugs(
        [
            f"{experiment} {machine} {format_time(tick)}"
            for experiment, machine, tick in setups_by_workload
        ],
        "workload",
    )
    return [
        Workload(_sort_setups(setups), stem)
        for setups, stem in zip(setups_by_workload.values(), stems, strict=True)
    ]


def _sort_setups(setups: Sequence[ConfigurationRuns]) -> tuple[ConfigurationRuns, ...]:
    """Returns the configurations by number of CPUs, then in the order of policies."""
    policies = sort_policies(setup.setup.policy_title for setup in setups)
    return tuple(
        sorted(
            setups,
            key=lambda setup: (setup.setup.cpus, policies.index(setup.setup.policy_title)),
        )
    )


def rows_of_setups(frame: pl.DataFrame, setups: Sequence[ConfigurationRuns]) -> pl.DataFrame:
    """Returns the rows of these configurations in a frame of the collection."""
    keys = ("experiment", "policy", "cpus", "machine", "tick_ns")
    identities = pl.DataFrame(
        [{key: runs.identity(setup.runs[0])[key] for key in keys} for setup in setups]
    )
    if frame.is_empty():
        return frame
    return frame.join(identities, on=keys, how="semi", maintain_order="left")


def _setup_cells(setup: Setup) -> tuple[Cell, Cell]:
    """Returns the cells of a configuration: policy and number of CPUs."""
    return Cell(setup.policy_title), Cell(str(setup.cpus))


# --- metrics


def metrics_table(
    collection: Collection, workload: Workload, links: WaitLinks | None = None
) -> Table:
    """Returns a table of the workload's totals: a row per policy and number of CPUs.

    `links`: targets of clicks on numbers.
    """
    links = links or {}
    data = _add_tails(workload.rows_of(collection.summary), workload.rows_of(collection.processes))
    shown_metrics = [
        metric
        for metric in METRICS
        if metric.family
        and metric.in_reports
        and metric.scope != "group"
        and _has_values(data, metric.error or metric.column)
    ]
    rows = [rows_of_setups(data, [setup]) if setup.succeeded else None for setup in workload.setups]
    means, units = {}, {}
    for metric in shown_metrics:
        name, unit = metric.column, _metric_unit(metric, data)
        means[name] = [
            None if setup_rows is None else _metric_mean(setup_rows, metric, unit)
            for setup_rows in rows
        ]
        units[name] = with_common_decimals(unit, means[name])
    has_single_run = any(metric.error for metric in shown_metrics) and any(
        setup_rows is not None and len(setup_rows) == 1 for setup_rows in rows
    )
    columns = [
        Column(
            units[metric.column].heading(metric.short.replace(" ÷ ", _RATIO_SIGN)), metric.family
        )
        for metric in shown_metrics
    ]
    return Table(
        name=f"metrics-{workload.stem}",
        title=f"{workload.title}: what the policies did{repeatability_suffix(workload.setups)}",
        columns=(*_SETUP_COLUMNS, *(columns or [Column("ended")]), Column("runs")),
        rows=tuple(
            (
                *_setup_cells(setup.setup),
                *_metric_cells(
                    setup,
                    [means[name][index] for name in units],
                    units.values(),
                    [links.get((index, name)) for name in units],
                ),
                Cell(str(len(setup.runs)), "muted"),
            )
            for index, setup in enumerate(workload.setups)
        ),
        data=data,
        caption=(_LINK_NOTE if links else "")
        + (_SINGLE_RUN_NOTE if has_single_run else "")
        + provenance_text(workload.setups),
        sections=workload.sections,
        keys=len(_SETUP_COLUMNS),
    )


_RATIO_SIGN = "\N{NO-BREAK SPACE}÷\N{NO-BREAK SPACE}"


def _metric_unit(metric: Metric, data: pl.DataFrame) -> Quantity:
    kind = metric.kind
    if kind.quantity is TIME:
        return time_unit(data[metric.column].to_list())
    unit = kind.quantity.unit if kind.quantity is SHARE else ""
    return replace(kind.quantity, unit=unit, digits=kind.digits, within=kind.within)


def _metric_mean(setup_rows: pl.DataFrame, metric: Metric, unit: Quantity) -> Estimate | None:
    """Returns a configuration's mean.

    For a single run, the interval comes from batches of tasks, if there are enough tasks.
    """
    mean = mean_over_seeds(setup_rows[metric.column].to_list(), unit)
    if mean is None or not metric.error or mean.count > 1 or "_mean" not in metric.column:
        return mean
    error = setup_rows[metric.error].item() or 0.0
    return replace(mean, low=mean.mean - error, high=mean.mean + error, count=BATCHES)


_SINGLE_RUN_NOTE = (
    "After the warm-up, without the first tenth of the processes. In brackets, for a single run:"
    f" the 95 % interval of its mean by {BATCHES} batches. "
)
_LINK_NOTE = "A linked number leads to its wait, in the run with the first seed. "


def _add_tails(summary: pl.DataFrame, processes: pl.DataFrame) -> pl.DataFrame:
    """Adds two sets of columns to the runs' rows: the tasks' tail quantiles, and metrics after the warm-up."""
    if summary.is_empty() or not {"role", "running_ns", "blocked_ns"} <= set(processes.columns):
        return summary
    for extra_columns in (tails(processes, ("run",)), steady_of(processes, ("run",))):
        summary = summary.join(extra_columns, on="run", how="left", maintain_order="left")
    return summary


def _has_values(data: pl.DataFrame, column: str) -> bool:
    """Returns whether the column exists and is not empty."""
    return column in data.columns and data[column].null_count() < len(data)


def _metric_cells(
    setup: ConfigurationRuns,
    means: Sequence[Estimate | None],
    units: Iterable[Quantity],
    links: Iterable[ShownWait | None],
) -> list[Cell]:
    if not setup.succeeded:
        return failure_cells(setup, max(len(means), 1))
    return [
        Cell(mean_with_interval(mean, unit), link=f"#{shown.chart}" if shown else "")
        for mean, unit, shown in zip(means, units, links, strict=True)
    ] or [Cell("success")]


# --- groups


def groups_table(collection: Collection, workload: Workload) -> Table | None:
    """Returns each group's share of the CPUs and its ideal, or None if there is only one group."""
    data = workload.rows_of(collection.groups)
    if data.is_empty() or data["group"].n_unique() < 2:
        return None
    running = data.group_by("group").agg(pl.col("running_ns").sum())
    groups_by_time = running.sort("running_ns", "group", descending=[True, False])[
        "group"
    ].to_list()
    names = sorted(groups_by_time[:_GROUPS_MAX])
    omitted_count = len(groups_by_time) - len(names)
    omitted_note = (
        f"The files also have {format_count(omitted_count, 'group')} that ran less. "
        if omitted_count
        else ""
    )
    return Table(
        name=f"groups-{workload.stem}",
        title=f"{workload.title}: each group's share of the CPUs{repeatability_suffix(workload.setups)}",
        columns=(
            *_SETUP_COLUMNS,
            *(Column(SHARE.heading(title), name) for name in names for title in ("share", "ideal")),
        ),
        rows=tuple(
            (*_setup_cells(setup.setup), *_share_cells(setup, rows_of_setups(data, [setup]), names))
            for setup in workload.setups
        ),
        data=data,
        caption=(
            f"A share is off its ideal if it differs by at least {NOTABLE_POINTS:.0f} percentage point. {omitted_note}"
            + provenance_text(workload.setups)
        ),
        sections=workload.sections,
        keys=len(_SETUP_COLUMNS),
    )


def _share_cells(
    setup: ConfigurationRuns, setup_rows: pl.DataFrame, names: Sequence[str]
) -> list[Cell]:
    """Returns the cells of a configuration's row in the table of groups: share and ideal for each
    group.
    """
    if not setup.succeeded:
        return failure_cells(setup, 2 * len(names))
    cells = []
    for name in names:
        group = setup_rows.filter(pl.col("group") == name)
        mean, ideal = (
            mean_over_seeds(group[column].to_list(), SHARE_PERCENT)
            for column in ("share", "ideal_share")
        )
        if mean is None or ideal is None or len(group) < len(setup.runs):
            cells += [Cell(NO_VALUE), Cell(NO_VALUE, "muted")]
            continue
        is_near = abs(mean.mean - ideal.mean) * 100 < NOTABLE_POINTS
        cells += [
            Cell(mean_with_interval(mean, SHARE_PERCENT), "good" if is_near else "bad"),
            Cell(SHARE_PERCENT.number(ideal.mean), "muted"),
        ]
    return cells


# --- processes

_PROCESS_TIMES = {
    "turnaround_ns": "turnaround",
    "response_ns": "response",
    "waiting_ns": "waiting",
    "running_ns": "running",
    "blocked_ns": "blocked",
}
_PROCESS_NUMBERS = {
    "selections": ("selections", COUNT_QUANTITY),
    "preemptions": ("preemptions", COUNT_QUANTITY),
    "migrations": ("migrations", COUNT_QUANTITY),
    "share": ("share, %", SHARE_PERCENT),
    "ideal_share": ("ideal, %", SHARE_PERCENT),
}


def processes_table(collection: Collection, workload: Workload) -> Table | None:
    """Returns a table of each task in the first seed's run, or None if the workload has many tasks.

    Times that no task has are left out, such as the turnaround of tasks that never exit.
    """
    if len(workload.setups) > _SETUPS_MAX:
        return None
    drawn_setups = [setup for setup in workload.setups if setup.runs[0].succeeded]
    seeds = {setup.runs[0].seed for setup in drawn_setups}
    if not drawn_setups or len(seeds) > 1:
        return None
    process_rows = rows_of_setups(collection.processes, drawn_setups).filter(
        (pl.col("role") == "workload") & pl.col("seed").is_in(seeds)
    )
    rows_by_setup = [rows_of_setups(process_rows, [setup]) for setup in drawn_setups]
    if not process_rows.height or max(part.height for part in rows_by_setup) > _PROCESSES_MAX:
        return None
    present_columns = (column for column in _PROCESS_TIMES if process_rows[column].count())
    units = {column: _times_unit(process_rows[column]) for column in present_columns}
    lengths = [part.height for part in rows_by_setup]
    return Table(
        name=f"processes-{workload.stem}",
        title=f"{workload.title}: each process{repeatability_suffix(drawn_setups)}",
        columns=(
            *_SETUP_COLUMNS,
            Column("process", align="left"),
            Column("group", align="left"),
            Column("weight"),
            *(Column(unit.heading(_PROCESS_TIMES[column])) for column, unit in units.items()),
            *(Column(title) for title, _ in _PROCESS_NUMBERS.values()),
        ),
        rows=tuple(
            (
                *(_setup_cells(setup.setup) if number == 0 else (Cell(""), Cell(""))),
                *_process_cells(row, units),
            )
            for setup, part in zip(drawn_setups, rows_by_setup, strict=True)
            for number, row in enumerate(part.iter_rows(named=True))
        ),
        data=process_rows,
        caption=(
            f"One run each: machine {literal(workload.first.machine)}, tick"
            f" {format_time(workload.first.tick_ns)}, seed {seeds.pop()}."
        ),
        sections=tuple(sum(lengths[:number]) for number in range(1, len(lengths))),
        keys=len(_SETUP_COLUMNS) + 1,
    )


def _times_unit(times: pl.Series) -> Quantity:
    """Returns the unit of a column of single-run times, with decimals for all of them."""
    unit = time_unit(times.to_list())
    single = (Estimate(time, time, time, 1) for time in times.drop_nulls())
    return with_common_decimals(unit, single)


def _process_cells(row: dict[str, Any], units: dict[str, Quantity]) -> Row:
    def number_cell(column: str, unit: Quantity) -> Cell:
        """Returns the cell of a column; a dash if the task has no such value."""
        return Cell(NO_VALUE if row[column] is None else unit.number(row[column]))

    return (
        Cell(f"{row['name']} {row['pid']}"),
        Cell(row["group"]),
        number_cell("weight", COUNT_QUANTITY),
        *(number_cell(column, unit) for column, unit in units.items()),
        *(number_cell(column, unit) for column, (_, unit) in _PROCESS_NUMBERS.items()),
    )

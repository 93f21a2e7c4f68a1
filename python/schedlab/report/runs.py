# SPDX-License-Identifier: MIT
"""The page that says of any runs what was measured: whatever they ran, and whoever asked for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from schedlab import collection as runs
from schedlab.collection import Collection, Kept, Repeated, Setup
from schedlab.report.markup import code, listing, literal, slug
from schedlab.report.model import Block, Cell, Column, Page, Row, Section, Table, Text
from schedlab.report.wording import (
    COUNT,
    INDEX,
    NOTHING,
    PERCENT,
    Unit,
    counted,
    mean_of,
    ranges,
    time_unit,
    with_interval,
)
from schedlab.units import format_duration, format_time

NOTABLE_POINTS = 1.0
"""A share is off its ideal from this many percentage points."""
_GROUPS_SHOWN = 6
_PROCESSES_SHOWN = 12
_PROCESS_TABLES = 4


@dataclass(frozen=True)
class Metric:
    """A column of the summary, and how it is printed."""

    column: str
    title: str
    family: str
    unit: Unit | None = None
    """None: a time, whose unit the numbers choose."""


METRICS = (
    Metric("turnaround_mean_ns", "mean", "turnaround"),
    Metric("turnaround_max_ns", "maximum", "turnaround"),
    Metric("response_mean_ns", "mean", "response"),
    Metric("response_max_ns", "maximum", "response"),
    Metric("waiting_mean_ns", "mean", "waiting"),
    Metric("waiting_max_ns", "maximum", "waiting"),
    Metric("wakeup_latency_median_ns", "median", "wake-up latency"),
    Metric("wakeup_latency_p99_ns", "99th percentile", "wake-up latency"),
    Metric("wakeup_latency_max_ns", "maximum", "wake-up latency"),
    Metric("throughput_per_second", "per second", "throughput", COUNT),
    Metric("context_switches", "switches", "scheduling", COUNT),
    Metric("overhead_share", "overhead", "scheduling", PERCENT),
    Metric("fairness_turnaround", "of turnaround", "fairness (Jain)", INDEX),
    Metric("fairness_share", "of share ÷ ideal", "fairness (Jain)", INDEX),
)


def page(collection: Collection) -> Page:
    """All runs: what each workload gave under each policy, and the list."""
    sections = [_workload(collection, setups) for setups in _workloads(collection)]
    failed = [run for run in collection if not run.succeeded]
    return Page(
        name="runs",
        title="All runs",
        lead=_lead(collection, failed),
        sections=(
            *([_failures(failed)] if failed else []),
            *sections,
            Section("List of runs", (_list(collection),)),
        ),
    )


def _lead(collection: Collection, failed: Sequence[Kept]) -> str:
    setups = collection.repeated
    several = any(len(each.runs) > 1 for each in setups.values())
    seeds = (
        " A mean stands above its interval of 95 %, which the seeds give: runs of one setup differ"
        " because their seeds do."
        if several
        else " Each setup was run with one seed, so no interval can be given."
    )
    ending = f" {counted(len(failed), 'run')} did not succeed." if failed else ""
    workloads = counted(len({setup.experiment for setup in setups}), "workload")
    return (
        f"What was measured in {counted(len(collection), 'run')} of {workloads}, by the definitions"
        f" that hold for all.{ending}{seeds}"
    )


def _workloads(collection: Collection) -> list[list[Repeated]]:
    """The setups of one table: what differs in them is the policy and the number of CPUs."""
    together: dict[tuple[str, str, int], list[Repeated]] = {}
    for setup, repeated in collection.repeated.items():
        together.setdefault((setup.experiment, setup.machine, setup.tick_ns), []).append(repeated)
    return list(together.values())


# --- how it was measured


def repeatable(setups: Iterable[Repeated]) -> bool:
    """Does the machine give the same run every time?"""
    return all(run.manifest["repeatable"] for each in setups for run in each.runs)


def provenance(setups: Sequence[Repeated]) -> str:
    """Markdown for a caption: machine, tick, seeds, and what they allow to be said."""
    setup = setups[0].setup
    seeds = sorted({run.seed for each in setups for run in each.runs})
    most = max(len(each.runs) for each in setups)
    machine = literal(setup.machine)
    words = f"Machine {machine}, tick {format_time(setup.tick_ns)}, "
    words += f"seeds {ranges(seeds)}" if len(seeds) > 1 else f"seed {seeds[0]}"
    words += f" ({most} for each setup)." if most < len(seeds) else "."
    if most > 1:
        words += (
            f" Below a mean: its 95 % interval over seeds; {most} runs differ because their seeds"
            " do."
        )
    if not repeatable(setups):
        words += f" **{machine} is not repeatable**: another run would give other numbers."
    return words


def _title(setups: Sequence[Repeated]) -> str:
    """Of a workload, with what tells it from one of the same name."""
    setup = setups[0].setup
    machine = "" if setup.machine == "spike" else f", on {setup.machine}"
    return f"{setup.experiment}{machine}"


def _stem(setups: Sequence[Repeated]) -> str:
    """For names of tables."""
    setup = setups[0].setup
    words = f"{setup.experiment} {setup.machine} {format_time(setup.tick_ns)}"
    return slug(words) or "workload"


# --- a workload


def _workload(collection: Collection, setups: list[Repeated]) -> Section:
    manifest = setups[0].runs[0].manifest
    command = Text(f"{code(manifest['workload'])}, {_extent(setups)}.")
    blocks: list[Block] = [command, _metrics_table(collection, setups)]
    groups = _groups_table(collection, setups)
    if groups:
        blocks.append(groups)
    return Section(_title(setups), (*blocks, *_process_tables(setups)))


def _extent(setups: Sequence[Repeated]) -> str:
    policies = counted(len({each.setup.policy_title for each in setups}), "policy", "policies")
    numbers = ranges(each.setup.cpus for each in setups)
    cpus = f"{numbers} CPU" if numbers == "1" else f"{numbers} CPUs"
    return f"{policies} on {cpus}, {counted(sum(len(each.runs) for each in setups), 'run')}"


def _by_cpus(setups: Sequence[Repeated]) -> list[Repeated]:
    return sorted(setups, key=lambda each: each.setup.cpus)


def _sections(setups: Sequence[Repeated]) -> tuple[int, ...]:
    """Rows with which another number of CPUs begins."""
    return tuple(
        number
        for number in range(1, len(setups))
        if setups[number].setup.cpus != setups[number - 1].setup.cpus
    )


def _who(setup: Setup) -> tuple[Cell, Cell]:
    return Cell(setup.policy_title), Cell(str(setup.cpus))


def _failure(repeated: Repeated) -> Cell:
    """What a cell shows whose setup has a run that failed."""
    run = repeated.failed[0]
    count = f"{len(repeated.failed)} of {len(repeated.runs)} runs: "
    return Cell(run.status, "failed", f"{count}seed {run.seed}: {literal(_message(run))}")


def _message(run: Kept) -> str:
    """How it ended, in words."""
    return str(run.manifest.get("message") or run.status)


def _metrics_table(collection: Collection, setups: list[Repeated]) -> Table:
    ordered = _by_cpus(setups)
    data = _rows_of(collection.summary, ordered)
    shown = [metric for metric in METRICS if _has_values(data, metric.column)]
    units = {
        metric.column: metric.unit or time_unit(data[metric.column].to_list()) for metric in shown
    }
    rows = [
        (*_who(each.setup), *_metric_cells(each, data, shown, units), _seeds(each))
        for each in ordered
    ]
    return Table(
        name=f"metrics-{_stem(setups)}",
        title=f"{_title(setups)}: what the policies did{_mark(setups)}",
        columns=(
            Column("policy", align="left"),
            Column("CPUs"),
            *(Column(units[m.column].heading(m.title), m.family) for m in shown),
            Column("seeds"),
        ),
        rows=tuple(rows),
        data=data,
        caption=provenance(setups),
        sections=_sections(ordered),
    )


def _mark(setups: Iterable[Repeated]) -> str:
    return "" if repeatable(setups) else " (not repeatable)"


def _seeds(each: Repeated) -> Cell:
    return Cell(str(len(each.runs)), "muted")


def _has_values(data: pl.DataFrame, column: str) -> bool:
    return column in data.columns and data[column].null_count() < len(data)


def _rows_of(frame: pl.DataFrame, setups: Sequence[Repeated]) -> pl.DataFrame:
    """Of a frame of the whole collection, the rows of these setups."""
    keys = ("experiment", "policy", "cpus", "machine", "tick_ns")
    wanted = pl.DataFrame(
        [{key: runs.identity(each.runs[0])[key] for key in keys} for each in setups]
    )
    if frame.is_empty():
        return frame
    return frame.join(wanted, on=keys, how="semi", maintain_order="left")


def _metric_cells(
    each: Repeated, data: pl.DataFrame, shown: Sequence[Metric], units: dict[str, Unit]
) -> list[Cell]:
    if not each.succeeded:
        return [_failure(each), *(Cell(NOTHING, "failed") for _ in shown[1:])] if shown else []
    own = _rows_of(data, [each])
    return [
        Cell(with_interval(mean_of(own[metric.column].to_list()), units[metric.column]))
        for metric in shown
    ]


# --- groups


def _groups_table(collection: Collection, setups: list[Repeated]) -> Table | None:
    """Each group's share of the CPUs against its ideal; None where there is one group alone."""
    ordered = _by_cpus(setups)
    data = _rows_of(collection.groups, ordered)
    if data.is_empty():
        return None
    running = data.group_by("group").agg(pl.col("running_ns").sum())
    largest = running.sort("running_ns", "group", descending=[True, False])["group"].to_list()
    names = sorted(largest[:_GROUPS_SHOWN])
    if len(largest) < 2:
        return None
    columns = [Column("policy", align="left"), Column("CPUs")]
    for name in names:
        columns += [Column("share, %", name), Column("ideal, %", name)]
    left_out = len(largest) - len(names)
    return Table(
        name=f"groups-{_stem(setups)}",
        title=f"{_title(setups)}: each group's share of the CPUs{_mark(setups)}",
        columns=tuple(columns),
        rows=tuple(
            (*_who(each.setup), *_share_cells(each, _rows_of(data, [each]), names))
            for each in ordered
        ),
        data=data,
        caption=(
            f"A share is off its ideal from {NOTABLE_POINTS:.0f} percentage point on. "
            + (f"{counted(left_out, 'group')} that ran less are in the files. " if left_out else "")
            + provenance(setups)
        ),
        sections=_sections(ordered),
    )


def _share_cells(each: Repeated, own: pl.DataFrame, names: Sequence[str]) -> list[Cell]:
    if not each.succeeded:
        return [_failure(each), *(Cell(NOTHING, "failed") for _ in range(2 * len(names) - 1))]
    cells = []
    for name in names:
        group = own.filter(pl.col("group") == name)
        mean, ideal = (mean_of(group[column].to_list()) for column in ("share", "ideal_share"))
        if mean is None or ideal is None or len(group) < len(each.runs):
            cells += [Cell(NOTHING), Cell(NOTHING, "muted")]
            continue
        near = abs(mean.mean - ideal.mean) * 100 < NOTABLE_POINTS
        cells.append(Cell(with_interval(mean, PERCENT), "good" if near else "bad"))
        cells.append(Cell(PERCENT.number(ideal.mean), "muted"))
    return cells


# --- processes


def _process_tables(setups: Sequence[Repeated]) -> list[Table]:
    """Of setups with few processes, the first seed's; of workloads with few setups."""
    if len(setups) > _PROCESS_TABLES:
        return []
    first = [(each, each.runs[0]) for each in _by_cpus(setups) if each.runs[0].succeeded]
    tables = []
    for each, run in first:
        data = run.metrics().processes.filter(pl.col("role") == "workload")
        if 0 < len(data) <= _PROCESSES_SHOWN:
            tables.append(_process_table(each, run, data))
    return tables


_PROCESS_TIMES = {
    "turnaround_ns": "turnaround",
    "response_ns": "response",
    "waiting_ns": "waiting",
    "running_ns": "running",
    "blocked_ns": "blocked",
}
_PROCESS_COUNTS = ("selections", "preemptions", "migrations")


def _process_table(each: Repeated, run: Kept, data: pl.DataFrame) -> Table:
    setup = each.setup
    units = {column: time_unit(data[column].to_list()) for column in _PROCESS_TIMES}
    cpus = counted(setup.cpus, "CPU")
    return Table(
        name=f"processes-{_stem([each])}-{slug(setup.policy_title)}-{setup.cpus}cpu",
        title=f"{_title([each])}: each process under {setup.policy_title} on {cpus}{_mark([each])}",
        columns=(
            Column("process", align="left"),
            Column("group", align="left"),
            Column("weight"),
            *(Column(units[column].heading(title)) for column, title in _PROCESS_TIMES.items()),
            *(Column(column) for column in _PROCESS_COUNTS),
            Column("share, %"),
            Column("ideal, %"),
        ),
        rows=tuple(_process_row(row, units) for row in data.iter_rows(named=True)),
        data=data,
        caption=(
            f"One run: machine {literal(setup.machine)}, tick {format_time(setup.tick_ns)}, seed"
            f" {run.seed}."
        ),
    )


def _process_row(row: dict[str, Any], units: dict[str, Unit]) -> Row:
    def number(column: str, unit: Unit) -> Cell:
        return Cell(NOTHING if row[column] is None else unit.number(row[column]))

    return (
        Cell(f"{row['name']} {row['pid']}"),
        Cell(row["group"]),
        number("weight", COUNT),
        *(number(column, unit) for column, unit in units.items()),
        *(number(column, COUNT) for column in _PROCESS_COUNTS),
        number("share", PERCENT),
        number("ideal_share", PERCENT),
    )


# --- all of them


def _failures(failed: Sequence[Kept]) -> Section:
    """Each run that did not succeed, with what it said."""
    blocks = [
        Text(
            f"**{literal(_run_title(run))}**: {literal(run.status)}, in {code(str(run.folder))}\n\n"
            + listing(_message(run)),
            "warning",
        )
        for run in failed
    ]
    return Section("What failed", tuple(blocks))


def _run_title(run: Kept) -> str:
    setup = run.setup
    cpus = counted(setup.cpus, "CPU")
    return f"{setup.experiment}, {setup.policy_title}, {cpus}, seed {run.seed}"


def _list(collection: Collection) -> Table:
    columns = ("workload", "policy", "CPUs", "seed", "machine", "status", "took", "folder")
    return Table(
        name="all-runs",
        title="All runs, in the order in which they were read",
        columns=tuple(
            Column(title, align="right" if title in ("CPUs", "seed", "took") else "left")
            for title in columns
        ),
        rows=tuple(_listed(run) for run in collection),
        data=pl.DataFrame(
            [
                {
                    **runs.identity(run),
                    "workload": run.manifest["workload"],
                    "message": _message(run),
                    "host_seconds": run.manifest.get("host_seconds"),
                    "folder": str(run.folder),
                }
                for run in collection
            ],
            infer_schema_length=None,
        ),
        caption="*Took* is time of the host, which says nothing of the scheduler.",
    )


def _listed(run: Kept) -> Row:
    setup = run.setup
    seconds = run.manifest.get("host_seconds")
    mark = "" if run.manifest["repeatable"] else " (not repeatable)"
    status = (
        Cell("success")
        if run.succeeded
        else Cell(run.status, "failed", literal(_message(run).partition("\n")[0]))
    )
    return (
        Cell(setup.experiment),
        Cell(setup.policy_title),
        Cell(str(setup.cpus)),
        Cell(str(run.seed)),
        Cell(f"{setup.machine}{mark}"),
        status,
        Cell(NOTHING if seconds is None else format_duration(seconds), "muted"),
        Cell(run.folder.name, "muted"),
    )

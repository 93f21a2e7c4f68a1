# SPDX-License-Identifier: MIT
"""Charts of one workload, whatever it is: those that there is something to see in."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import polars as pl

from schedlab.display.names import unique_slugs
from schedlab.report import charts
from schedlab.report.markup import literal
from schedlab.report.model import Chart
from schedlab.report.provenance import mark, provenance, repeatable
from schedlab.report.wording import cpus
from schedlab.report.workload_tables import Workload
from schedlab.runs.collection import Collection, Repeated
from schedlab.units import format_time

_LANES = 8
"""The most runs of one workload of which each process is drawn."""
_TRACES = 60
"""The most traces that are read for the latencies of one workload."""
_WIDE_RANGE = 50
"""The ratio of the greatest value to the smallest beyond which an axis is logarithmic."""


def workload_charts(collection: Collection, workload: Workload) -> Iterator[Chart]:
    """Gives the charts in the order of interest."""
    yield from _turnaround(collection, workload)
    yield from _response(collection, workload)
    yield from _latencies(collection, workload)
    yield from _lanes(collection, workload)


def _turnaround(collection: Collection, workload: Workload) -> Iterator[Chart]:
    """Draws turnaround over the number of CPUs, where there are several."""
    rows = workload.rows_of(collection.summary)
    column = "turnaround_mean_ns"
    if rows["cpus"].n_unique() < 2 or column not in rows.columns or not rows[column].count():
        return
    yield from charts.drawn(
        charts.lines,
        f"turnaround-{workload.stem}",
        rows.with_columns(milliseconds=pl.col(column) / 1e6),
        title=f"{workload.title}: turnaround over CPUs{mark(workload.setups)}",
        caption=provenance(workload.setups, brackets=False),
        x="cpus",
        y="milliseconds",
        x_title="CPUs",
        y_title="mean turnaround, ms",
    )


def _response(collection: Collection, workload: Workload) -> Iterator[Chart]:
    """Draws the response of all processes of all runs: a box for each policy."""
    rows = workload.rows_of(collection.processes)
    if rows.is_empty():
        return
    values = rows.filter((pl.col("role") == "workload") & pl.col("response_ns").is_not_null())
    values = values.with_columns(
        milliseconds=pl.col("response_ns") / 1e6,
        panel=pl.format("{} CPUs", "cpus").str.replace(r"^1 CPUs$", "1 CPU"),
    )
    if values.height < 2 * len(workload.setups):
        return
    several = values["cpus"].n_unique() > 1
    yield from charts.drawn(
        charts.boxes,
        f"response-{workload.stem}",
        values,
        title=f"{workload.title}: response of all processes{mark(workload.setups)}",
        caption=provenance(workload.setups, brackets=False),
        category="policy",
        value="milliseconds",
        x_title="response, ms",
        panel="panel" if several else None,
        log=_is_wide(values["milliseconds"]),
    )


def _is_wide(values: pl.Series) -> bool:
    above = values.filter(values > 0)
    low, high = above.quantile(0.1), above.quantile(0.9)
    return bool(low and high and high / low > _WIDE_RANGE)


def _latencies(collection: Collection, workload: Workload) -> Iterator[Chart]:
    """A chart for each number of CPUs: a curve for each policy."""
    counts = sorted({each.setup.cpus for each in workload.setups})
    if sum(len(each.runs) for each in workload.setups) > _TRACES:
        return
    rows = workload.rows_of(collection.summary)
    if "wakeups" not in rows.columns or not rows["wakeups"].sum():
        return
    for count in counts:
        setups = [e for e in workload.setups if e.setup.cpus == count and e.succeeded]
        if not setups:
            continue
        yield from charts.drawn(
            charts.latencies,
            f"latencies-{workload.stem}-{count}cpu",
            {e.setup.policy_title: [run.trace() for run in e.runs] for e in setups},
            title=f"{workload.title}: wake-up latency on {cpus([count])}{mark(setups)}",
            caption=provenance(setups, brackets=False),
        )


def _lanes(collection: Collection, workload: Workload) -> Iterator[Chart]:
    """Charts of what each process did: of the first seed's run under each policy, on as many CPUs as are first;
    on more, as far as _LANES reach."""
    stems = unique_slugs(
        [f"{each.setup.policy_title} {each.setup.cpus}cpu" for each in workload.setups], "setup"
    )
    drawn = 0
    for _, members in groupby(
        zip(workload.setups, stems, strict=True), key=lambda each: each[0].setup.cpus
    ):
        setups = list(members)
        if drawn and drawn + len(setups) > _LANES:
            return
        shown = [each for each in setups[:_LANES] if each[0].runs[0].succeeded]
        length_ns = charts.readable_length_ns(each.runs[0].trace() for each, _ in shown)
        for each, stem in shown:
            yield from charts.drawn(_lane, workload, each, stem, length_ns)
        drawn += len(setups)


def _lane(workload: Workload, each: Repeated, stem: str, length_ns: int | None) -> Chart:
    setup, run = each.setup, each.runs[0]
    doubt = "" if repeatable([each]) else " Not repeatable."
    return charts.lanes(
        f"lanes-{workload.stem}-{stem}",
        run.trace(),
        title=f"{workload.title}: {setup.policy_title} on {cpus([setup.cpus])}{mark([each])}",
        caption=(
            f"Machine {literal(setup.machine)}, tick {format_time(setup.tick_ns)}, seed"
            f" {run.seed}.{doubt}"
        ),
        length_ns=length_ns,
    )

# SPDX-License-Identifier: MIT
"""Charts of one workload, whatever it is: those that there is something to see in."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import polars as pl

from schedlab.base.display.markdown import literal
from schedlab.base.display.names import unique_slugs
from schedlab.report import charts
from schedlab.report.model import Chart
from schedlab.report.wording import cpus, mark, provenance, repeatable
from schedlab.report.workload_tables import Links, Workload
from schedlab.runs.collection import Collection, Repeated
from schedlab.units import format_time

_LANES = 8
"""The most runs of one workload of which each process is drawn."""
_TRACES = 60
"""The most traces that are read for the latencies of one workload."""


def workload_charts(collection: Collection, workload: Workload, links: Links) -> Iterator[Chart]:
    """Gives the charts in the order of interest. `links`: waits to which those of wake-up latencies lead."""
    yield from _turnaround(collection, workload)
    for metric in ("turnaround", "response", "waiting"):
        yield from _distribution(collection, workload, metric)
    yield from _latencies(collection, workload, links)
    for shown, length_ns in _drawn_one_by_one(workload):
        for each, stem in shown:
            yield from charts.drawn(_lane, workload, each, stem, length_ns)
        for each, stem in shown:
            yield from charts.drawn(_lag, workload, each, stem, length_ns)


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
        y_title="mean turnaround (ms)",
    )


def _distribution(collection: Collection, workload: Workload, metric: str) -> Iterator[Chart]:
    """Draws a time of all processes of all runs: a curve for each policy, a picture for each number of CPUs."""
    rows = workload.rows_of(collection.processes)
    if rows.is_empty():
        return
    values = rows.filter(
        (pl.col("role") == "workload") & pl.col(f"{metric}_ns").is_not_null()
    ).sort("cpus", maintain_order=True)
    if values.height < 2 * len(workload.setups):
        return
    yield from charts.drawn(
        charts.ecdf,
        f"{metric}-distribution-{workload.stem}",
        values.with_columns(
            ms=pl.col(f"{metric}_ns") / 1e6,
            panel=pl.col("cpus").map_elements(lambda count: cpus([count]), return_dtype=pl.String),
        ),
        title=f"{workload.title}: {metric} of all processes{mark(workload.setups)}",
        caption=provenance(workload.setups, brackets=False),
        value="ms",
        x_title=f"{metric} (ms)",
        y_title="processes (%)",
        run="seed",
        panel="panel" if values["cpus"].n_unique() > 1 else None,
    )


def _latencies(collection: Collection, workload: Workload, links: Links) -> Iterator[Chart]:
    """Draws all wake-up latencies: a curve for each policy, a picture for each number of CPUs."""
    setups = [each for each in workload.setups if each.succeeded]
    rows = workload.rows_of(collection.summary)
    many = sum(len(each.runs) for each in setups) > _TRACES
    if many or not setups or "wakeups" not in rows.columns or not rows["wakeups"].sum():
        return
    counts = sorted({each.setup.cpus for each in setups})
    panels = {count: cpus([count]) if len(counts) > 1 else "" for count in counts}
    waits = {
        (panels[own.cpus], own.policy_title, shown.duration_ns): shown.chart
        for (place, column), shown in links.items()
        if column.startswith("wakeup_latency") and (own := workload.setups[place].setup)
    }
    yield from charts.drawn(
        charts.latencies_in_panels,
        f"latencies-{workload.stem}",
        {
            panels[count]: {
                each.setup.policy_title: [run.trace() for run in each.runs]
                for each in setups
                if each.setup.cpus == count
            }
            for count in counts
        },
        title=f"{workload.title}: wake-up latency{mark(setups)}",
        caption=provenance(setups, brackets=False),
        waits=waits,
    )


def _drawn_one_by_one(
    workload: Workload,
) -> Iterator[tuple[list[tuple[Repeated, str]], int | None]]:
    """The setups of which each process is drawn, from the first seed's run, with their stems; and how much of
    them: under each policy, on as many CPUs as are first; on more, as far as _LANES reach."""
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
        yield shown, length_ns
        drawn += len(setups)


def _lane(workload: Workload, each: Repeated, stem: str, length_ns: int | None) -> Chart:
    return charts.lanes(
        f"lanes-{workload.stem}-{stem}",
        each.runs[0].trace(),
        title=_title(workload, each),
        caption=_caption(each),
        length_ns=length_ns,
    )


def _lag(workload: Workload, each: Repeated, stem: str, length_ns: int | None) -> Chart:
    return charts.lag_over_time(
        f"lag-{workload.stem}-{stem}",
        each.runs[0].trace(),
        title=f"{_title(workload, each)}: lag",
        caption=_caption(each),
        length_ns=length_ns,
    )


def _title(workload: Workload, each: Repeated) -> str:
    setup = each.setup
    return f"{workload.title}: {setup.policy_title} on {cpus([setup.cpus])}{mark([each])}"


def _caption(each: Repeated) -> str:
    setup, seed = each.setup, each.runs[0].seed
    doubt = "" if repeatable([each]) else " Not repeatable."
    return (
        f"Machine {literal(setup.machine)}, tick {format_time(setup.tick_ns)}, seed {seed}.{doubt}"
    )

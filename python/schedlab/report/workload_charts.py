# SPDX-License-Identifier: MIT
"""Charts of one workload. Charts without content are left out."""

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
"""Maximum number of a workload's runs whose tasks are drawn one by one."""
_TRACES = 60
"""Maximum number of traces that are read for the latencies of one workload."""


def workload_charts(collection: Collection, workload: Workload, links: Links) -> Iterator[Chart]:
    """Yields the charts in order of interest.

    `links`: the charts of single waits, for marks on latencies.
    """
    yield from _turnaround(collection, workload)
    for metric in ("turnaround", "response", "waiting"):
        yield from _distribution(collection, workload, metric)
    yield from _latencies(collection, workload, links)
    for shown, length_ns in _drawn_one_by_one(workload):
        for chart, stem in shown:
            yield from charts.drawn(_lane, workload, chart, stem, length_ns)
        for chart, stem in shown:
            yield from charts.drawn(_lag, workload, chart, stem, length_ns)


def _turnaround(collection: Collection, workload: Workload) -> Iterator[Chart]:
    """Draws turnaround over the number of CPUs, if there are several."""
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
    """Draws the distribution of a time over all tasks: a curve per
    policy, a panel per number of CPUs.
    """
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
    """Draws the distribution of wake-up latencies: a curve per
    policy, a panel per number of CPUs.
    """
    setups = [setup for setup in workload.setups if setup.succeeded]
    rows = workload.rows_of(collection.summary)
    many = sum(len(setup.runs) for setup in setups) > _TRACES
    if many or not setups or "wakeups" not in rows.columns or not rows["wakeups"].sum():
        return
    counts = sorted({setup.setup.cpus for setup in setups})
    panels = {count: cpus([count]) if len(counts) > 1 else "" for count in counts}
    waits = {
        (panels[setup_key.cpus], setup_key.policy_title, shown.duration_ns): shown.chart
        for (place, column), shown in links.items()
        if column.startswith("wakeup_latency") and (setup_key := workload.setups[place].setup)
    }
    yield from charts.drawn(
        charts.latencies_in_panels,
        f"latencies-{workload.stem}",
        {
            panels[count]: {
                setup.setup.policy_title: [run.trace() for run in setup.runs]
                for setup in setups
                if setup.setup.cpus == count
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
    """Yields the configurations whose tasks are drawn, with file stems and the drawn length in ns.

    On the first number of CPUs, all policies are drawn; on others, up to _LANES runs in all.
    """
    stems = unique_slugs(
        [f"{setup.setup.policy_title} {setup.setup.cpus}cpu" for setup in workload.setups], "setup"
    )
    drawn = 0
    for _, members in groupby(
        zip(workload.setups, stems, strict=True), key=lambda pair: pair[0].setup.cpus
    ):
        setups = list(members)
        if drawn and drawn + len(setups) > _LANES:
            return
        shown = [pair for pair in setups[:_LANES] if pair[0].runs[0].succeeded]
        length_ns = charts.readable_length_ns(setup.runs[0].trace() for setup, _ in shown)
        yield shown, length_ns
        drawn += len(setups)


def _lane(workload: Workload, setup: Repeated, stem: str, length_ns: int | None) -> Chart:
    return charts.lanes(
        f"lanes-{workload.stem}-{stem}",
        setup.runs[0].trace(),
        title=_title(workload, setup),
        caption=_caption(setup),
        length_ns=length_ns,
    )


def _lag(workload: Workload, setup: Repeated, stem: str, length_ns: int | None) -> Chart:
    return charts.lag_over_time(
        f"lag-{workload.stem}-{stem}",
        setup.runs[0].trace(),
        title=f"{_title(workload, setup)}: lag",
        caption=_caption(setup),
        length_ns=length_ns,
    )


def _title(workload: Workload, repeated: Repeated) -> str:
    setup = repeated.setup
    return f"{workload.title}: {setup.policy_title} on {cpus([setup.cpus])}{mark([repeated])}"


def _caption(repeated: Repeated) -> str:
    setup, seed = repeated.setup, repeated.runs[0].seed
    doubt = "" if repeatable([repeated]) else " Not repeatable."
    return (
        f"Machine {literal(setup.machine)}, tick {format_time(setup.tick_ns)}, seed {seed}.{doubt}"
    )

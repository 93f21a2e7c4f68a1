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
from schedlab.report.wording import are_repeatable, cpus_text, provenance_text, repeatability_suffix
from schedlab.report.workload_tables import WaitLinks, Workload
from schedlab.runs.collection import Collection, ConfigurationRuns
from schedlab.units import format_time

_LANE_CHARTS_MAX = 8
"""Maximum number of a workload's runs whose tasks are drawn one by one."""
_LATENCY_TRACES_MAX = 60
"""Maximum number of traces that are read for the latencies of one workload."""


def workload_charts(
    collection: Collection, workload: Workload, links: WaitLinks
) -> Iterator[Chart]:
    """Yields the charts in order of interest.

    `links`: the charts of single waits, for marks on latencies.
    """
    yield from _turnaround_charts(collection, workload)
    for metric in ("turnaround", "response", "waiting"):
        yield from _distribution_charts(collection, workload, metric)
    yield from _latency_charts(collection, workload, links)
    for drawn_setups, length_ns in _separately_drawn_setups(workload):
        for chart, stem in drawn_setups:
            yield from charts.draw_if_possible(_lane_chart, workload, chart, stem, length_ns)
        for chart, stem in drawn_setups:
            yield from charts.draw_if_possible(_lag_chart, workload, chart, stem, length_ns)


def _turnaround_charts(collection: Collection, workload: Workload) -> Iterator[Chart]:
    """Draws turnaround over the number of CPUs, if there are several."""
    rows = workload.rows_of(collection.summary)
    column = "turnaround_mean_ns"
    if rows["cpus"].n_unique() < 2 or column not in rows.columns or not rows[column].count():
        return
    yield from charts.draw_if_possible(
        charts.lines,
        f"turnaround-{workload.stem}",
        rows.with_columns(milliseconds=pl.col(column) / 1e6),
        title=f"{workload.title}: turnaround over CPUs{repeatability_suffix(workload.setups)}",
        caption=provenance_text(workload.setups, brackets=False),
        x="cpus",
        y="milliseconds",
        x_title="CPUs",
        y_title="mean turnaround (ms)",
    )


def _distribution_charts(
    collection: Collection, workload: Workload, metric: str
) -> Iterator[Chart]:
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
    yield from charts.draw_if_possible(
        charts.ecdf,
        f"{metric}-distribution-{workload.stem}",
        values.with_columns(
            ms=pl.col(f"{metric}_ns") / 1e6,
            panel=pl.col("cpus").map_elements(
                lambda count: cpus_text([count]), return_dtype=pl.String
            ),
        ),
        title=f"{workload.title}: {metric} of all processes{repeatability_suffix(workload.setups)}",
        caption=provenance_text(workload.setups, brackets=False),
        value="ms",
        x_title=f"{metric} (ms)",
        y_title="processes (%)",
        run="seed",
        panel="panel" if values["cpus"].n_unique() > 1 else None,
    )


def _latency_charts(
    collection: Collection, workload: Workload, links: WaitLinks
) -> Iterator[Chart]:
    """Draws the distribution of wake-up latencies: a curve per
    policy, a panel per number of CPUs.
    """
    setups = [setup for setup in workload.setups if setup.succeeded]
    rows = workload.rows_of(collection.summary)
    has_too_many_runs = sum(len(setup.runs) for setup in setups) > _LATENCY_TRACES_MAX
    if (
        has_too_many_runs
        or not setups
        or "wakeups" not in rows.columns
        or not rows["wakeups"].sum()
    ):
        return
    counts = sorted({setup.setup.cpus for setup in setups})
    panels = {count: cpus_text([count]) if len(counts) > 1 else "" for count in counts}
    waits = {
        (panels[setup_key.cpus], setup_key.policy_title, shown.duration_ns): shown.chart
        for (place, column), shown in links.items()
        if column.startswith("wakeup_latency") and (setup_key := workload.setups[place].setup)
    }
    yield from charts.draw_if_possible(
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
        title=f"{workload.title}: wake-up latency{repeatability_suffix(setups)}",
        caption=provenance_text(setups, brackets=False),
        waits=waits,
    )


def _separately_drawn_setups(
    workload: Workload,
) -> Iterator[tuple[list[tuple[ConfigurationRuns, str]], int | None]]:
    """Yields the configurations whose tasks are drawn, with file stems and the drawn length in ns.

    Draws up to _LANE_CHARTS_MAX policies on the first number of CPUs. Draws another number of CPUs
    only if at most _LANE_CHARTS_MAX runs are considered in all.
    """
    stems = unique_slugs(
        [f"{setup.setup.policy_title} {setup.setup.cpus}cpu" for setup in workload.setups], "setup"
    )
    considered_count = 0
    for _, members in groupby(
        zip(workload.setups, stems, strict=True), key=lambda pair: pair[0].setup.cpus
    ):
        setups = list(members)
        if considered_count and considered_count + len(setups) > _LANE_CHARTS_MAX:
            return
        drawn_setups = [pair for pair in setups[:_LANE_CHARTS_MAX] if pair[0].runs[0].succeeded]
        length_ns = charts.readable_length_ns(setup.runs[0].trace() for setup, _ in drawn_setups)
        yield drawn_setups, length_ns
        considered_count += len(setups)


def _lane_chart(
    workload: Workload, setup: ConfigurationRuns, stem: str, length_ns: int | None
) -> Chart:
    """Draws a lane for each task of the first seed's run. `stem`: a part of the file's name."""
    return charts.lanes(
        f"lanes-{workload.stem}-{stem}",
        setup.runs[0].trace(),
        title=_chart_title(workload, setup),
        caption=_chart_caption(setup),
        length_ns=length_ns,
    )


def _lag_chart(
    workload: Workload, setup: ConfigurationRuns, stem: str, length_ns: int | None
) -> Chart:
    """Draws the lag of each task of the first seed's run. `stem`: a part of the file's name."""
    return charts.lag_over_time(
        f"lag-{workload.stem}-{stem}",
        setup.runs[0].trace(),
        title=f"{_chart_title(workload, setup)}: lag",
        caption=_chart_caption(setup),
        length_ns=length_ns,
    )


def _chart_title(workload: Workload, repeated: ConfigurationRuns) -> str:
    """Returns the title of a chart of this configuration."""
    setup = repeated.setup
    return f"{workload.title}: {setup.policy_title} on {cpus_text([setup.cpus])}{repeatability_suffix([repeated])}"


def _chart_caption(repeated: ConfigurationRuns) -> str:
    """Returns the caption of a chart of this configuration."""
    setup, seed = repeated.setup, repeated.runs[0].seed
    repeatability_note = "" if are_repeatable([repeated]) else " Not repeatable."
    return f"Machine {literal(setup.machine)}, tick {format_time(setup.tick_ns)}, seed {seed}.{repeatability_note}"

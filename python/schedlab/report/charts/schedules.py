# SPDX-License-Identifier: MIT
"""Draws published and measured schedules in one chart: which task ran over time."""

from typing import Any

import altair as alt
import polars as pl

from schedlab.report.charts.levels import find_stays
from schedlab.report.charts.parts import (
    NothingToDraw,
    Styles,
    chart_with_data,
    join_sentences,
    legend_selection,
    opacity_if,
)
from schedlab.report.charts.processes import chart_processes, row_axis
from schedlab.report.charts.theme import WIDTH
from schedlab.report.model import Chart
from schedlab.trace import Trace

ROW_HEIGHT = 18
PUBLISHED, MEASURED = "published", "measured"
_KINDS_IN_ORDER = (PUBLISHED, MEASURED)


def schedules(name: str, slices: pl.DataFrame, *, title: str, caption: str) -> Chart:
    """Draws two bars for each `row`, such as a level: the published and the measured schedule.

    `slices` has one row per time slice: kind (published, measured), row (text, in order
    of appearance; may be empty), series (the task), begin and end. Raises
    NothingToDraw if `slices` is empty.
    """
    if slices.is_empty():
        raise NothingToDraw(f"chart {name}: there is no time slice")
    row_label = (
        pl.when(pl.col("row") == "").then("kind").otherwise(pl.format("{}, {}", "row", "kind"))
    )
    labelled = slices.with_columns(line=row_label)
    distinct = labelled.select("row", "kind", "line").unique()
    order = [
        line
        for row in dict.fromkeys(slices["row"])
        for kind in _KINDS_IN_ORDER
        for line in distinct.filter((pl.col("row") == row) & (pl.col("kind") == kind))["line"]
    ]
    has_both_kinds = slices["kind"].n_unique() > 1
    return Chart(
        name,
        title,
        _draw(labelled, order),
        slices,
        join_sentences(
            caption, "Each pair of rows: published above, measured below." if has_both_kinds else ""
        ),
        _describe(slices),
    )


def find_measured_slices(trace: Trace) -> pl.DataFrame:
    """Returns the time slices of the workload's tasks in ticks since the start
    of the window, named by group.
    """
    processes = chart_processes(trace)
    stays = find_stays(processes).filter(pl.col("role") == "workload").sort("begin_ns")
    continues = (
        (pl.col("life") == pl.col("life").shift())
        & pl.col("level").eq_missing(pl.col("level").shift())
        & (pl.col("left").shift() == "")
    )
    ticks = [
        ((pl.col(name) - processes.window.begin_ns) / trace.header.tick_ns).alias(name)
        for name in ("begin_ns", "end_ns")
    ]
    return (
        stays.with_columns(ticks)
        .group_by((~continues).fill_null(True).cum_sum().alias("turn"), maintain_order=True)
        .agg(
            pl.lit(MEASURED).alias("kind"),
            pl.format("level {}", pl.col("level").first()).fill_null("").alias("row"),
            pl.col("group").first().alias("series"),
            pl.col("begin_ns").first().alias("begin"),
            pl.col("end_ns").last().alias("end"),
        )
        .drop("turn")
        .sort("row", "begin", descending=[True, False])
    )


def _draw(labelled: pl.DataFrame, order: list[str]) -> Any:
    """Draws the published and the measured bar of each row.

    `order`: the rows from top to bottom.
    """
    chosen = legend_selection()
    styles = Styles(sorted(set(labelled["series"])), policies=False)
    bars = (
        chart_with_data(labelled.select("line", "series", "begin", "end"))
        .mark_bar(height={"band": 0.8})
        .encode(
            alt.X("begin:Q", title="ticks", axis=alt.Axis(grid=False)),
            alt.X2("end:Q"),
            row_axis("line", order, 0.1),
            styles.colour(symbolType="square"),
            opacity=opacity_if(chosen, 0.9),
            tooltip=[
                alt.Tooltip("series:N", title="process"),
                alt.Tooltip("line:N", title="row"),
                alt.Tooltip("begin:Q", title="from"),
                alt.Tooltip("end:Q", title="to"),
            ],
        )
    )
    return bars.add_params(chosen).properties(width=WIDTH, height=ROW_HEIGHT * len(order) + 4)


def _describe(slices: pl.DataFrame) -> str:
    """Returns the chart's description for readers who cannot see it."""
    texts = [
        f"{kind}: {len(rows)} time slices of {rows['series'].n_unique()} processes"
        for (kind,), rows in slices.group_by("kind", maintain_order=True)
    ]
    return "Time slices over ticks. " + "; ".join(texts) + "."

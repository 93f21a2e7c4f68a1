# SPDX-License-Identifier: MIT
"""Draws published and measured schedules in one chart: which task ran over time."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from schedlab.report.charts.levels import stays_of
from schedlab.report.charts.parts import (
    NothingToDraw,
    Styles,
    chart_of,
    chosen_in_legend,
    opacity_if,
    sentences,
)
from schedlab.report.charts.processes import processes_of, rows_of
from schedlab.report.charts.theme import WIDTH
from schedlab.report.model import Chart
from schedlab.trace import Trace

ROW_HEIGHT = 18
PUBLISHED, MEASURED = "published", "measured"
_KINDS = (PUBLISHED, MEASURED)


def schedules(
    name: str, turns: pl.DataFrame, *, title: str, caption: str, x_title: str = "ticks"
) -> Chart:
    """Draws two bars for each `row`, such as a level: the published and the measured schedule.

    `turns` has one row per time slice: kind (published, measured), row (text, in order
    of appearance; may be empty), series (the task), begin and end. Raises
    NothingToDraw if `turns` is empty.
    """
    if turns.is_empty():
        raise NothingToDraw(f"chart {name}: there is no time slice")
    place = pl.when(pl.col("row") == "").then("kind").otherwise(pl.format("{}, {}", "row", "kind"))
    behind = turns.with_columns(line=place)
    distinct = behind.select("row", "kind", "line").unique()
    order = [
        line
        for row in dict.fromkeys(turns["row"])
        for kind in _KINDS
        for line in distinct.filter((pl.col("row") == row) & (pl.col("kind") == kind))["line"]
    ]
    both = turns["kind"].n_unique() > 1
    return Chart(
        name,
        title,
        _chart(behind, order, x_title),
        turns,
        sentences(caption, "Each pair of rows: published above, measured below." if both else ""),
        _words(turns, x_title),
    )


def measured_turns(trace: Trace) -> pl.DataFrame:
    """Returns the time slices of the workload's tasks in ticks since the start
    of the window, named by group.
    """
    processes = processes_of(trace)
    stays = stays_of(processes).filter(pl.col("role") == "workload").sort("begin_ns")
    goes_on = (
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
        .group_by((~goes_on).fill_null(True).cum_sum().alias("turn"), maintain_order=True)
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


def _chart(behind: pl.DataFrame, order: list[str], x_title: str) -> Any:
    chosen = chosen_in_legend()
    styles = Styles(sorted(set(behind["series"])), policies=False)
    bars = (
        chart_of(behind.select("line", "series", "begin", "end"))
        .mark_bar(height={"band": 0.8})
        .encode(
            alt.X("begin:Q", title=x_title, axis=alt.Axis(grid=False)),
            alt.X2("end:Q"),
            rows_of("line", order, 0.1),
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


def _words(turns: pl.DataFrame, x_title: str) -> str:
    texts = [
        f"{kind}: {len(rows)} time slices of {rows['series'].n_unique()} processes"
        for (kind,), rows in turns.group_by("kind", maintain_order=True)
    ]
    return f"Time slices over {x_title}. " + "; ".join(texts) + "."

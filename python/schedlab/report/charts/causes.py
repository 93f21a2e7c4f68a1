# SPDX-License-Identifier: MIT
"""Draws the causes of waiting: a bar for each policy, divided by what ran during the waits."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from schedlab.base.display.numbers import duration
from schedlab.report.charts.parts import (
    NUMBER_FORMAT,
    NothingToDraw,
    Styles,
    chart_with_data,
    panel_order,
    stack_charts,
)
from schedlab.report.charts.theme import WIDTH
from schedlab.report.model import Chart

ROW_HEIGHT = 24
_PANELS_MAX = 5
"""Maximum number of groups that have a panel, and of causes with a colour.

The largest are drawn.
"""
_OTHERS_LABEL = "others"


def causes(name: str, data: pl.DataFrame, *, title: str, caption: str) -> Chart:
    """Draws a panel for each waiting group and a bar for each `setup`, divided by cause.

    `data`: setup, waiting, because_of, duration_ns (schedlab.analysis.explanation.delays). The
    scale of each panel fits its longest bar, so lengths of different panels cannot be compared.
    """
    waited = data.group_by("waiting").agg(pl.col("duration_ns").sum())
    largest_groups = waited.filter(pl.col("duration_ns") > 0).top_k(_PANELS_MAX, by="duration_ns")
    drawn_groups = sorted(largest_groups["waiting"].to_list())
    if not drawn_groups:
        raise NothingToDraw(f"chart {name}: no process waited")
    series, drawn = _merge_small_causes(data.filter(pl.col("waiting").is_in(drawn_groups)))
    styles = Styles(
        series, policies=False, muted=[name for name in series if name == _OTHERS_LABEL]
    )
    setups = data["setup"].unique(maintain_order=True).to_list()
    pictures = [
        (
            panel,
            _draw_panel(drawn.filter(pl.col("waiting") == panel), styles, setups, is_last=is_last),
        )
        for panel, is_last in panel_order(drawn.sort("waiting", maintain_order=True)["waiting"])
    ]
    return Chart(name, title, stack_charts(pictures), data, caption, _describe(drawn))


def _merge_small_causes(data: pl.DataFrame) -> tuple[list[str], pl.DataFrame]:
    """Returns the causes, the largest first, and the rows with
    small causes merged into `others`.
    """
    sums = data.group_by("because_of").agg(pl.col("duration_ns").sum())
    order = sums.sort("duration_ns", "because_of", descending=[True, False])["because_of"].to_list()
    shown = order[: _PANELS_MAX + 1]
    cause = (
        pl.when(pl.col("because_of").is_in(shown))
        .then("because_of")
        .otherwise(pl.lit(_OTHERS_LABEL))
    )
    summed = data.group_by("setup", "waiting", cause.alias("series"), maintain_order=True).agg(
        ms=pl.col("duration_ns").sum() / 1e6
    )
    return [*shown, *([_OTHERS_LABEL] if len(order) > len(shown) else [])], summed


def _draw_panel(rows: pl.DataFrame, styles: Styles, setups: Sequence[str], *, is_last: bool) -> Any:
    """Draws one waiting group: a bar for each setup, divided by cause."""
    order = {name: number for number, name in enumerate(styles.series)}
    ordered_rows = rows.with_columns(
        order=pl.col("series").replace_strict(order, return_dtype=pl.Int64)
    ).select("setup", "series", "ms", "order")
    return (
        chart_with_data(ordered_rows)
        .mark_bar(height={"band": 0.72})
        .encode(
            alt.X(
                "ms:Q",
                title="time that its processes waited (ms)" if is_last else None,
                axis=alt.Axis(format=NUMBER_FORMAT),
            ),
            alt.Y("setup:N", title=None, sort=list(setups)),
            styles.colour(),
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("setup:N", title="policy"),
                alt.Tooltip("series:N", title="caused by"),
                alt.Tooltip("ms:Q", title="ms", format=NUMBER_FORMAT),
            ],
        )
        .properties(width=WIDTH, height=alt.Step(ROW_HEIGHT))
    )


def _describe(rows: pl.DataFrame) -> str:
    """Returns the chart's description for readers who cannot see it."""
    largest = rows.sort("ms", descending=True).group_by("waiting", maintain_order=True).first()
    texts = [
        f"{row['waiting']} under {row['setup']} for {duration(row['ms'] * 1e6)} while {row['series']}"
        for row in largest.iter_rows(named=True)
    ]
    return "Causes of waiting by group and policy; the largest: " + "; ".join(texts) + "."

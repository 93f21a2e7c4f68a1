# SPDX-License-Identifier: MIT
"""What several charts are put together from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ParamSpec

import altair as alt
import numpy as np
import polars as pl

from schedlab.analysis.comparison.statistics import estimates
from schedlab.base.display.names import json_text, visible_in_chart
from schedlab.base.toolchain.policies import in_policy_order
from schedlab.report.charts.theme import MUTED, WIDTH, looks
from schedlab.report.model import Chart

P = ParamSpec("P")


class NothingToDraw(ValueError):
    """There is no value, no process or no time that the chart could show."""


def drawn(make: Callable[P, Chart | None], *arguments: P.args, **named: P.kwargs) -> list[Chart]:
    """Returns the chart, or no chart if there is nothing that it could show."""
    try:
        chart = make(*arguments, **named)
    except NothingToDraw:
        chart = None
    return [chart] if chart else []


LETTER_WIDTH = 7
"""About what a letter of a legend takes, in pixels."""
STROKE_SIZE = 320
"""The length of a legend's stroke: long enough to show its dashes."""
DIGITS = 5
"""Significant digits of what is drawn; the data behind a chart has all."""
ROOM = 0.06
"""The part of an axis's length that is free beyond the outermost value."""
NUMBERS = ",.6~g"
"""How axes write numbers: as they are, never as powers of ten."""
FADED = 0.12
"""The opacity of what was not chosen in the legend."""


def chart_of(frame: pl.DataFrame, digits: int = DIGITS) -> Any:
    """A chart that holds a table, from which marks can be drawn.

    Numbers are rounded. To be short, the table is embedded column by column, and each different
    word once; the chart's transforms make rows and words of it again.
    """
    columns = {name: _rounded(frame[name].to_list(), digits) for name in frame.columns}
    words = {}
    for name in frame.columns:
        if frame.schema[name] == pl.String:
            places = {
                word: place for place, word in enumerate(frame[name].unique(maintain_order=True))
            }
            columns[name] = [places[word] for word in columns[name]]
            words[name] = f"{json_text([visible_in_chart(word) for word in places])}[datum.{name}]"
    chart = alt.Chart(alt.InlineData(values=[columns])).transform_flatten(list(columns))
    return chart.transform_calculate(**words) if words else chart


def _rounded(values: list[Any], digits: int) -> list[Any]:
    return [_significant(value, digits) if isinstance(value, float) else value for value in values]


def _significant(value: float, digits: int) -> float | int | None:
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() else rounded


def ordered(series: Iterable[str], order: Sequence[str] | None, *, policies: bool) -> list[str]:
    """Each once: as told, or policies in their order, or as they come."""
    names = list(dict.fromkeys(series))
    if order is not None:
        return [name for name in order if name in names] + [
            name for name in names if name not in order
        ]
    return in_policy_order(names) if policies else names


class Styles:
    """How each series of a chart looks, as the scales of its channels."""

    def __init__(self, series: Sequence[str], *, policies: bool, muted: Sequence[str] = ()) -> None:
        """`muted` are grey."""
        loud = [name for name in series if name not in muted]
        grey = [name for name in series if name in muted]
        self.series = loud + grey
        self.looks = looks(loud, policies=policies) + [MUTED] * len(grey)

    def colour(self, **legend: Any) -> alt.Color:
        return alt.Color(
            "series:N",
            scale=alt.Scale(domain=self.series, range=[look.colour for look in self.looks]),
            legend=self._legend(**legend),
        )

    def dash(self) -> alt.StrokeDash:
        return alt.StrokeDash(
            "series:N",
            scale=alt.Scale(domain=self.series, range=[list(look.dash) for look in self.looks]),
            legend=self._legend(),
        )

    def shape(self, **legend: Any) -> alt.Shape:
        return alt.Shape(
            "series:N",
            scale=alt.Scale(domain=self.series, range=[look.shape for look in self.looks]),
            legend=self._legend(**legend),
        )

    def channel(self, channel: Any) -> Any:
        """A channel for colour (alt.Color, alt.Fill, alt.Stroke) without a legend."""
        scale = alt.Scale(domain=self.series, range=[look.colour for look in self.looks])
        return channel("series:N", scale=scale, legend=None)

    def only(self, series: Sequence[str]) -> Styles:
        """The styles of some of the series, which look as before."""
        fewer = copy(self)
        fewer.series = list(series)
        fewer.looks = [self.looks[self.series.index(name)] for name in series]
        return fewer

    def _legend(self, **more: Any) -> alt.Legend | None:
        if len(self.series) < 2:
            return None
        longest = max(len(name) for name in self.series)
        wide = longest * LETTER_WIDTH + 40
        # On a page there may be room for fewer: templates/charts.js sees to that.
        return alt.Legend(title=None, columns=max(WIDTH // wide, 1), **more)


def chosen_in_legend() -> alt.Parameter:
    """A click on a series in the legend shows it alone, one on another that one too; clicked again,
    they go.

    It must be a parameter of a layer that has the colours, and no shapes: of others the legend does
    not know (Vega-Lite 6.4).
    """
    return alt.selection_point(name="chosen", fields=["series"], bind="legend", toggle="true")


def opacity_if(chosen: alt.Parameter, opacity: float = 1) -> Any:
    return alt.when(chosen).then(alt.value(opacity)).otherwise(alt.value(FADED * opacity))


def zoom_along_time() -> alt.Parameter:
    """Ctrl or Cmd and the wheel zooms, as on maps, so that a page can be scrolled; dragging moves;
    a double click shows all again."""
    return alt.selection_interval(
        name="zoom",
        bind="scales",
        encodings=["x"],
        zoom="wheel![event.ctrlKey || event.metaKey]",
    )


def means(data: pl.DataFrame, keys: Sequence[str], value: str) -> pl.DataFrame:
    """For each set of keys: mean, low and high (schedlab.analysis.comparison.statistics), least and most of the runs'
    values, how many runs, and how many that failed.

    A row of `data` is a run; a null says that it failed, and then there is no mean. No value is below 0.
    """
    number = pl.col(value).cast(pl.Float64).fill_nan(None)
    groups = data.group_by(*keys, maintain_order=True).agg(
        values=number, runs=pl.len(), failed=number.null_count()
    )
    group_rows = groups.with_row_index("group").filter(pl.col("failed") == 0)
    got = estimates(group_rows["values"].to_list(), (0, math.inf))
    numbers = pl.DataFrame(
        {
            "group": group_rows["group"],
            "mean": [estimate.mean for estimate in got],
            "low": [estimate.low for estimate in got],
            "high": [estimate.high for estimate in got],
            "least": group_rows["values"].list.min(),
            "most": group_rows["values"].list.max(),
        },
        schema_overrides=dict.fromkeys(("mean", "low", "high", "least", "most"), pl.Float64),
    )
    return (
        groups.with_row_index("group")
        .join(numbers, on="group", how="left", maintain_order="left")
        .select(*keys, "mean", "low", "high", "least", "most", "runs", "failed")
    )


def sentences(*parts: str) -> str:
    """A caption of those that are not empty."""
    return " ".join(part.strip() for part in parts if part.strip())


def thinned(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], dx: float, dy: float) -> list[int]:
    """Which points of a rising step curve to keep: none that is left out is further than dx and dy
    from one that is kept. The first and the last are."""
    indices = [0] if len(x) else []
    for at in range(1, len(x)):
        last = indices[-1]
        if x[at] - x[last] >= dx or y[at] - y[last] >= dy or at == len(x) - 1:
            indices.append(at)
    return indices


def panels_of(panels: pl.Series) -> list[tuple[str, bool]]:
    """The names of panels, each once in their order; and is it the last?"""
    panel_names = panels.unique(maintain_order=True).to_list()
    return [(panel, panel == panel_names[-1]) for panel in panel_names]


def stacked(pictures: Sequence[tuple[str, Any]]) -> Any:
    """Pictures one below the other, each with its name above it; one alone as it is."""
    if len(pictures) == 1:
        return pictures[0][1]
    titled = [picture.properties(title=panel) for panel, picture in pictures]
    return alt.vconcat(*titled, spacing=14)


@dataclass(frozen=True)
class Reach:
    """What an axis reaches over."""

    low: float
    high: float
    log: bool

    def scale(self) -> alt.Scale:
        kind: Any = "log" if self.log else "linear"
        return alt.Scale(type=kind, domain=[self.low, self.high], nice=False)

    def cuts(self, behind: pl.DataFrame) -> bool:
        """Does an interval (low, high) go on beyond it?"""
        cut = (pl.col("low") < self.low) | (pl.col("high") > self.high)
        return bool(behind.select(cut.any()).item())


def reach_of(values: Iterable[float | None], *, log: bool, zero: bool) -> Reach:
    """Returns an axis's reach in which all values have their place, with a little room beyond.

    Raises NothingToDraw if there is no value, or, for a logarithmic axis, none above 0.
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    known = [value for value in known if value > 0] if log else known
    if not known:
        raise NothingToDraw("there is no number to draw")
    low, high = min(known), max(known)
    if log:
        return Reach(low / 1.1, high * 1.1, log)
    low = min(low, 0) if zero else low
    high = max(high, 0) if zero else high
    room = ROOM * ((high - low) or abs(high) or 1)
    return Reach(low - room if low < 0 or not zero else low, high + room, log)


def values_of(behind: pl.DataFrame) -> list[float | None]:
    """All that a chart of means must have a place for: not their intervals, which for two or three
    runs are many times as long as what they are about."""
    columns = [name for name in ("mean", "least", "most") if name in behind.columns]
    return [value for name in columns for value in behind[name]]


CUT = "Intervals that end at the edge of the picture go on beyond it."

# SPDX-License-Identifier: MIT
"""Parts that several charts share."""

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
from schedlab.report.charts.theme import MUTED, WIDTH, styles_of
from schedlab.report.model import Chart

P = ParamSpec("P")


class NothingToDraw(ValueError):
    """Raised if a chart has no value, task or time to show."""


def drawn(make: Callable[P, Chart | None], *arguments: P.args, **named: P.kwargs) -> list[Chart]:
    """Returns a list of the chart, or [] if there is nothing to draw."""
    try:
        chart = make(*arguments, **named)
    except NothingToDraw:
        chart = None
    return [chart] if chart else []


LETTER_WIDTH = 7
"""Approximate width of a legend's letter, in pixels."""
STROKE_SIZE = 320
"""Length of a legend's stroke in pixels: long enough to show its dashes."""
DIGITS = 5
"""Significant digits in drawings. The data behind a chart has all digits."""
ROOM = 0.06
"""Margin of an axis beyond the outermost value, as a fraction of its length."""
NUMBERS = ",.6~g"
"""Number format of axes, without powers of ten."""
FADED = 0.12
"""Opacity of series that are not selected in the legend."""


def chart_of(frame: pl.DataFrame, digits: int = DIGITS) -> Any:
    """Returns a chart that embeds a table for marks to draw.

    Numbers are rounded. To save space, the table is embedded by column, with each distinct text
    once. The chart's transforms restore rows and texts.
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
    """Returns the distinct series in the given order, in the order
    of policies, or as they occur.
    """
    names = list(dict.fromkeys(series))
    if order is not None:
        return [name for name in order if name in names] + [
            name for name in names if name not in order
        ]
    return in_policy_order(names) if policies else names


class Styles:
    """The look of each series, as scales of a chart's channels."""

    def __init__(self, series: Sequence[str], *, policies: bool, muted: Sequence[str] = ()) -> None:
        """`muted`: the series that are grey."""
        loud = [name for name in series if name not in muted]
        grey = [name for name in series if name in muted]
        self.series = loud + grey
        self.line_styles = styles_of(loud, policies=policies) + [MUTED] * len(grey)

    def colour(self, **legend: Any) -> alt.Color:
        return alt.Color(
            "series:N",
            scale=alt.Scale(domain=self.series, range=[look.colour for look in self.line_styles]),
            legend=self._legend(**legend),
        )

    def dash(self) -> alt.StrokeDash:
        return alt.StrokeDash(
            "series:N",
            scale=alt.Scale(
                domain=self.series, range=[list(look.dash) for look in self.line_styles]
            ),
            legend=self._legend(),
        )

    def shape(self, **legend: Any) -> alt.Shape:
        return alt.Shape(
            "series:N",
            scale=alt.Scale(domain=self.series, range=[look.shape for look in self.line_styles]),
            legend=self._legend(**legend),
        )

    def channel(self, channel: Any) -> Any:
        """Returns the channel for colours (alt.Color, alt.Fill, alt.Stroke) without a legend."""
        scale = alt.Scale(domain=self.series, range=[look.colour for look in self.line_styles])
        return channel("series:N", scale=scale, legend=None)

    def only(self, series: Sequence[str]) -> Styles:
        """Returns the styles of some series, with an unchanged look."""
        fewer = copy(self)
        fewer.series = list(series)
        fewer.line_styles = [self.line_styles[self.series.index(name)] for name in series]
        return fewer

    def _legend(self, **more: Any) -> alt.Legend | None:
        if len(self.series) < 2:
            return None
        longest = max(len(name) for name in self.series)
        wide = longest * LETTER_WIDTH + 40
        # On narrow pages, templates/charts.js reduces the number of columns.
        return alt.Legend(title=None, columns=max(WIDTH // wide, 1), **more)


def chosen_in_legend() -> alt.Parameter:
    """Returns the parameter of a selection in the legend.

    A click selects one series, and further clicks add series or remove them. The
    parameter must belong to a layer with colours and without shapes, since the legend
    ignores others (Vega-Lite 6.4).
    """
    return alt.selection_point(name="chosen", fields=["series"], bind="legend", toggle="true")


def opacity_if(chosen: alt.Parameter, opacity: float = 1) -> Any:
    return alt.when(chosen).then(alt.value(opacity)).otherwise(alt.value(FADED * opacity))


def zoom_along_time() -> alt.Parameter:
    """Returns the parameter of zooming along time.

    Ctrl or Cmd with the wheel zooms, so that pages scroll normally. Dragging moves the
    view, and a double click resets it.
    """
    return alt.selection_interval(
        name="zoom",
        bind="scales",
        encodings=["x"],
        zoom="wheel![event.ctrlKey || event.metaKey]",
    )


def means(data: pl.DataFrame, keys: Sequence[str], value: str) -> pl.DataFrame:
    """Returns a row for each combination of keys, with mean, low and high of an interval.

    Further columns are least, most, the number of runs and of failures. A row of `data` is a run. A
    null value is a failed run; a combination with a failed run has no mean. Intervals are not below
    0.
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
    """Joins the parts of a caption that are not empty."""
    return " ".join(part.strip() for part in parts if part.strip())


def thinned(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], dx: float, dy: float) -> list[int]:
    """Returns the indices of points of a rising step curve to draw.

    Each omitted point is within dx and dy of a drawn point. The first and the last point are drawn.
    """
    indices = [0] if len(x) else []
    for at in range(1, len(x)):
        last = indices[-1]
        if x[at] - x[last] >= dx or y[at] - y[last] >= dy or at == len(x) - 1:
            indices.append(at)
    return indices


def panels_of(panels: pl.Series) -> list[tuple[str, bool]]:
    """Returns the distinct names of panels in order, and whether each is the last."""
    panel_names = panels.unique(maintain_order=True).to_list()
    return [(panel, panel == panel_names[-1]) for panel in panel_names]


def stacked(pictures: Sequence[tuple[str, Any]]) -> Any:
    """Stacks named pictures. A single picture is returned unchanged."""
    if len(pictures) == 1:
        return pictures[0][1]
    titled = [picture.properties(title=panel) for panel, picture in pictures]
    return alt.vconcat(*titled, spacing=14)


@dataclass(frozen=True)
class Reach:
    """The range of an axis."""

    low: float
    high: float
    log: bool

    def scale(self) -> alt.Scale:
        kind: Any = "log" if self.log else "linear"
        return alt.Scale(type=kind, domain=[self.low, self.high], nice=False)

    def cuts(self, behind: pl.DataFrame) -> bool:
        """Returns whether an interval (low, high) extends beyond the range."""
        cut = (pl.col("low") < self.low) | (pl.col("high") > self.high)
        return bool(behind.select(cut.any()).item())


def reach_of(values: Iterable[float | None], *, log: bool, zero: bool) -> Reach:
    """Returns an axis's range that contains all values and a small margin.

    Raises NothingToDraw if there is no value, or, for a logarithmic axis, no value above 0.
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
    """Returns the values that must fit into a chart of means.

    Intervals are excluded: for two or three runs they can be many times
    longer than the range of values.
    """
    columns = [name for name in ("mean", "least", "most") if name in behind.columns]
    return [value for name in columns for value in behind[name]]


CUT = "Intervals that end at the chart's edge continue beyond it."

# SPDX-License-Identifier: MIT
"""Parts that several charts share."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec

import altair as alt
import numpy as np
import polars as pl

from schedlab.analysis.comparison.statistics import estimates
from schedlab.base.display.names import json_text, visible_in_chart
from schedlab.base.toolchain.policies import sort_policies
from schedlab.report.charts.theme import MUTED_LOOK, WIDTH, series_looks
from schedlab.report.model import Chart

Parameters = ParamSpec("Parameters")


class NothingToDraw(ValueError):
    """Raised if a chart has no value, task or time to show."""


def draw_if_possible(
    make: Callable[Parameters, Chart | None],
    *arguments: Parameters.args,
    **named: Parameters.kwargs,
) -> list[Chart]:
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
SIGNIFICANT_DIGITS = 5
"""Significant digits in drawings. The data behind a chart has all digits."""
MARGIN_FRACTION = 0.06
"""Margin of an axis beyond the outermost value, as a fraction of its length."""
NUMBER_FORMAT = ",.6~g"
"""Number format of axes, without powers of ten."""
FADED_OPACITY = 0.12
"""Opacity of series that are not selected in the legend."""


def chart_with_data(frame: pl.DataFrame, digits: int = SIGNIFICANT_DIGITS) -> Any:
    """Returns a chart that embeds a table for marks to draw.

    Numbers are rounded. To save space, the table is embedded by column, with each distinct text
    once. The chart's transforms restore rows and texts.
    """
    columns = {name: _round_values(frame[name].to_list(), digits) for name in frame.columns}
    words = {}
    for name in frame.columns:
        if frame.schema[name] == pl.String:
            places = {
                word: index for index, word in enumerate(frame[name].unique(maintain_order=True))
            }
            columns[name] = [places[word] for word in columns[name]]
            words[name] = f"{json_text([visible_in_chart(word) for word in places])}[datum.{name}]"
    chart = alt.Chart(alt.InlineData(values=[columns])).transform_flatten(list(columns))
    return chart.transform_calculate(**words) if words else chart


def _round_values(values: list[Any], digits: int) -> list[Any]:
    """Rounds the numbers of a list; other values are unchanged."""
    return [
        _round_significant(value, digits) if isinstance(value, float) else value for value in values
    ]


def _round_significant(value: float, digits: int) -> float | int | None:
    """Rounds a number to significant digits. Numbers that are not finite become None."""
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() else rounded


def order_series(
    series: Iterable[str], order: Sequence[str] | None, *, policies: bool
) -> list[str]:
    """Returns the distinct series in the given order, in the order
    of policies, or as they occur.
    """
    names = list(dict.fromkeys(series))
    if order is not None:
        return [name for name in order if name in names] + [
            name for name in names if name not in order
        ]
    return sort_policies(names) if policies else names


class Styles:
    """The look of each series, as scales of a chart's channels."""

    def __init__(self, series: Sequence[str], *, policies: bool, muted: Sequence[str] = ()) -> None:
        """Gives each series its look.

        `policies`: whether the series are policies. `muted`: the series that are grey.
        """
        loud = [name for name in series if name not in muted]
        grey = [name for name in series if name in muted]
        self.series = loud + grey
        self.line_styles = series_looks(loud, policies=policies) + [MUTED_LOOK] * len(grey)

    def colour(self, **legend: Any) -> alt.Color:
        """Returns the colour channel with a legend."""
        return alt.Color(
            "series:N",
            scale=alt.Scale(domain=self.series, range=[look.colour for look in self.line_styles]),
            legend=self._legend(**legend),
        )

    def dash(self) -> alt.StrokeDash:
        """Returns the channel for the dashes of lines."""
        return alt.StrokeDash(
            "series:N",
            scale=alt.Scale(
                domain=self.series, range=[list(look.dash) for look in self.line_styles]
            ),
            legend=self._legend(),
        )

    def shape(self, **legend: Any) -> alt.Shape:
        """Returns the channel for the shapes of points, with a legend."""
        return alt.Shape(
            "series:N",
            scale=alt.Scale(domain=self.series, range=[look.shape for look in self.line_styles]),
            legend=self._legend(**legend),
        )

    def channel(self, channel: Any) -> Any:
        """Returns the channel for colours (alt.Color, alt.Fill, alt.Stroke) without a legend."""
        scale = alt.Scale(domain=self.series, range=[look.colour for look in self.line_styles])
        return channel("series:N", scale=scale, legend=None)

    def _legend(self, **more: Any) -> alt.Legend | None:
        """Returns the legend, or None for a single series."""
        if len(self.series) < 2:
            return None
        longest = max(len(name) for name in self.series)
        entry_width = longest * LETTER_WIDTH + 40
        # On narrow pages, templates/charts.js reduces the number of columns.
        return alt.Legend(title=None, columns=max(WIDTH // entry_width, 1), **more)


def legend_selection() -> alt.Parameter:
    """Returns the parameter of a selection in the legend.

    A click selects one series, and further clicks add series or remove them. The
    parameter must belong to a layer with colours and without shapes, since the legend
    ignores others (Vega-Lite 6.4).
    """
    return alt.selection_point(name="chosen", fields=["series"], bind="legend", toggle="true")


def opacity_if(chosen: alt.Parameter, opacity: float = 1) -> Any:
    """Returns an opacity that is reduced for series outside of the selection `chosen`."""
    return alt.when(chosen).then(alt.value(opacity)).otherwise(alt.value(FADED_OPACITY * opacity))


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


def compute_means(data: pl.DataFrame, keys: Sequence[str], value: str) -> pl.DataFrame:
    """Returns a row for each combination of keys, with mean, low and high of an interval.

    Further columns are least, most, the number of runs and of failures. A row of `data` is a run. A
    null value is a failed run; a combination with a failed run has no mean. Intervals are not below
    0.
    """
    value_column = pl.col(value).cast(pl.Float64).fill_nan(None)
    groups = data.group_by(*keys, maintain_order=True).agg(
        values=value_column, runs=pl.len(), failed=value_column.null_count()
    )
    group_rows = groups.with_row_index("group").filter(pl.col("failed") == 0)
    group_estimates = estimates(group_rows["values"].to_list(), (0, math.inf))
    numbers = pl.DataFrame(
        {
            "group": group_rows["group"],
            "mean": [estimate.mean for estimate in group_estimates],
            "low": [estimate.low for estimate in group_estimates],
            "high": [estimate.high for estimate in group_estimates],
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


def join_sentences(*parts: str) -> str:
    """Joins the parts of a caption that are not empty."""
    return " ".join(part.strip() for part in parts if part.strip())


def thin_curve(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], dx: float, dy: float) -> list[int]:
    """Returns the indices of points of a rising step curve to draw.

    Each omitted point is within dx and dy of a drawn point. The first and the last point are drawn.
    """
    indices = [0] if len(x) else []
    for index in range(1, len(x)):
        last = indices[-1]
        if x[index] - x[last] >= dx or y[index] - y[last] >= dy or index == len(x) - 1:
            indices.append(index)
    return indices


def panel_order(panels: pl.Series) -> list[tuple[str, bool]]:
    """Returns the distinct names of panels in order, and whether each is the last."""
    panel_names = panels.unique(maintain_order=True).to_list()
    return [(panel, panel == panel_names[-1]) for panel in panel_names]


def stack_charts(pictures: Sequence[tuple[str, Any]]) -> Any:
    """Stacks named pictures. A single picture is returned unchanged."""
    if len(pictures) == 1:
        return pictures[0][1]
    titled = [picture.properties(title=panel) for panel, picture in pictures]
    return alt.vconcat(*titled, spacing=14)


@dataclass(frozen=True)
class AxisRange:
    """The least and greatest value of an axis, and whether it is logarithmic."""

    low: float
    high: float
    log: bool

    def scale(self) -> alt.Scale:
        """Returns the Altair scale of the axis."""
        kind: Any = "log" if self.log else "linear"
        return alt.Scale(type=kind, domain=[self.low, self.high], nice=False)

    def cuts_interval(self, plotted: pl.DataFrame) -> bool:
        """Returns whether an interval (low, high) extends beyond the range."""
        is_cut = (pl.col("low") < self.low) | (pl.col("high") > self.high)
        return bool(plotted.select(is_cut.any()).item())


def axis_range(values: Iterable[float | None], *, log: bool, zero: bool) -> AxisRange:
    """Returns an axis's range that contains all values and a small margin.

    Raises NothingToDraw if there is no value, or, for a logarithmic axis, no value above 0.
    """
    usable_values = [value for value in values if value is not None and math.isfinite(value)]
    usable_values = [value for value in usable_values if value > 0] if log else usable_values
    if not usable_values:
        raise NothingToDraw("there is no number to draw")
    low, high = min(usable_values), max(usable_values)
    if log:
        return AxisRange(low / 1.1, high * 1.1, log)
    low = min(low, 0) if zero else low
    high = max(high, 0) if zero else high
    margin = MARGIN_FRACTION * ((high - low) or abs(high) or 1)
    return AxisRange(low - margin if low < 0 or not zero else low, high + margin, log)


def plotted_values(plotted: pl.DataFrame) -> list[float | None]:
    """Returns the means, and each group's least and greatest run, which must fit into a chart.

    Intervals are excluded: for two or three runs they can be many times
    longer than the range of values.
    """
    columns = [name for name in ("mean", "least", "most") if name in plotted.columns]
    return [value for name in columns for value in plotted[name]]


CUT_NOTE = "Intervals that end at the chart's edge continue beyond it."

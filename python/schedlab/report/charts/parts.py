# SPDX-License-Identifier: MIT
"""What several charts are put together from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from schedlab.report.charts.theme import MUTED, WIDTH, in_policy_order, looks
from schedlab.statistics import estimate

LETTER_WIDTH = 7
"""About what a letter of a legend takes, in pixels."""
DIGITS = 5
"""Significant digits of what is drawn; the data behind a chart has all."""
NUMBERS = ",.6~g"
"""How axes write numbers: as they are, never as powers of ten."""
FADED = 0.12
"""The opacity of what was not chosen in the legend."""


def embedded(frame: pl.DataFrame, digits: int = DIGITS) -> alt.InlineData:
    """A table as part of a chart, its numbers rounded."""
    columns = {name: _rounded(frame[name].to_list(), digits) for name in frame.columns}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return alt.InlineData(values=rows)


def _rounded(values: list[Any], digits: int) -> list[Any]:
    return [_significant(value, digits) if isinstance(value, float) else value for value in values]


def _significant(value: float, digits: int) -> float | int | None:
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() else rounded


def ordered(series: Iterable[str], order: Sequence[str] | None, *, policies: bool) -> list[str]:
    """Each once: as told, or policies in their order, or as they come."""
    found = list(dict.fromkeys(series))
    if order is not None:
        return [each for each in order if each in found] + [
            each for each in found if each not in order
        ]
    return in_policy_order(found) if policies else found


class Looks:
    """How each series of a chart looks, as the scales of its channels."""

    def __init__(self, series: Sequence[str], *, policies: bool, muted: Sequence[str] = ()) -> None:
        """`muted` are grey."""
        loud = [each for each in series if each not in muted]
        grey = [each for each in series if each in muted]
        self.series = loud + grey
        self.looks = looks(loud, policies=policies) + [MUTED] * len(grey)

    def colour(self, title: str | None = None, **legend: Any) -> alt.Color:
        return alt.Color(
            "series:N",
            scale=alt.Scale(domain=self.series, range=[each.colour for each in self.looks]),
            legend=self._legend(title, **legend),
        )

    def dash(self, title: str | None = None) -> alt.StrokeDash:
        return alt.StrokeDash(
            "series:N",
            scale=alt.Scale(domain=self.series, range=[list(each.dash) for each in self.looks]),
            legend=self._legend(title),
        )

    def shape(self, title: str | None = None) -> alt.Shape:
        return alt.Shape(
            "series:N",
            scale=alt.Scale(domain=self.series, range=[each.shape for each in self.looks]),
            legend=self._legend(title),
        )

    def channel(self, channel: Any) -> Any:
        """A channel for colour (alt.Color, alt.Fill, alt.Stroke) without a legend."""
        scale = alt.Scale(domain=self.series, range=[each.colour for each in self.looks])
        return channel("series:N", scale=scale, legend=None)

    def only(self, series: Sequence[str]) -> Looks:
        """Of some of the series, which look as before."""
        fewer = copy(self)
        fewer.series = list(series)
        fewer.looks = [self.looks[self.series.index(each)] for each in series]
        return fewer

    def _legend(self, title: str | None, **more: Any) -> alt.Legend | None:
        if len(self.series) < 2:
            return None
        longest = max(len(each) for each in self.series)
        columns = max(WIDTH // (longest * LETTER_WIDTH + 40), 1)
        return alt.Legend(title=title, columns=columns, **more)


def chosen_in_legend() -> alt.Parameter:
    """A click on a series in the legend shows it alone; with Shift, some of them."""
    return alt.selection_point(name="chosen", fields=["series"], bind="legend")


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


def estimates(data: pl.DataFrame, keys: Sequence[str], value: str) -> pl.DataFrame:
    """For each set of keys: mean, low and high (schedlab.statistics), runs and failed ones.

    A row of `data` is a run; a null says that it failed, and then there is no mean.
    """
    rows = []
    for group in data.partition_by(list(keys), maintain_order=True):
        values = group[value].cast(pl.Float64)
        failed = values.null_count() + int(values.is_nan().sum())
        got = estimate(values.to_list()) if not failed else None
        rows.append(
            {
                **{key: group[key][0] for key in keys},
                "mean": got.mean if got else None,
                "low": got.low if got else None,
                "high": got.high if got else None,
                "runs": len(group),
                "failed": failed,
            }
        )
    schema: dict[str, Any] = {
        **{key: data.schema[key] for key in keys},
        **dict.fromkeys(("mean", "low", "high"), pl.Float64),
        **dict.fromkeys(("runs", "failed"), pl.Int64),
    }
    return pl.DataFrame(rows, schema=schema)


def sentences(*parts: str) -> str:
    """A caption of those that are not empty."""
    return " ".join(part.strip() for part in parts if part.strip())


def thinned(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], dx: float, dy: float) -> list[int]:
    """Which points of a rising step curve to keep: none that is left out is further than dx and dy
    from one that is kept. The first and the last are."""
    kept = [0] if len(x) else []
    for at in range(1, len(x)):
        last = kept[-1]
        if x[at] - x[last] >= dx or y[at] - y[last] >= dy or at == len(x) - 1:
            kept.append(at)
    return kept


def panels_of(panels: pl.Series) -> list[tuple[str, bool]]:
    """The names of panels, each once in their order; and is it the last?"""
    found = panels.unique(maintain_order=True).to_list()
    return [(panel, panel == found[-1]) for panel in found]


def stacked(pictures: Sequence[tuple[str, Any]]) -> Any:
    """Pictures one below the other, each with its name above it; one alone as it is."""
    if len(pictures) == 1:
        return pictures[0][1]
    titled = [picture.properties(title=panel) for panel, picture in pictures]
    return alt.vconcat(*titled, spacing=14)


def common_scale(values: Iterable[float | None], *, log: bool, zero: bool) -> alt.Scale:
    """Of the axes of all panels. Raises ValueError if there is no number to draw."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    if not known:
        raise ValueError("there is no number to draw")
    low, high = min(known), max(known)
    if log:
        return alt.Scale(type="log", domain=[low, high])
    return alt.Scale(domain=[min(low, 0) if zero else low, high])

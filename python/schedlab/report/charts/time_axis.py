# SPDX-License-Identifier: MIT
"""Time as an axis: in ticks or milliseconds since a chart's beginning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
import polars as pl

from schedlab.report.charts.processes import Span

Unit = Literal["ticks", "ms"]
_MICROSECOND = 1000
_UNITS_NS = {"ms": 1_000_000}


@dataclass(frozen=True)
class TimeAxis:
    """Times are embedded as whole microseconds since `origin_ns`, and drawn in `unit`."""

    span: Span
    origin_ns: int
    unit: Unit
    tick_ns: int

    @property
    def unit_ns(self) -> int:
        return self.tick_ns if self.unit == "ticks" else _UNITS_NS[self.unit]

    @property
    def title(self) -> str:
        return f"time ({self.unit})"

    def embed(self, *columns: str) -> list[pl.Expr]:
        """Columns of nanoseconds as whole microseconds, by the same names without `_ns`."""
        return [
            ((pl.col(name) - self.origin_ns) / _MICROSECOND)
            .round()
            .cast(pl.Int64)
            .alias(name.removesuffix("_ns"))
            for name in columns
        ]

    def in_units(self, name: str) -> str:
        """A Vega expression: a column of microseconds in the axis's unit."""
        return f"datum.{name} / {self.unit_ns // _MICROSECOND}"

    def value(self, time_ns: int) -> float:
        """A time on the axis."""
        return (time_ns - self.origin_ns) / self.unit_ns

    def x(self, name: str) -> alt.X:
        """The horizontal axis."""
        domain = [self.value(self.span.begin_ns), self.value(self.span.end_ns)]
        return alt.X(
            f"{name}:Q",
            title=self.title,
            scale=alt.Scale(domain=domain, nice=False),
            axis=alt.Axis(grid=False, format=",.6~g", tickCount=10),
        )

    def tooltips(self) -> list[alt.Tooltip]:
        """Begin and length of an interval of `from_` and `length`."""
        return [
            alt.Tooltip("from_:Q", title=f"from ({self.unit})", format=",.6~g"),
            alt.Tooltip("length:Q", title=f"for ({self.unit})", format=",.6~g"),
        ]

    def intervals(self, chart: alt.Chart) -> Any:
        """Intervals with `from_`, `to` and `length` in the axis's unit, made of `begin` and `end`."""
        return chart.transform_calculate(
            from_=self.in_units("begin"),
            to=self.in_units("end"),
            length="datum.to - datum.from_",
        )

# SPDX-License-Identifier: MIT
"""The processes of a trace, and time as an axis, as charts of a trace draw them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
import polars as pl

from schedlab.base.display.numbers import duration
from schedlab.metrics import Window, cpu_intervals, measured_window, state_intervals
from schedlab.metrics.lives import Lives, lives, names
from schedlab.metrics.people import people
from schedlab.report.charts.parts import NothingToDraw, chart_of
from schedlab.report.charts.theme import WIDTH
from schedlab.trace import Trace

IDLE, ROOT, OTHER = "idle", "root", "other"
"""Groups besides those of the workload (docs/metrics.md)."""


@dataclass(frozen=True)
class Span:
    """A part of a trace, in nanoseconds since boot."""

    begin_ns: int
    end_ns: int

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.begin_ns

    def clip(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Returns the parts of intervals that lie in it; those of no length there are left out."""
        return frame.with_columns(
            pl.col("begin_ns", "end_ns").clip(self.begin_ns, self.end_ns)
        ).filter(pl.col("begin_ns") < pl.col("end_ns"))


def span_of(window: Window, begin_ns: int | None, end_ns: int | None) -> Span:
    """The window measured, or that part of the trace which is asked for.

    Raises NothingToDraw if it ends before it begins.
    """
    begin = window.begin_ns if begin_ns is None else begin_ns
    end = window.end_ns if end_ns is None else end_ns
    if end <= begin:
        raise NothingToDraw(f"nothing can be drawn from {begin} ns to {end} ns")
    return Span(begin, end)


@dataclass(frozen=True)
class ChartProcesses:
    """A trace, and its processes by name."""

    trace: Trace
    who: Lives
    window: Window
    names: pl.DataFrame
    """A row a life: life, pid, name, group, role, label (`3 cpu`: PID and group)."""

    def intervals(self) -> pl.DataFrame:
        """`state_intervals` with pid, name, group, role, label; and `why`: why it ended."""
        states = state_intervals(self.trace, self.who)
        follows = pl.col("cause").cast(pl.String).shift(-1).over("life")
        why = (
            pl.when(pl.col("end_row").is_null())
            .then(pl.lit("the trace ends"))
            .otherwise(follows.fill_null("ended"))
        )
        return states.with_columns(pl.col("state").cast(pl.String), why=why).join(
            self.names.drop("pid"), on="life", how="left", maintain_order="left"
        )

    def running(self) -> pl.DataFrame:
        """The process that ran on each CPU, with begin and end."""
        return self.intervals().filter(pl.col("state") == "running")

    def idle(self) -> pl.DataFrame:
        """Returns when each CPU had no process: cpu, begin_ns, end_ns."""
        return (
            cpu_intervals(self.trace).filter(pl.col("pid") == 0).select("cpu", "begin_ns", "end_ns")
        )


def processes_of(trace: Trace) -> ChartProcesses:
    """Groups of processes that are not the workload's are called as in ROOT and OTHER."""
    window = measured_window(trace)
    who = lives(trace)
    all_lives = pl.DataFrame({"life": range(len(who)), "pid": who.pid, "known": names(trace, who)},
                             schema={"life": pl.Int64, "pid": pl.Int64, "known": pl.String})  # fmt: skip
    in_window = people(trace, who, window).select("life", "group", pl.col("role").cast(pl.String))
    role = pl.col("role").fill_null(OTHER)
    of_workload = role == "workload"
    all_processes = (
        all_lives.join(in_window, on="life", how="left", maintain_order="left")
        .with_columns(role, name=pl.col("known").fill_null(pl.format("process {}", "pid")))
        .with_columns(group=pl.when(of_workload).then("group").otherwise(role))
        .with_columns(
            label=pl.format("{} {}", "pid", pl.when(of_workload).then("group").otherwise("name"))
        )
        .drop("known")
    )
    return ChartProcesses(trace, who, window, all_processes)


def readable(processes: ChartProcesses, span: Span, per_cpu: int) -> Span:
    """The first part of it, in whole ticks, if in it CPUs have more runs than `per_cpu` each."""
    running = span.clip(processes.running())
    most = per_cpu * processes.trace.header.cpus
    if len(running) <= most:
        return span
    end = int(running.sort("begin_ns")["begin_ns"][most])
    tick = processes.trace.header.tick_ns
    return Span(span.begin_ns, span.begin_ns + max((end - span.begin_ns) // tick, 1) * tick)


Colouring = Literal["group", "process"]


PIECES_MOST = 4000
"""The most pieces of a chart: more make a page slow."""


def drawable(frame: pl.DataFrame, keys: list[str], span: Span) -> tuple[pl.DataFrame, str]:
    """`frame` with the thin merged so that a page can hold it; and what a caption must say of it."""
    ordered = frame.sort(*keys, "begin_ns")
    least_ns = span.length_ns / (2 * WIDTH)
    drawn = thick_enough(ordered, keys, least_ns)
    while len(drawn) > PIECES_MOST:
        least_ns *= 2
        drawn = thick_enough(ordered, keys, least_ns)
    merged = drawn.filter(pl.col("merged") > 1)["merged"].sum()
    if not merged:
        return drawn, ""
    return drawn, (
        f"{merged:,} intervals of less than {duration(least_ns)} are drawn together with others of "
        "their colour and row within that time, as long as they were in sum."
    )


def thick_enough(frame: pl.DataFrame, keys: list[str], least_ns: float) -> pl.DataFrame:
    """Merges what is too thin to be seen.

    Of neighbours with the same `keys`, those whose begins lie in the same `least_ns` of time
    become one piece, as long as what they ran together, so that no time is added or lost; `merged`
    says how many it is. `frame` is sorted by keys, then time.
    """
    begin = pl.col("begin_ns")
    cell = (begin // max(int(least_ns), 1)).alias("cell")
    thin = (pl.col("end_ns") - begin) < least_ns
    group = pl.when(thin).then(-1).otherwise(pl.int_range(pl.len())).alias("piece")
    rest = [name for name in frame.columns if name not in (*keys, "begin_ns", "end_ns")]
    return (
        frame.with_columns(cell, group, length_ns=pl.col("end_ns") - begin)
        .group_by(*keys, "cell", "piece", maintain_order=True)
        .agg(
            begin.first(),
            (begin.first() + pl.col("length_ns").sum()).alias("end_ns"),
            *[pl.col(name).last() for name in rest],
            merged=pl.len(),
        )
        .drop("cell", "piece")
    )


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

    def bars(
        self, frame: pl.DataFrame, columns: Sequence[str | pl.Expr], *channels: Any, **look: Any
    ) -> Any:
        """Bars from `begin_ns` to `end_ns`, with `from_`, `to` and `length` in the axis's unit.

        `look`: the channels `opacity` and `tooltip`, and properties of the mark, such as an opacity that is a number.
        """
        named = [
            name for name in ("opacity", "tooltip") if not isinstance(look.get(name, 1.0), float)
        ]
        encoded = {name: look.pop(name) for name in named}
        chart = chart_of(frame.select(*columns, *self.embed("begin_ns", "end_ns")))
        chart = chart.transform_calculate(
            from_=self.in_units("begin"), to=self.in_units("end"), length="datum.to - datum.from_"
        )
        bars = chart.mark_bar(clip=True, **look)
        return bars.encode(self.x("from_"), alt.X2("to:Q"), *channels, **encoded)


def rows_of(field: str, order: Sequence[str], padding: float) -> alt.Y:
    """A row for each of these, in their order."""
    rows = list(order)
    scale = alt.Scale(domain=rows, paddingInner=padding)
    look = alt.Axis(ticks=False, domain=False)
    return alt.Y(f"{field}:N", title=None, sort=rows, scale=scale, axis=look)

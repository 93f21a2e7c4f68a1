# SPDX-License-Identifier: MIT
"""The tasks of a trace and the time axis, for charts of traces."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
import polars as pl

from schedlab.base.display.numbers import duration
from schedlab.metrics import Window, cpu_intervals, measured_window, state_intervals
from schedlab.metrics.lives import Lives, lives, names
from schedlab.metrics.processes import process_table
from schedlab.report.charts.parts import NothingToDraw, chart_with_data
from schedlab.report.charts.theme import WIDTH
from schedlab.trace import Trace

IDLE, ROOT, OUTSIDE = "idle", "root", "other"
"""Groups of tasks outside the workload (docs/metrics.md)."""


@dataclass(frozen=True)
class Span:
    """A part of a trace, in ns since boot."""

    begin_ns: int
    end_ns: int

    @property
    def length_ns(self) -> int:
        """Returns the length of the span in ns."""
        return self.end_ns - self.begin_ns

    def clip(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Returns the parts of intervals within the span. Empty parts are left out."""
        return frame.with_columns(
            pl.col("begin_ns", "end_ns").clip(self.begin_ns, self.end_ns)
        ).filter(pl.col("begin_ns") < pl.col("end_ns"))


def chart_span(window: Window, begin_ns: int | None, end_ns: int | None) -> Span:
    """Returns the measured window, or the part between begin and end.

    Raises NothingToDraw if the end is before the beginning.
    """
    begin = window.begin_ns if begin_ns is None else begin_ns
    end = window.end_ns if end_ns is None else end_ns
    if end <= begin:
        raise NothingToDraw(f"nothing can be drawn from {begin} ns to {end} ns; choose a later end")
    return Span(begin, end)


@dataclass(frozen=True)
class ChartProcesses:
    """Holds a trace with the names of its tasks.

    Charts call the tasks "processes", as the schedlab kernel does.
    """

    trace: Trace
    life_table: Lives
    window: Window
    names: pl.DataFrame
    """One row per life of a task: life, pid, name, group, role, label (`3 cpu`: PID and group)."""

    def intervals(self) -> pl.DataFrame:
        """Returns `state_intervals` with pid, name, group, role,
        label, and `why` the interval ended.
        """
        states = state_intervals(self.trace, self.life_table)
        follows = pl.col("cause").cast(pl.String).shift(-1).over("life")
        why = (
            pl.when(pl.col("end_row").is_null())
            .then(pl.lit("the trace ends"))
            .otherwise(follows.fill_null("ended"))
        )
        return states.with_columns(pl.col("state").cast(pl.String), why=why).join(
            self.names.drop("pid"), on="life", how="left", maintain_order="left"
        )

    def drawn_part_text(self, span: Span) -> str:
        """Returns a caption's sentence on the drawn part of the window; "" for the whole window."""
        if span.length_ns >= self.window.elapsed_ns:
            return ""
        begin, end = (
            duration(time - self.window.begin_ns) for time in (span.begin_ns, span.end_ns)
        )
        return f"The chart shows {begin} to {end} of {duration(self.window.elapsed_ns)}."

    def running(self) -> pl.DataFrame:
        """Returns the intervals of running tasks."""
        return self.intervals().filter(pl.col("state") == "running")

    def idle(self) -> pl.DataFrame:
        """Returns when each CPU had no process: cpu, begin_ns, end_ns."""
        return (
            cpu_intervals(self.trace).filter(pl.col("pid") == 0).select("cpu", "begin_ns", "end_ns")
        )


def chart_processes(trace: Trace) -> ChartProcesses:
    """Returns the tasks of a trace. Groups outside the workload are named ROOT or OTHER."""
    window = measured_window(trace)
    life_table = lives(trace)
    all_lives = pl.DataFrame({"life": range(len(life_table)), "pid": life_table.pid, "known": names(trace, life_table)},
                             schema={"life": pl.Int64, "pid": pl.Int64, "known": pl.String})  # fmt: skip
    in_window = process_table(trace, life_table, window).select(
        "life", "group", pl.col("role").cast(pl.String)
    )
    role = pl.col("role").fill_null(OUTSIDE)
    is_workload = role == "workload"
    all_processes = (
        all_lives.join(in_window, on="life", how="left", maintain_order="left")
        .with_columns(role, name=pl.col("known").fill_null(pl.format("process {}", "pid")))
        .with_columns(group=pl.when(is_workload).then("group").otherwise(role))
        .with_columns(
            label=pl.format("{} {}", "pid", pl.when(is_workload).then("group").otherwise("name"))
        )
        .drop("known")
    )
    return ChartProcesses(trace, life_table, window, all_processes)


def readable_span(processes: ChartProcesses, span: Span, per_cpu: int) -> Span:
    """Returns the first part of the span, in whole ticks, with about `per_cpu` runs per CPU.

    Returns the whole span if it has fewer runs.
    """
    running = span.clip(processes.running())
    runs_max = per_cpu * processes.trace.header.cpus
    if len(running) <= runs_max:
        return span
    end = int(running.sort("begin_ns")["begin_ns"][runs_max])
    tick = processes.trace.header.tick_ns
    return Span(span.begin_ns, span.begin_ns + max((end - span.begin_ns) // tick, 1) * tick)


Colouring = Literal["group", "process"]


DRAWN_INTERVALS_MAX = 4000
"""Maximum number of marks in a chart. More marks make a page slow."""


def merge_for_page(frame: pl.DataFrame, keys: list[str], span: Span) -> tuple[pl.DataFrame, str]:
    """Returns `frame` with thin intervals merged until a page can hold
    it, and a note for the caption.
    """
    ordered = frame.sort(*keys, "begin_ns")
    least_ns = span.length_ns / (2 * WIDTH)
    drawn = merge_thin(ordered, keys, least_ns)
    while len(drawn) > DRAWN_INTERVALS_MAX:
        least_ns *= 2
        drawn = merge_thin(ordered, keys, least_ns)
    merged = drawn.filter(pl.col("merged") > 1)["merged"].sum()
    if not merged:
        return drawn, ""
    return drawn, (
        f"{merged:,} intervals shorter than {duration(least_ns)} are merged with neighbours of the"
        " same colour and row; the total length is unchanged."
    )


def merge_thin(frame: pl.DataFrame, keys: list[str], least_ns: float) -> pl.DataFrame:
    """Merges intervals that are too thin to be visible.

    Adjacent thin intervals with the same `keys` whose beginnings lie in one cell of `least_ns`
    become one. The length of the merged interval is the sum of the original lengths, so that no
    time is added or lost. `merged` is the number of original intervals. `frame` is sorted by keys,
    then time.
    """
    begin = pl.col("begin_ns")
    cell = (begin // max(int(least_ns), 1)).alias("cell")
    is_thin = (pl.col("end_ns") - begin) < least_ns
    piece_number = pl.when(is_thin).then(-1).otherwise(pl.int_range(pl.len())).alias("piece")
    other_columns = [name for name in frame.columns if name not in (*keys, "begin_ns", "end_ns")]
    return (
        frame.with_columns(cell, piece_number, length_ns=pl.col("end_ns") - begin)
        .group_by(*keys, "cell", "piece", maintain_order=True)
        .agg(
            begin.first(),
            (begin.first() + pl.col("length_ns").sum()).alias("end_ns"),
            *[pl.col(name).last() for name in other_columns],
            merged=pl.len(),
        )
        .drop("cell", "piece")
    )


Unit = Literal["ticks", "ms"]
_MICROSECOND = 1000
_UNITS_NS = {"ms": 1_000_000}


@dataclass(frozen=True)
class TimeAxis:
    """The time axis.

    Times are embedded in whole microseconds since `origin_ns`, and drawn in `unit`.
    """

    span: Span
    origin_ns: int
    unit: Unit
    tick_ns: int

    @property
    def unit_ns(self) -> int:
        """Returns the length of the axis's unit in ns."""
        return self.tick_ns if self.unit == "ticks" else _UNITS_NS[self.unit]

    @property
    def title(self) -> str:
        """Returns the title of the axis."""
        return f"time ({self.unit})"

    def embed(self, *columns: str) -> list[pl.Expr]:
        """Converts columns of ns to whole microseconds, with names without `_ns`."""
        return [
            ((pl.col(name) - self.origin_ns) / _MICROSECOND)
            .round()
            .cast(pl.Int64)
            .alias(name.removesuffix("_ns"))
            for name in columns
        ]

    def in_units(self, name: str) -> str:
        """Returns a Vega expression that converts a column of microseconds to the axis's unit."""
        return f"datum.{name} / {self.unit_ns // _MICROSECOND}"

    def value(self, time_ns: int) -> float:
        """Returns a time in the axis's unit."""
        return (time_ns - self.origin_ns) / self.unit_ns

    def x(self, name: str) -> alt.X:
        """Returns the horizontal axis."""
        domain = [self.value(self.span.begin_ns), self.value(self.span.end_ns)]
        return alt.X(
            f"{name}:Q",
            title=self.title,
            scale=alt.Scale(domain=domain, nice=False),
            axis=alt.Axis(grid=False, format=",.6~g", tickCount=10),
        )

    def tooltips(self) -> list[alt.Tooltip]:
        """Returns tooltips for begin and length of an interval, from
        the fields `from_` and `length`.
        """
        return [
            alt.Tooltip("from_:Q", title=f"from ({self.unit})", format=",.6~g"),
            alt.Tooltip("length:Q", title=f"for ({self.unit})", format=",.6~g"),
        ]

    def bars(
        self, frame: pl.DataFrame, columns: Sequence[str | pl.Expr], *channels: Any, **look: Any
    ) -> Any:
        """Draws bars from `begin_ns` to `end_ns`, with `from_`, `to`
        and `length` in the axis's unit.

        `look`: the channels `opacity` and `tooltip`, and properties of the
        mark, such as a constant opacity.
        """
        encoded_names = [
            name for name in ("opacity", "tooltip") if not isinstance(look.get(name, 1.0), float)
        ]
        encoded_channels = {name: look.pop(name) for name in encoded_names}
        chart = chart_with_data(frame.select(*columns, *self.embed("begin_ns", "end_ns")))
        chart = chart.transform_calculate(
            from_=self.in_units("begin"), to=self.in_units("end"), length="datum.to - datum.from_"
        )
        bars = chart.mark_bar(clip=True, **look)
        return bars.encode(self.x("from_"), alt.X2("to:Q"), *channels, **encoded_channels)


def row_axis(field: str, order: Sequence[str], padding: float) -> alt.Y:
    """Returns a vertical axis with these rows, in their order."""
    rows = list(order)
    scale = alt.Scale(domain=rows, paddingInner=padding)
    look = alt.Axis(ticks=False, domain=False)
    return alt.Y(f"{field}:N", title=None, sort=rows, scale=scale, axis=look)

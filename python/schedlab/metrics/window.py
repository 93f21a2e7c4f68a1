# SPDX-License-Identifier: MIT
"""Which part of a trace is measured."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from schedlab.trace import Kind, MarkKind, Trace


@dataclass(frozen=True)
class Window:
    """What is measured: rows of the events and times, both ends included."""

    begin_row: int
    end_row: int
    begin_ns: int
    end_ns: int
    root_pid: int | None
    """The process that made MARK_BEGIN; without one, the first process of the trace; None: without one, in a
    trace that begins in the middle of things."""

    @property
    def elapsed_ns(self) -> int:
        """Its length."""
        return self.end_ns - self.begin_ns

    def duration(self) -> pl.Expr:
        """What of [begin_ns, end_ns] lies in the window."""
        begin = pl.col("begin_ns").clip(self.begin_ns, self.end_ns)
        return pl.col("end_ns").clip(self.begin_ns, self.end_ns) - begin

    def holds(self) -> pl.Expr:
        """Do begin_row and end_row lie in the window?"""
        return (pl.col("begin_row") >= self.begin_row) & (pl.col("end_row") <= self.end_row)


def measured_window(trace: Trace) -> Window:
    """The window from the first MARK_BEGIN to the first MARK_END after it, or to the end of the
    trace."""
    marks = trace.rows(Kind.MARK)
    kind = trace.column("first")[marks]
    begins = marks[kind == MarkKind.BEGIN]
    last_row = max(len(trace.events) - 1, 0)
    if len(begins) == 0:
        forks = trace.rows(Kind.FORK)
        from_the_first = len(forks) > 0 and len(trace.rows(Kind.FOUND)) == 0
        root = int(trace.column("first")[forks[0]]) if from_the_first else None
        return Window(0, last_row, trace.begin_ns, trace.end_ns, root)
    begin = int(begins[0])
    ends = marks[(kind == MarkKind.END) & (marks > begin)]
    time = trace.column("time_ns")
    begin_ns = int(time[begin])
    end_ns = int(time[ends[0]]) if len(ends) else trace.end_ns
    return Window(
        begin_row=begin,
        end_row=int(ends[0]) if len(ends) else last_row,
        begin_ns=begin_ns,
        end_ns=max(end_ns, begin_ns),
        root_pid=int(trace.column("process")[begin]),
    )

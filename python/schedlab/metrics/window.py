# SPDX-License-Identifier: MIT
"""Finds the measured window of a trace."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from schedlab.trace import Kind, MarkKind, Trace, TraceFacts
from schedlab.trace.model import Integers


@dataclass(frozen=True)
class Window:
    """The measured window: rows of the events and times, both ends included."""

    begin_row: int
    end_row: int
    begin_ns: int
    end_ns: int
    root_pid: int | None
    """The process whose descendants are the workload: named by MARK_BEGIN, or the writer of this
    mark.

    Without the mark: the trace's first process, or None if the trace begins in the middle of a run.
    """

    @property
    def elapsed_ns(self) -> int:
        """The length of the window in nanoseconds."""
        return self.end_ns - self.begin_ns

    def duration(self, begin_ns: Integers, end_ns: Integers) -> Integers:
        """Returns how much of each interval lies in the window (ns)."""
        earliest = min(begin_ns.min(initial=self.end_ns), end_ns.min(initial=self.end_ns))
        latest = max(begin_ns.max(initial=self.begin_ns), end_ns.max(initial=self.begin_ns))
        if earliest >= self.begin_ns and latest <= self.end_ns:
            return end_ns - begin_ns
        begin = np.clip(begin_ns, self.begin_ns, self.end_ns)
        lies: Integers = np.clip(end_ns, self.begin_ns, self.end_ns) - begin
        return lies

    def part(self, rows: Integers) -> slice:
        """Returns the slice of `rows` (ascending) that lies in the window."""
        begin = np.searchsorted(rows, self.begin_row)
        return slice(int(begin), int(np.searchsorted(rows, self.end_row, side="right")))

    def holds(self, rows: Integers) -> npt.NDArray[np.bool_]:
        """Returns which rows lie in the window."""
        in_window: npt.NDArray[np.bool_] = (rows >= self.begin_row) & (rows <= self.end_row)
        return in_window


def measured_window(trace: TraceFacts) -> Window:
    """Returns the window from the first MARK_BEGIN to the next MARK_END, or to the end of the trace."""
    marks = trace.rows(Kind.MARK)
    kind = trace.at("first", marks)
    begins = marks[kind == MarkKind.BEGIN]
    last_row = max(len(trace) - 1, 0)
    if len(begins) == 0:
        forks = trace.rows(Kind.FORK)
        from_the_first = len(forks) > 0 and not trace.has(Kind.FOUND)
        root = int(trace.at("first", forks[:1])[0]) if from_the_first else None
        return Window(0, last_row, trace.begin_ns, trace.end_ns, root)
    begin = int(begins[0])
    ends = marks[(kind == MarkKind.END) & (marks > begin)]
    begin_ns = int(trace.at("time_ns", begins[:1])[0])
    end_ns = int(trace.at("time_ns", ends[:1])[0]) if len(ends) else trace.end_ns
    return Window(
        begin_row=begin,
        end_row=int(ends[0]) if len(ends) else last_row,
        begin_ns=begin_ns,
        end_ns=max(end_ns, begin_ns),
        root_pid=int(trace.at("second", begins[:1])[0] or trace.at("process", begins[:1])[0]),
    )


def window_since(window: Window, trace: Trace, since_ns: int) -> Window:
    """Returns the part of a window from a time (ns) on."""
    if since_ns <= window.begin_ns:
        return window
    later = np.flatnonzero(trace.column("time_ns") >= since_ns)
    return replace(
        window,
        begin_row=min(int(later[0]), window.end_row) if len(later) else window.end_row,
        begin_ns=min(since_ns, window.end_ns),
    )

# SPDX-License-Identifier: MIT
"""Finds the measured window of a trace."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from schedlab.trace import Kind, MarkKind, Trace, TraceFacts
from schedlab.trace.joined import RunFacts
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
    first_row: int = 0
    """First row of the run, which is not 0 in a joined trace."""

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
        within_ns: Integers = np.clip(end_ns, self.begin_ns, self.end_ns) - begin
        return within_ns

    def part(self, rows: Integers) -> slice:
        """Returns the slice of `rows` (ascending) that lies in the window."""
        begin = np.searchsorted(rows, self.begin_row)
        return slice(int(begin), int(np.searchsorted(rows, self.end_row, side="right")))

    def holds(self, rows: Integers) -> npt.NDArray[np.bool_]:
        """Returns which rows lie in the window."""
        in_window: npt.NDArray[np.bool_] = (rows >= self.begin_row) & (rows <= self.end_row)
        return in_window


class Windows:
    """The windows of all runs of a joined trace; a trace that is measured alone has one."""

    def __init__(self, windows: Sequence[Window], runs: RunFacts) -> None:
        """`windows`: one for each run."""
        self.windows = tuple(windows)
        self.runs = runs
        self.begin_row, self.end_row, self.begin_ns, self.end_ns = (
            np.array([getattr(window, name) for window in windows], np.int64)
            for name in ("begin_row", "end_row", "begin_ns", "end_ns")
        )
        self.elapsed_ns = self.end_ns - self.begin_ns

    def __len__(self) -> int:
        return len(self.windows)

    def of_processes(
        self, pid: npt.NDArray[np.integer], begin_ns: Integers, end_ns: Integers
    ) -> Integers:
        """Returns how much of each interval of a process lies in the window of its run (ns)."""
        if len(self) == 1:
            return self.windows[0].duration(begin_ns, end_ns)
        return self._time_in_windows(self.runs.of_pids(pid), begin_ns, end_ns)

    def of_cpus(
        self, cpu: npt.NDArray[np.integer], begin_ns: Integers, end_ns: Integers
    ) -> Integers:
        """Returns how much of each interval of a CPU lies in the window of its run (ns)."""
        if len(self) == 1:
            return self.windows[0].duration(begin_ns, end_ns)
        return self._time_in_windows(self.runs.of_cpus(cpu), begin_ns, end_ns)

    def _time_in_windows(self, run: Integers, begin_ns: Integers, end_ns: Integers) -> Integers:
        """Returns how much of each interval lies in the window of its run (ns)."""
        window_begin, window_end = self.begin_ns[run], self.end_ns[run]
        begin = np.minimum(np.maximum(begin_ns, window_begin), window_end)
        within_ns: Integers = np.minimum(np.maximum(end_ns, window_begin), window_end) - begin
        return within_ns

    def part(self, rows: Integers) -> slice | npt.NDArray[np.bool_]:
        """Returns the index of the elements of `rows` (ascending) that lie in a window."""
        return self.windows[0].part(rows) if len(self) == 1 else self.holds(rows)

    def holds(self, rows: Integers) -> npt.NDArray[np.bool_]:
        """Returns which rows lie in the window of their run."""
        if len(self) == 1:
            return self.windows[0].holds(rows)
        window = np.searchsorted(self.begin_row, rows, side="right") - 1
        in_window: npt.NDArray[np.bool_] = (window >= 0) & (rows <= self.end_row[window])
        return in_window


def measured_window(trace: TraceFacts) -> Window:
    """Returns the window from the first MARK_BEGIN to the next MARK_END, or to the end of the trace."""
    marks, forks = trace.rows(Kind.MARK), trace.rows(Kind.FORK)
    return _window(trace, marks, forks, (0, len(trace)), (trace.begin_ns, trace.end_ns))


def measured_windows(trace: TraceFacts, runs: RunFacts) -> Windows:
    """Returns the windows of all runs of a joined trace."""
    marks, forks = trace.rows(Kind.MARK), trace.rows(Kind.FORK)
    of_marks, of_forks = (runs.slices(runs.of_rows(rows)) for rows in (marks, forks))
    rows = zip(runs.first_row.tolist(), runs.end_row.tolist(), strict=True)
    times = zip(runs.begin_ns.tolist(), runs.end_ns.tolist(), strict=True)
    return Windows(
        [
            _window(trace, marks[of_mark], forks[of_fork], row, time)
            for of_mark, of_fork, row, time in zip(of_marks, of_forks, rows, times, strict=True)
        ],
        runs,
    )


def _window(
    trace: TraceFacts,
    marks: Integers,
    forks: Integers,
    rows: tuple[int, int],
    times: tuple[int, int],
) -> Window:
    """Returns the window of a run with these marks and forks.

    `rows`: its first row, and the row after its last one. `times`: its begin and its end (ns).
    """
    kind = trace.at("first", marks)
    begins = marks[kind == MarkKind.BEGIN]
    last_row = max(rows[1] - 1, 0)
    if len(begins) == 0:
        from_the_first = len(forks) > 0 and not trace.has(Kind.FOUND)
        root = int(trace.at("first", forks[:1])[0]) if from_the_first else None
        return Window(rows[0], last_row, *times, root, rows[0])
    begin = int(begins[0])
    ends = marks[(kind == MarkKind.END) & (marks > begin)]
    begin_ns = int(trace.at("time_ns", begins[:1])[0])
    end_ns = int(trace.at("time_ns", ends[:1])[0]) if len(ends) else times[1]
    return Window(
        begin_row=begin,
        end_row=int(ends[0]) if len(ends) else last_row,
        begin_ns=begin_ns,
        end_ns=max(end_ns, begin_ns),
        root_pid=int(trace.at("second", begins[:1])[0] or trace.at("process", begins[:1])[0]),
        first_row=rows[0],
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

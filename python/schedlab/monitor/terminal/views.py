# SPDX-License-Identifier: MIT
"""The terminal's memory of a system: its last frame and a bounded history."""

from collections import deque

from schedlab.monitor.frames import Decision, Frame, Mark

RUNS_MAX = 5_000
"""Runs kept per CPU."""
LOG_MAX = 2_000

Run = tuple[int, int, int, int]
"""PID, begin, end (ns), level."""


class SystemView:
    """The last frame of one system, and its history for the timeline and the log."""

    def __init__(self, letter: str) -> None:
        self.letter = letter
        self.frame: Frame | None = None
        self.runs: dict[int, deque[Run]] = {}
        self.idle_intervals: dict[int, deque[tuple[int, int]]] = {}
        self.decisions: deque[Decision] = deque(maxlen=200)
        self.marks: deque[Mark] = deque(maxlen=200)
        self.log: deque[str] = deque(maxlen=LOG_MAX)
        self.line_count = 0
        """Number of lines that the log ever had."""

    def add_frame(self, frame: Frame) -> None:
        """Adds the next frame.

        If its time is earlier than the last frame's, the system was restarted.
        """
        if self.frame is not None and frame["now_ns"] < self.frame["now_ns"]:
            self.clear_history()
        self.frame = frame
        for cpu, pid, begin, end, level, *_ in frame["timeline"]["runs"]:
            self._add_run(cpu, (pid, begin, end, level))
        for cpu, begin, end in frame["timeline"]["idle_while_queued"]:
            self.idle_intervals.setdefault(cpu, deque(maxlen=RUNS_MAX)).append((begin, end))
        self.decisions.extend(frame["decisions"])
        self.marks.extend(frame["marks"])
        self.log.extend(frame["log"])
        self.line_count += len(frame["log"])

    def clear_history(self) -> None:
        """Clears the history, after a restart or a step back."""
        self.runs.clear()
        self.idle_intervals.clear()
        self.decisions.clear()
        self.marks.clear()

    def _add_run(self, cpu: int, run: Run) -> None:
        runs = self.runs.setdefault(cpu, deque(maxlen=RUNS_MAX))
        while runs and runs[-1][1] >= run[1]:
            runs.pop()  # the same run, which now has a later end
        runs.append(run)

    def names(self) -> dict[int, str]:
        """Returns the names of all live processes by PID."""
        if self.frame is None:
            return {}
        columns = self.frame["processes"]
        return {
            int(pid): str(name) for pid, name in zip(columns["pid"], columns["name"], strict=True)
        }

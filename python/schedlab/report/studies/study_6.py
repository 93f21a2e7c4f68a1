# SPDX-License-Identifier: MIT
"""What study 6's page asks of the course of its runs: who had the CPU when, and when processes made
their marks.

`experiment` and `policy` name a setup, as in all queries; `group` a group of processes, times are in
seconds from the machine's begin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from schedlab.metrics import state_intervals
from schedlab.metrics.shares import Floats
from schedlab.report.studies import queries
from schedlab.report.studies.queries import traces
from schedlab.report.study_tables import Measured, measure
from schedlab.runs.collection import Collection, Repeated, StoredRun
from schedlab.studies.pack import Study
from schedlab.trace import Kind, MarkKind, Trace

_SECOND, _MS = 1e9, 1e6


@dataclass(frozen=True)
class Course:
    """One run's."""

    end_ns: int
    running: pl.DataFrame
    """Columns: pid, group, begin_ns, end_ns: when which process ran, by begin."""
    notes: pl.DataFrame
    """Columns: pid, time_ns, number: the marks that are numbers, by time."""

    def ran(self, is_process: pl.Expr, at_ns: Floats) -> Floats:
        """The nanoseconds on CPUs that processes had had together at these times."""
        rows = self.running.filter(is_process)
        edges = np.concatenate((rows["begin_ns"].to_numpy(), rows["end_ns"].to_numpy()))
        change = np.repeat([1.0, -1.0], len(rows))
        order = np.argsort(edges, kind="stable")
        times = edges[order].astype(np.float64)
        steps = np.diff(times, prepend=times[:1]) * np.concatenate(
            ([0.0], np.cumsum(change[order])[:-1])
        )
        return np.interp(at_ns, times, np.cumsum(steps)) if len(times) else np.zeros(len(at_ns))

    def of_group(self, group: str, at_ns: Floats) -> Floats:
        """The same of a group."""
        return self.ran(pl.col("group") == group, at_ns)

    def between(self, first: int, second: int) -> Floats:
        """The nanoseconds from each mark of the one number to the same process's next mark, where that
        is of the other."""
        intervals = self.notes.with_columns(
            since=pl.col("time_ns").diff().over("pid"), before=pl.col("number").shift().over("pid")
        ).filter(number=second, before=first)
        return intervals["since"].to_numpy().astype(np.float64)


def course_of(run: StoredRun, trace: Trace) -> Course:
    """Reads what is asked of a run from its trace."""
    groups = run.metrics().processes.select("pid", "group")
    running = (
        state_intervals(trace)
        .filter(pl.col("state") == "running")
        .join(groups, on="pid", how="inner")
        .select("pid", "group", "begin_ns", "end_ns")
        .sort("begin_ns")
    )
    rows = trace.rows(Kind.MARK)
    rows = rows[trace.at("first", rows) == MarkKind.NOTE]
    notes = pl.DataFrame(
        {
            "pid": trace.at("process", rows).astype(np.int64),
            "time_ns": trace.at("time_ns", rows).astype(np.int64),
            "number": trace.at("second", rows).astype(np.int64),
        }
    )
    return Course(int(trace.end_ns), running, notes)


class Queries(queries.Queries):
    """Asks for what came out in the course of time."""

    cpus = 1

    def __init__(self, study: Study, collection: Collection) -> None:
        super().__init__(study, collection)
        self._names: dict[str, str] = study.facts.get("schedulers", {})
        self._courses: dict[Path, Course] = {}

    def setup(self, experiment: str, policy: str, cpus: int = 0) -> Repeated | None:
        """As all have it; a policy may have the name that study.yaml gives it."""
        return super().setup(experiment, self._names.get(policy, policy), cpus)

    def _per_run(
        self, experiment: str, policy: str, number: Callable[[Course], float | None]
    ) -> Measured:
        """A number of each seed's course."""
        setup = self.setup(experiment, policy)
        for run, trace in traces(setup) if setup and not self._known(setup.runs) else ():
            self._courses[run.folder] = course_of(run, trace)
        known = {
            run.folder: numbers
            for run in (setup.runs if setup else ())
            if run.folder in self._courses
            and (numbers := number(self._courses[run.folder])) is not None
        }
        return measure(setup, known)

    def _known(self, runs: tuple[StoredRun, ...]) -> bool:
        return all(run.folder in self._courses for run in runs)

    # --- who had the CPU

    def part(
        self, experiment: str, policy: str, group: str, begin: float = 0, end: float = 0
    ) -> Measured:
        """A group's part of that time, in percent. `end` 0: the run's."""

        def share(course: Course) -> float:
            edges = _edges(course, begin, end)
            return float(100 * np.diff(course.of_group(group, edges))[0] / np.diff(edges)[0])

        return self._per_run(experiment, policy, share)

    def times(
        self,
        experiment: str,
        policy: str,
        one: str,
        other: str,
        begin: float = 0,
        end: float = 0,
    ) -> Measured:
        """How many times as much of the CPU the one group had as the other."""

        def ratio(course: Course) -> float | None:
            edges = _edges(course, begin, end)
            ran, less = (np.diff(course.of_group(group, edges))[0] for group in (one, other))
            return float(ran / less) if less else None

        return self._per_run(experiment, policy, ratio)

    def in_windows(
        self,
        experiment: str,
        policy: str,
        one: str,
        other: str,
        seconds: float,
        which: Literal["least", "most"],
    ) -> Measured:
        """The least or the most of that in windows of so many seconds, one after the other."""

        def extreme(course: Course) -> float | None:
            edges = np.arange(0, course.end_ns + 1, seconds * _SECOND)
            ran, less = (np.diff(course.of_group(group, edges)) for group in (one, other))
            if not len(less) or not less.all():
                return None
            return float((ran / less).min() if which == "least" else (ran / less).max())

        return self._per_run(experiment, policy, extreme)

    def error(
        self, experiment: str, policy: str, group: str, part: float, quantum_ms: float
    ) -> Measured:
        """The farthest that a group ever was from its part of the time, in quanta. Looked at at the
        begin and end of each turn."""

        def farthest(course: Course) -> float:
            edges = np.unique(course.running.select("begin_ns", "end_ns").to_numpy())
            due = part * (edges - edges[0])
            off = np.abs(course.of_group(group, edges.astype(np.float64)) - due)
            return float(off.max() / quantum_ms / _MS)

        return self._per_run(experiment, policy, farthest)

    def gap(
        self,
        experiment: str,
        policy: str,
        group: str,
        quantum_ms: float,
        which: Literal["mean", "deviation"],
    ) -> Measured:
        """From the begin of a quantum of a group's until its next one begins, in quanta: on the
        mean, or the standard deviation."""

        def value(course: Course) -> float | None:
            group_rows = course.running.filter(pl.col("group") == group)
            begins = [
                np.arange(begin, end - quantum_ms * _MS / 2, quantum_ms * _MS)
                for begin, end in group_rows.select("begin_ns", "end_ns").rows()
            ]
            gaps = np.diff(np.concatenate(begins)) / quantum_ms / _MS if begins else np.zeros(0)
            if not len(gaps):
                return None
            return float(gaps.mean() if which == "mean" else gaps.std())

        return self._per_run(experiment, policy, value)

    def least_of_most(self, experiment: str, policy: str, group: str) -> Measured:
        """Of a group, what the process that had least of the CPU had of what the one with most did,
        in percent."""
        ran = pl.col("running_ns")
        rows = self._processes("group", group)
        return self.of(experiment, policy, 100 * ran.min() / ran.max(), rows)

    # --- marks

    def marked(self, experiment: str, policy: str, number: int) -> Measured:
        """How often that number was marked."""
        return self._per_run(
            experiment, policy, lambda course: float((course.notes["number"] == number).sum())
        )

    def apart(self, experiment: str, policy: str, number: int) -> Measured:
        """The seconds from one such mark to the next, on the mean."""

        def seconds(course: Course) -> float | None:
            times = course.notes.filter(pl.col("number") == number)["time_ns"].to_numpy()
            return float(np.diff(times).mean() / _SECOND) if len(times) > 1 else None

        return self._per_run(experiment, policy, seconds)

    def between(self, experiment: str, policy: str, first: int, second: int) -> Measured:
        """The ms on the mean from a process's mark of the one number to its next, if that is of the
        other."""

        def gap(course: Course) -> float | None:
            gaps = course.between(first, second)
            return float(gaps.mean() / _MS) if len(gaps) else None

        return self._per_run(experiment, policy, gap)


def _edges(course: Course, begin: float, end: float) -> Floats:
    return np.array([begin * _SECOND, end * _SECOND or course.end_ns])

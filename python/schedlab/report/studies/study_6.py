# SPDX-License-Identifier: MIT
"""Queries of study 6's page: CPU time and marks over the course of a run.

`experiment` and `policy` name a configuration, and `group` a group of tasks, as in all queries.
Times are in seconds since the start of the machine.
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
from schedlab.studies.study import Study
from schedlab.trace import Kind, MarkKind, Trace

_SECOND, _MS = 1e9, 1e6


@dataclass(frozen=True)
class Course:
    """The course of one run: running intervals and marks."""

    end_ns: int
    running: pl.DataFrame
    """Columns: pid, group, begin_ns, end_ns: the running intervals, by begin."""
    notes: pl.DataFrame
    """Columns: pid, time_ns, number: the numbered marks, by time."""

    def ran(self, is_process: pl.Expr, at_ns: Floats) -> Floats:
        """Returns the total CPU time of the selected tasks up to each time, in ns."""
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
        """Returns the total CPU time of a group up to each time, in ns."""
        return self.ran(pl.col("group") == group, at_ns)

    def between(self, first: int, second: int) -> Floats:
        """Returns the times in ns from marks `first` to marks `second` that
        follow directly in the same task.
        """
        intervals = self.notes.with_columns(
            since=pl.col("time_ns").diff().over("pid"), before=pl.col("number").shift().over("pid")
        ).filter(number=second, before=first)
        return intervals["since"].to_numpy().astype(np.float64)


def course_of(run: StoredRun, trace: Trace) -> Course:
    """Reads the course of a run from its trace."""
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
    """Queries about the course of study 6's runs."""

    cpus = 1

    def __init__(self, study: Study, collection: Collection) -> None:
        super().__init__(study, collection)
        self._names: dict[str, str] = study.facts.get("schedulers", {})
        self._courses: dict[Path, Course] = {}

    def setup(self, experiment: str, policy: str, cpus: int = 0) -> Repeated | None:
        """Returns all seeds of an experiment.

        A policy may have a name that study.yaml defines.
        """
        return super().setup(experiment, self._names.get(policy, policy), cpus)

    def _per_run(
        self, experiment: str, policy: str, number: Callable[[Course], float | None]
    ) -> Measured:
        """Returns the measurement of a number computed from each seed's course."""
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

    # --- CPU time

    def part(
        self, experiment: str, policy: str, group: str, begin: float = 0, end: float = 0
    ) -> Measured:
        """Returns a group's fraction of CPU time from `begin` to `end`, in percent.

        `end` 0: the run's end.
        """

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
        """Returns the ratio of two groups' CPU times from `begin` to `end`."""

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
        """Returns the minimum or maximum of the ratio of `times` over consecutive windows of `seconds`."""

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
        """Returns a group's largest deviation from its share of the time, in quanta.

        The deviation is evaluated at the beginning and end of each running interval.
        """

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
        """Returns the mean or standard deviation of the time between a group's quanta, in quanta.

        The time is measured from the beginning of a quantum to the beginning of the next quantum.
        """

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
        """Returns the least CPU time of a group's task in percent of the largest."""
        ran = pl.col("running_ns")
        rows = self._processes("group", group)
        return self.of(experiment, policy, 100 * ran.min() / ran.max(), rows)

    # --- marks

    def marked(self, experiment: str, policy: str, number: int) -> Measured:
        """Returns the number of marks with this number."""
        return self._per_run(
            experiment, policy, lambda course: float((course.notes["number"] == number).sum())
        )

    def mark_interval(self, experiment: str, policy: str, number: int) -> Measured:
        """Returns the mean time between consecutive marks with this number, in seconds."""

        def seconds(course: Course) -> float | None:
            times = course.notes.filter(pl.col("number") == number)["time_ns"].to_numpy()
            return float(np.diff(times).mean() / _SECOND) if len(times) > 1 else None

        return self._per_run(experiment, policy, seconds)

    def between(self, experiment: str, policy: str, first: int, second: int) -> Measured:
        """Returns the mean time from a mark `first` to a directly following
        mark `second` of a task, in ms.
        """

        def gap(course: Course) -> float | None:
            gaps = course.between(first, second)
            return float(gaps.mean() / _MS) if len(gaps) else None

        return self._per_run(experiment, policy, gap)


def _edges(course: Course, begin: float, end: float) -> Floats:
    return np.array([begin * _SECOND, end * _SECOND or course.end_ns])

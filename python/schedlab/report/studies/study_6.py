# SPDX-License-Identifier: MIT
"""Queries of study 6's page: CPU time and marks over the course of a run.

`experiment` and `policy` name a configuration, and `group` a group of tasks, as in all queries.
Times are in seconds since the start of the machine.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from schedlab.metrics import state_intervals
from schedlab.metrics.shares import Floats
from schedlab.report.charts.shares import running_time_until
from schedlab.report.studies import queries
from schedlab.report.studies.queries import traces
from schedlab.report.study_tables import Measurement, measure_seeds
from schedlab.runs.collection import Collection, ConfigurationRuns, StoredRun
from schedlab.studies.study import Study
from schedlab.trace import Kind, MarkKind, Trace

_NS_PER_S, _NS_PER_MS = 1e9, 1e6


@dataclass(frozen=True)
class RunCourse:
    """The course of one run: running intervals and marks."""

    end_ns: int
    running: pl.DataFrame
    """Columns: pid, group, begin_ns, end_ns: the running intervals, by begin."""
    notes: pl.DataFrame
    """Columns: pid, time_ns, number: the numbered marks, by time."""

    def ran(self, is_process: pl.Expr, at_ns: Floats) -> Floats:
        """Returns the total CPU time of the selected tasks up to each time, in ns."""
        rows = self.running.filter(is_process)
        return running_time_until(rows["begin_ns"].to_numpy(), rows["end_ns"].to_numpy(), at_ns)

    def of_group(self, group: str, at_ns: Floats) -> Floats:
        """Returns the total CPU time of a group up to each time, in ns."""
        return self.ran(pl.col("group") == group, at_ns)

    def mark_delays(self, first: int, second: int) -> Floats:
        """Returns the times in ns from marks `first` to marks `second` that
        follow directly in the same task.
        """
        intervals = self.notes.with_columns(
            since=pl.col("time_ns").diff().over("pid"), before=pl.col("number").shift().over("pid")
        ).filter(number=second, before=first)
        return intervals["since"].to_numpy().astype(np.float64)


def course_of(run: StoredRun, trace: Trace) -> RunCourse:
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
    return RunCourse(int(trace.end_ns), running, notes)


class Queries(queries.Queries):
    """Queries about the course of study 6's runs."""

    cpus = 1

    def __init__(self, study: Study, collection: Collection) -> None:
        super().__init__(study, collection)
        self._names: dict[str, str] = study.facts.get("schedulers", {})
        self._courses: dict[Path, RunCourse] = {}

    def setup(self, experiment: str, policy: str, cpus: int = 0) -> ConfigurationRuns | None:
        """Returns all seeds of an experiment.

        A policy may have a name that study.yaml defines.
        """
        return super().setup(experiment, self._names.get(policy, policy), cpus)

    def _measure_courses(
        self, experiment: str, policy: str, number: Callable[[RunCourse], float | None]
    ) -> Measurement:
        setup = self.setup(experiment, policy)
        for run, trace in traces(setup) if setup and not self._are_cached(setup.runs) else ():
            self._courses[run.folder] = course_of(run, trace)
        numbers_by_run = {
            run.folder: numbers
            for run in (setup.runs if setup else ())
            if run.folder in self._courses
            and (numbers := number(self._courses[run.folder])) is not None
        }
        return measure_seeds(setup, numbers_by_run)

    def _are_cached(self, runs: tuple[StoredRun, ...]) -> bool:
        """Returns whether the courses of all these runs are in the cache."""
        return all(run.folder in self._courses for run in runs)

    # --- CPU time

    def cpu_share(
        self, experiment: str, policy: str, group: str, begin: float = 0, end: float = 0
    ) -> Measurement:
        """Returns a group's fraction of CPU time from `begin` to `end`, in percent.

        `end` 0: the run's end.
        """

        def share(course: RunCourse) -> float:
            """Returns the share in this run."""
            edges = _limits_ns(course, begin, end)
            return float(100 * np.diff(course.of_group(group, edges))[0] / np.diff(edges)[0])

        return self._measure_courses(experiment, policy, share)

    def cpu_time_ratio(
        self,
        experiment: str,
        policy: str,
        one: str,
        other: str,
        begin: float = 0,
        end: float = 0,
    ) -> Measurement:
        """Returns the ratio of two groups' CPU times from `begin` to `end`."""

        def ratio(course: RunCourse) -> float | None:
            """Returns the ratio in this run, or None if the other group did not run."""
            edges = _limits_ns(course, begin, end)
            ran, less = (np.diff(course.of_group(group, edges))[0] for group in (one, other))
            return float(ran / less) if less else None

        return self._measure_courses(experiment, policy, ratio)

    def in_windows(
        self,
        experiment: str,
        policy: str,
        one: str,
        other: str,
        seconds: float,
        which: Literal["least", "most"],
    ) -> Measurement:
        """Returns the minimum or maximum of the ratio of `times` over consecutive windows of `seconds`."""

        def extreme(course: RunCourse) -> float | None:
            """Returns the extreme over the windows of this run."""
            edges = np.arange(0, course.end_ns + 1, seconds * _NS_PER_S)
            ran, less = (np.diff(course.of_group(group, edges)) for group in (one, other))
            if not len(less) or not less.all():
                return None
            return float((ran / less).min() if which == "least" else (ran / less).max())

        return self._measure_courses(experiment, policy, extreme)

    def largest_error(
        self, experiment: str, policy: str, group: str, part: float, quantum_ms: float
    ) -> Measurement:
        """Returns a group's largest deviation from its share of the time, in quanta.

        The deviation is evaluated at the beginning and end of each running interval.
        """

        def farthest(course: RunCourse) -> float:
            """Returns the largest deviation in this run."""
            edges = np.unique(course.running.select("begin_ns", "end_ns").to_numpy())
            ideal_ns = part * (edges - edges[0])
            errors_ns = np.abs(course.of_group(group, edges.astype(np.float64)) - ideal_ns)
            return float(errors_ns.max() / quantum_ms / _NS_PER_MS)

        return self._measure_courses(experiment, policy, farthest)

    def quantum_gap(
        self,
        experiment: str,
        policy: str,
        group: str,
        quantum_ms: float,
    ) -> Measurement:
        """Returns the standard deviation of the time between a group's quanta, in quanta.

        The time is measured from the beginning of a quantum to the beginning of the next quantum.
        """

        def value(course: RunCourse) -> float | None:
            """Returns the deviation in this run."""
            group_rows = course.running.filter(pl.col("group") == group)
            begins = [
                np.arange(begin, end - quantum_ms * _NS_PER_MS / 2, quantum_ms * _NS_PER_MS)
                for begin, end in group_rows.select("begin_ns", "end_ns").rows()
            ]
            gaps = (
                np.diff(np.concatenate(begins)) / quantum_ms / _NS_PER_MS if begins else np.zeros(0)
            )
            return float(gaps.std()) if len(gaps) else None

        return self._measure_courses(experiment, policy, value)

    def least_of_most(self, experiment: str, policy: str, group: str) -> Measurement:
        """Returns the least CPU time of a group's task in percent of the largest."""
        running_ns = pl.col("running_ns")
        rows = self._processes("group", group)
        return self.of(experiment, policy, 100 * running_ns.min() / running_ns.max(), rows)

    # --- marks

    def marked(self, experiment: str, policy: str, number: int) -> Measurement:
        """Returns the number of marks with this number."""
        return self._measure_courses(
            experiment, policy, lambda course: float((course.notes["number"] == number).sum())
        )

    def mark_interval(self, experiment: str, policy: str, number: int) -> Measurement:
        """Returns the mean time between consecutive marks with this number, in seconds."""

        def seconds(course: RunCourse) -> float | None:
            """Returns the mean interval in this run, or None without two marks."""
            times = course.notes.filter(pl.col("number") == number)["time_ns"].to_numpy()
            return float(np.diff(times).mean() / _NS_PER_S) if len(times) > 1 else None

        return self._measure_courses(experiment, policy, seconds)

    def mark_delays(self, experiment: str, policy: str, first: int, second: int) -> Measurement:
        """Returns the mean time from a mark `first` to a directly following
        mark `second` of a task, in ms.
        """

        def gap(course: RunCourse) -> float | None:
            gaps = course.mark_delays(first, second)
            return float(gaps.mean() / _NS_PER_MS) if len(gaps) else None

        return self._measure_courses(experiment, policy, gap)


def _limits_ns(course: RunCourse, begin: float, end: float) -> Floats:
    """Returns the beginning and the end of a part of a run, in ns. `end` 0: the run's end."""
    return np.array([begin * _NS_PER_S, end * _NS_PER_S or course.end_ns])

# SPDX-License-Identifier: MIT
"""Queries of study 2's page: its two lists of seven tests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import ClassVar

from schedlab.report.studies.timing import Suite, TimingQueries
from schedlab.report.study_tables import Measurement
from schedlab.studies.experiment import name_without_cost
from schedlab.studies.experiments import MIXED_SWAPPED
from schedlab.studies.figures import Figure

_UNCHANGED = ("cpu-heavy", "io-bound", "short", "starvation")


class Queries(TimingQueries):
    """Queries by list, `before` or `after` priorities. The tests are those of study 1's table 1."""

    cpus = 2
    """The study does not state the number.

    Its 44 ticks of CPU-heavy are close to the 46 of study 1 on two CPUs.
    """
    suites: ClassVar = {
        "before": Suite("timing", "section 3", "rr:table-scan", reports_sleepers=False),
        "after": Suite("priority", "section 5", "priority aging_interval=0"),
    }
    rows: ClassVar = {
        "cpu-heavy": "CPU-heavy",
        "switch": "Switch overhead",
        "io-bound": "I/O-bound",
        "mixed": "Mixed load",
        "creation": "Process creation",
        "short": "Short tasks",
        "starvation": "Starvation check",
    }
    exchanged = MIXED_SWAPPED
    lists: ClassVar = {"before": "before (section 3), ticks", "after": "after (section 5), ticks"}

    def printed(self, suite: str, test: str, count: int = cpus) -> Figure | None:
        """Returns the published figure on the assumed number of CPUs; None on others."""
        place = self.suites[suite].place
        figure = self.figure(place, self.rows[test], "average", quantity="completion")
        return figure if count == self.cpus else None

    def first_runs_of_mixed(self) -> Figure | None:
        """Returns the time of mixed load's first runs under
        priorities, according to section 5.1.
        """
        return self.figure("section 5.1", self.rows["mixed"], "first runs")

    def exchanged_mixed(self) -> Measurement:
        """Returns the time of mixed load until all have ended, with exchanged priorities."""
        return self.ticks(self.exchanged, self.suites["after"].policy, "completion_ns", self.cpus)

    def widest_range(self) -> tuple[float, str]:
        """Returns the largest range of a test's time over the seeds, in ticks, and the test."""
        ranges = [
            (max(values) - min(values), self.rows[test])
            for suite in self.suites
            for test in self.tests
            if len(values := self.completion(suite, test, self.cpus).values) > 1
        ]
        return max(ranges, default=(0.0, ""))

    def completion_with_exec(self, slow: bool) -> Measurement:
        """Returns the time of process creation before priorities, in ticks, with the study costs.

        `slow`: includes the cost of its exec.
        """
        name = self.experiment("before", "creation", with_study_costs=True)
        name = name if slow else name_without_cost(name, "exec")
        return self.ticks(name, self.suites["before"].policy, "completion_ns", self.cpus)

    def is_constant(self, suite: str, test: str) -> bool:
        """Returns True if the reported time of this test is the shortest of 50 ticks or more."""
        return self._reports_sleepers(suite, test, False)

    # --- results

    def fewer_ticks_after(self) -> int:
        """Returns the number of tests with fewer published ticks after than before."""
        pairs = [[self.printed(suite, test) for suite in self.suites] for test in self.tests]
        return sum(bool(old and new and new.value < old.value) for old, new in pairs)

    def changes(self) -> list[SimpleNamespace]:
        """Returns how many percent priorities change each
        unchanged test, in ascending order.
        """
        all_changes = []
        for test in _UNCHANGED:
            old, new = (self.reported_time(suite, test, self.cpus).mean for suite in self.suites)
            if old and new:
                all_changes.append((round(100 * (new / old - 1)), self.rows[test]))
        return [
            SimpleNamespace(percent=f"{percent:+d}" if percent else "0", row=row)
            for percent, row in sorted(all_changes)
        ]

    def timed_twice(self, test: str) -> bool:
        """Returns whether the test was measured before and after."""
        return all(
            measure(suite, test, self.cpus).mean
            for suite in self.suites
            for measure in (self.completion, self.processes)
        )

    # --- runs

    def all_experiments(self) -> list[str]:
        """Returns the experiments of both lists."""
        return [experiment for suite in self.suites for experiment in self.experiments(suite)]

    def counts(self) -> list[int]:
        """Returns the numbers of CPUs."""
        experiments = set(self.all_experiments())
        ran = {setup.cpus for setup in self.collection.repeated if setup.experiment in experiments}
        return sorted(ran | {self.cpus})

# SPDX-License-Identifier: MIT
"""What study 2's page asks: its two lists of seven tests, beside ours."""

from __future__ import annotations

from types import SimpleNamespace
from typing import ClassVar

from schedlab.report.studies.timing import Suite, TimingQueries
from schedlab.report.study_tables import Measured
from schedlab.studies.experiment import without_cost
from schedlab.studies.figures import Figure

_UNCHANGED = ("cpu-heavy", "io-bound", "short", "starvation")


class Queries(TimingQueries):
    """A suite is a list, named by when it was made. Its tests are those of study 1's table 1: under
    priorities, too."""

    cpus = 2
    """The study does not say; its ticks of CPU-heavy are those of study 1 on two."""
    figures_on = (cpus,)
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
    lists: ClassVar = {"before": "before (section 3), ticks", "after": "after (section 5), ticks"}

    def printed(self, suite: str, test: str, count: int = cpus) -> Figure | None:
        """The printed figure, on the CPUs that it is taken to have; None on others."""
        place = self.suites[suite].place
        figure = self.figure(place, self.rows[test], "average", quantity="completion")
        return figure if count == self.cpus else None

    def first_runs_of_mixed(self) -> Figure | None:
        """Returns what the first runs of mixed load took under priorities, according to section 5.1."""
        return self.figure("section 5.1", self.rows["mixed"], "first runs")

    def completion_with_exec(self, slow: bool) -> Measured:
        """Returns the time of process creation before, in ticks, on the study's costs with or without its exec."""
        name = self.experiment("before", "creation", their_costs=True)
        name = name if slow else without_cost(name, "exec")
        return self.ticks(name, self.suites["before"].policy, "completion_ns", self.cpus)

    def is_constant(self, suite: str, test: str) -> bool:
        """Returns True if the time of this test is a sleeper's, under any scheduler."""
        return self._reports_sleepers(suite, test, False)

    # --- what comes out

    def fewer_ticks_after(self) -> int:
        """The number of tests that took fewer ticks after than before, as printed."""
        pairs = [[self.printed(suite, test) for suite in self.suites] for test in self.tests]
        return sum(bool(old and new and new.value < old.value) for old, new in pairs)

    def changes(self) -> list[SimpleNamespace]:
        """By how many percent priorities change each test that stayed the same, the least change
        first."""
        all_changes = []
        for test in _UNCHANGED:
            old, new = (self.told(suite, test, self.cpus).mean for suite in self.suites)
            if old and new:
                all_changes.append((round(100 * (new / old - 1)), self.rows[test]))
        return [
            SimpleNamespace(percent=f"{percent:+d}" if percent else "0", row=row)
            for percent, row in sorted(all_changes)
        ]

    def timed_twice(self, test: str) -> bool:
        """Was it measured under both?"""
        return all(
            measure(suite, test, self.cpus).mean
            for suite in self.suites
            for measure in (self.completion, self.processes)
        )

    # --- how it was measured

    def all_experiments(self) -> list[str]:
        """The experiments of both lists."""
        return [experiment for suite in self.suites for experiment in self.experiments(suite)]

    def counts(self) -> list[int]:
        """The numbers of CPUs."""
        experiments = set(self.all_experiments())
        ran = {setup.cpus for setup in self.collection.repeated if setup.experiment in experiments}
        return sorted(ran | {self.cpus})

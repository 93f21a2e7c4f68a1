# SPDX-License-Identifier: MIT
"""What study 2's page asks: its two lists of seven tests, beside ours."""

from __future__ import annotations

from types import SimpleNamespace
from typing import ClassVar

from schedlab.report.provenance import provenance
from schedlab.report.studies import queries
from schedlab.report.studies.timing_runs import (
    BASELINE,
    FIRST_PRIORITIES,
    ROUND_ROBIN,
    TimingRuns,
    study_tick_ms,
    tick_text,
)
from schedlab.report.studies.timing_tables import NEAR, is_off, near
from schedlab.report.study_tables import Comparison, Measured
from schedlab.report.wording import listed
from schedlab.runs.collection import Collection, Repeated
from schedlab.studies.experiments import TIMING_TESTS
from schedlab.studies.figures import Figure
from schedlab.studies.ideal import ideal_completion, ideal_told
from schedlab.studies.pack import Study

_TESTS_OF = 1
"""Study 2's tests are those of study 1's table 1: under priorities, too."""
_FORKING = ("switch", "creation", "short")
_UNCHANGED = ("cpu-heavy", "io-bound", "short", "starvation")
_CREATED = 50
"""Processes of Process creation (section 2)."""
_SUITES = {"before": BASELINE, "after": FIRST_PRIORITIES}


class Queries(queries.Queries):
    """A test is named as our program names it; a list, by when it was made."""

    cpus = 2
    """The study does not say; its ticks of CPU-heavy are those of study 1 on two."""
    tests = tuple(TIMING_TESTS)
    rows: ClassVar = {
        "cpu-heavy": "CPU-heavy",
        "switch": "Switch overhead",
        "io-bound": "I/O-bound",
        "mixed": "Mixed load",
        "creation": "Process creation",
        "short": "Short tasks",
        "starvation": "Starvation check",
    }
    """What the study calls its tests."""
    lists: ClassVar = {"before": "before (section 3), ticks", "after": "after (section 5), ticks"}
    near_percent = 100 * NEAR

    def __init__(self, study: Study, collection: Collection) -> None:
        super().__init__(study, collection)
        self._runs = TimingRuns(collection)

    def printed(self, when: str, test: str) -> Figure | None:
        """In ticks."""
        return self.figure(_SUITES[when].place, self.rows[test], "average", quantity="completion")

    def completion(self, when: str, test: str, count: int = cpus) -> Measured:
        """Ticks until all have ended."""
        return self._runs.measured(self._runs.completion, _SUITES[when], test, count)

    def processes(self, when: str, test: str, count: int = cpus) -> Measured:
        """How many there were."""
        return self._runs.measured(self._runs.processes, _SUITES[when], test, count)

    def told(self, when: str, test: str, count: int = cpus) -> Measured:
        """Ticks of what the study tells: of mixed load after the change, the least of a sleeper."""
        if _tells_sleepers(when, test):
            return self._runs.measured(self._runs.told, _SUITES[when], test, count)
        return self.completion(when, test, count)

    def ideal(self, when: str, test: str, count: int) -> float:
        """Of the same, in ticks."""
        least = ideal_told if _tells_sleepers(when, test) else ideal_completion
        return least(_TESTS_OF, TIMING_TESTS[test], count)

    def near(self, when: str, test: str, count: int) -> float | None:
        """How far from the ideal ours may be; None where that is not judged."""
        return near(self.ideal(when, test, count))

    def _compared(self, when: str, test: str, count: int = cpus) -> Comparison:
        theirs = self.printed(when, test) if count == self.cpus else None
        return Comparison(study=theirs, here=self.told(when, test, count))

    def reason(self, when: str, test: str, count: int) -> SimpleNamespace:
        """Of a time that is not near theirs: numbers, of which one says which kind it is."""
        why = SimpleNamespace(constant=False, does="", slept="", forks="", off=False)
        if _tells_sleepers(when, test):
            why.constant = True
            return why
        theirs, setup = self.printed(when, test), self._setup(when, test, count)
        ticks, processes = (
            each(when, test, count).mean for each in (self.completion, self.processes)
        )
        why.off = is_off(self._compared(when, test, count))
        if not why.off or not ticks or not processes or setup is None or theirs is None:
            return why
        slept = ideal_completion(_TESTS_OF, TIMING_TESTS[test], count) if test == "io-bound" else 0
        why.processes = f"{processes:.0f}"
        why.there_ms = f"{(theirs.value - slept) / processes * study_tick_ms():.1f}"
        why.here_us = f"{(ticks - slept) / processes * setup.setup.tick_ns / 1000:.0f}"
        created = self.printed("after", "creation")
        if test in _FORKING:
            starts = (when, test) == ("before", "creation")
            why.does = "start a program each" if starts else "do next to nothing"
        elif test == "io-bound":
            why.slept = f"{slept:.0f}"
        elif created:
            why.forks = f"{processes * created.value / _CREATED:.1f}"
        return why

    def _setup(self, when: str, test: str, count: int) -> Repeated | None:
        return self._runs.setup(_SUITES[when], test, count)

    # --- what comes out

    def fewer_ticks_after(self) -> int:
        """Of how many tests the study prints that."""
        pairs = [[self.printed(when, test) for when in self.lists] for test in self.tests]
        return sum(bool(old and new and new.value < old.value) for old, new in pairs)

    def _known(self) -> list[Comparison]:
        found = [self._compared(when, test) for when in self.lists for test in self.tests]
        return [each for each in found if each.here and each.here.mean is not None]

    def compared(self) -> int:
        """How many times were measured."""
        return len(self._known())

    def some_ended(self) -> bool:
        """Is there any?"""
        return bool(self._known())

    def near_theirs(self) -> int:
        """How many of them are near."""
        return sum(not is_off(each) for each in self._known())

    def changes(self) -> list[SimpleNamespace]:
        """Of each test that stayed the same: by how many percent priorities change it, least first."""
        found = []
        for test in _UNCHANGED:
            old, new = (self.told(when, test).mean for when in self.lists)
            if old and new:
                found.append((round(100 * (new / old - 1)), self.rows[test]))
        return [
            SimpleNamespace(percent=f"{percent:+d}" if percent else "0", row=row)
            for percent, row in sorted(found)
        ]

    def same_tests_ended(self) -> bool:
        """Can any be compared?"""
        return bool(self.changes())

    def timed_twice(self, test: str) -> bool:
        """Was it measured under both?"""
        return all(
            each(when, test).mean
            for when in self.lists
            for each in (self.completion, self.processes)
        )

    def sleepers_wait(self) -> Measured:
        """The longest time for which those that are to sleep wait under priorities, in ticks."""
        numbers = self._runs.of_group("mix-io", "waiting_max_ns")
        return self._runs.measured(numbers, FIRST_PRIORITIES, "mixed", self.cpus)

    def sleepers_waited(self) -> bool:
        """At all?"""
        return bool(self.sleepers_wait().mean)

    def study_1_is_there(self) -> bool:
        """Its table 1, to lead to."""
        return self._runs.there(ROUND_ROBIN)

    # --- how it was measured

    def counts(self) -> list[int]:
        """Of CPUs."""
        ran = {
            setup.cpus
            for setup in self.collection.repeated
            if setup.experiment.startswith(f"s{self.study.number}-") and setup.machine
        }
        return sorted(ran | {self.cpus})

    def _setups(self) -> list[Repeated]:
        return [
            setup
            for when in self.lists
            for test in self.tests
            for count in self.counts()
            if (setup := self._setup(when, test, count))
        ]

    def tick_there(self) -> str:
        """In ms."""
        return f"{study_tick_ms():.0f}"

    def ticks_here(self) -> str:
        """Of all runs."""
        return listed(
            [tick_text(each) for each in sorted({s.setup.tick_ns for s in self._setups()})]
        )

    def how_measured(self) -> str:
        """For the caption."""
        return provenance(self._setups()) if self._setups() else "Nothing of this was run."


def _tells_sleepers(when: str, test: str) -> bool:
    return (when, test) == ("after", "mixed")

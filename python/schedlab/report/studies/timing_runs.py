# SPDX-License-Identifier: MIT
"""Runs of `timingtests` and `prioritytest`, and the numbers that studies 1 and 2 have of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.report.study_tables import Measured, Numbers, measure, of_group, of_summary
from schedlab.studies import Figure, select
from schedlab.studies.experiments import TIMING_TESTS

if TYPE_CHECKING:
    import polars as pl

    from schedlab.runs.collection import Collection, Repeated


@dataclass(frozen=True)
class Suite:
    """Seven tests, as they were run for one table."""

    study: int
    name: str
    """`timing` or `priority`: part of the experiments' names."""
    place: str
    """Where the study has the figures."""
    policy: str
    """Of ours, which is like the one measured there."""
    settings: tuple[tuple[str, int], ...] = ()

    def experiment(self, test: str) -> str:
        """The label of its runs."""
        return f"s{self.study}-{self.name}-{test}"


ROUND_ROBIN = Suite(1, "timing", "table 1", "rr:table-scan")
PRIORITIES = Suite(1, "priority", "table 2", "priority:thesis")
IN_A_ROW = "s1-priority-suite"
"""The experiment that runs all tests of PRIORITIES one after another, as the study did."""
BASELINE = Suite(2, "timing", "section 3", "rr:table-scan")
FIRST_PRIORITIES = Suite(2, "priority", "section 5", "priority", (("aging_interval", 0),))


def study_tick_ms() -> float:
    """How long a tick of the studies' machine is, by their own account."""
    (tick,) = select(study=2, place="section 2", quantity="tick")
    return tick.value


def tick_text(nanoseconds: int) -> str:
    """`1 ms`."""
    return f"{nanoseconds / 1e6:g} ms"


@cache
def figure(
    suite: Suite,
    row: str,
    cpus: int | None,
    quantity: str = "completion",
    source: str = "study",
) -> Figure | None:
    """What a study printed for a test, or what its program told when it was run again."""
    found = [
        each
        for each in select(study=suite.study, place=suite.place, quantity=quantity)
        if (each.row, each.cpus, each.source, each.kind) == (row, cpus, source, "measurement")
    ]
    return found[0] if found else None


class TimingRuns:
    """Of a collection: the setups of the suites, and what was measured of them."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection

    def setup(
        self, suite: Suite, test: str, cpus: int, policy: str | None = None
    ) -> Repeated | None:
        """Under the study's policy, or another one as it is."""
        settings = suite.settings if policy is None else ()
        return self._setups.get((suite.experiment(test), policy or suite.policy, settings, cpus))

    @cached_property
    def _setups(self) -> dict[tuple[object, ...], Repeated]:
        return {
            (setup.experiment, setup.policy, setup.settings, setup.cpus): each
            for setup, each in self.collection.repeated.items()
        }

    def in_a_row(self, test: str, cpus: int, name: str = "ticks") -> Measured | None:
        """What is told of a test if all seven are run in a row; None: nobody did that."""
        if not self.collection.select(experiment=IN_A_ROW):
            return None
        number = 1 + list(TIMING_TESTS).index(test)
        setup = self.collection.one(IN_A_ROW, PRIORITIES.policy, cpus)
        return measure(setup, self.told_of_tests(number, name))

    def there(self, suite: Suite) -> bool:
        """Is there any run of it?"""
        start = suite.experiment("")
        return any(run.setup.experiment.startswith(start) for run in self.collection)

    def measured(
        self, numbers: Numbers, suite: Suite, test: str, cpus: int, policy: str | None = None
    ) -> Measured:
        """One of the numbers below, of one setup."""
        return measure(self.setup(suite, test, cpus, policy), numbers)

    @cached_property
    def told(self) -> Numbers:
        """Ticks, as the program tells them: whole ones, by the kernel's clock."""
        return self.told_of_tests(None)

    def told_of_tests(self, number: int | None, name: str = "ticks") -> Numbers:
        """`ticks`, or `complete`, when all had ended, of the test with this number in runs of all;
        None: of whatever was run."""
        import polars as pl

        rows = self.collection.values
        if rows.is_empty() or "name" not in rows.columns:
            return {}
        by_test = rows.with_columns(
            pl.when(pl.col("name") == "test")
            .then(pl.col("value"))
            .forward_fill()
            .over("run")
            .alias("test")
        ).filter(pl.col("name") == name)
        if number is not None:
            by_test = by_test.filter(pl.col("test") == number)
        return self._by_folder(by_test.group_by("run").agg(pl.col("value").mean()))

    @cached_property
    def completion(self) -> Numbers:
        """Ticks from the first fork of the workload to its last exit."""
        return self._in_ticks(of_summary(self.collection, "completion_ns"))

    @cached_property
    def picks(self) -> Numbers:
        """How often anybody was picked, even if it ran before: what the study's kernel counts."""
        import polars as pl

        return self._sums(pl.col("selections").is_not_null())

    @cached_property
    def parents_picks(self) -> Numbers:
        """How often the program that starts the processes was picked."""
        import polars as pl

        return self._sums(pl.col("role") == "root")

    @cached_property
    def migrations(self) -> Numbers:
        """How often a process changed its CPU."""
        return of_summary(self.collection, "migrations")

    @cached_property
    def switches(self) -> Numbers:
        """Switches from a process to another one; to and from idle are no part of it."""
        return of_summary(self.collection, "context_switches")

    @cached_property
    def running(self) -> Numbers:
        """Ticks for which processes of the workload ran, all together."""
        return self._in_ticks(of_summary(self.collection, "running_ns"))

    @cached_property
    def idle(self) -> Numbers:
        """Ticks for which CPUs had nothing to run, all together."""
        return self._in_ticks(of_summary(self.collection, "idle_ns"))

    def busiest(self, repeated: Repeated) -> Numbers:
        """Ticks for which that CPU ran processes that did so longest, of each run of a setup."""
        return self._in_ticks(
            {
                run.folder: float(run.metrics().cpus["running_ns"].max())  # type: ignore[arg-type]
                for run in repeated.runs
                if run.succeeded
            }
        )

    @cached_property
    def processes(self) -> Numbers:
        """How many there were."""
        return of_summary(self.collection, "processes")

    @cached_property
    def wakeups(self) -> Numbers:
        """Of processes of the workload."""
        return of_summary(self.collection, "wakeups")

    def of_group(self, group: str, column: str) -> Numbers:
        """A time of a group of processes, in ticks."""
        if (group, column) not in self._groups:
            found = self._in_ticks(of_group(self.collection, group, column))
            self._groups[group, column] = found
        return self._groups[group, column]

    @cached_property
    def _groups(self) -> dict[tuple[str, str], Numbers]:
        return {}

    def _in_ticks(self, nanoseconds: Numbers) -> Numbers:
        return {folder: value / self._ticks_ns[folder] for folder, value in nanoseconds.items()}

    @cached_property
    def _ticks_ns(self) -> Numbers:
        return {run.folder: run.setup.tick_ns for run in self.collection}

    def _sums(self, which: pl.Expr) -> Numbers:
        import polars as pl

        rows = self.collection.processes
        if rows.is_empty():
            return {}
        sums = rows.group_by("run").agg(pl.col("selections").filter(which).sum())
        return self._by_folder(sums)

    def _by_folder(self, rows: pl.DataFrame) -> dict[Path, float]:
        return {self.collection.runs[number].folder: float(value) for number, value in rows.rows()}

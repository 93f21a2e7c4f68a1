# SPDX-License-Identifier: MIT
"""Runs of `lotterytest`, and the shares that study 1's tables 3 to 8 are compared with."""

from __future__ import annotations

import math
from functools import cache, cached_property
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from schedlab.report.study_tables import Measured, Numbers, measure
from schedlab.studies import Figure, select
from schedlab.studies.ideal import LOTTERY_GROUPS, ideal_group_shares
from schedlab.studies.shares import BOUND, TESTS, LotteryTest

if TYPE_CHECKING:
    import polars as pl

    from schedlab.runs.collection import Collection, Repeated

THESIS = "lottery:thesis"
SHIPPED = "lottery"
_PERCENT = (0, 100)


def lottery_test(table: int) -> LotteryTest:
    """The test that a table of study 1 reports."""
    (test,) = (each for each in TESTS if each.table == table)
    return test


def competition(test: LotteryTest) -> str:
    """The experiment in which all processes compete from one moment on."""
    return f"s1-lottery-{test.name}"


def original(test: LotteryTest) -> str:
    """The experiment that does what the study's program does."""
    return f"s1-lottery-original-{test.name}"


def share_figure(
    test: LotteryTest, row: str, cpus: int | None, kind: str = "measurement", source: str = "study"
) -> Figure | None:
    """What the study printed, or expects (on any number of CPUs: None)."""
    return _shares_printed().get((f"table {test.table}", row, cpus, kind, source))


@cache
def _shares_printed() -> dict[tuple[str, str, int | None, str, str], Figure]:
    return {
        (each.place, each.row, each.cpus, each.kind, each.source): each
        for each in select(study=1, quantity="share")
    }


class LotteryRuns:
    """Of a collection: the setups of the lottery tests, and the shares of their groups."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection

    def setup(self, experiment: str, policy: str, cpus: int) -> Repeated | None:
        """One setup, as its policy or preset is."""
        return self._setups.get((experiment, policy, cpus))

    @cached_property
    def _setups(self) -> dict[tuple[str, str, int], Repeated]:
        return {
            (setup.experiment, setup.policy, setup.cpus): each
            for setup, each in self.collection.repeated.items()
            if not setup.settings
        }

    def there(self) -> bool:
        """Is there any run of the tests?"""
        return any(run.setup.experiment.startswith("s1-lottery-") for run in self.collection)

    def picked(self, test: LotteryTest, group: str, cpus: int) -> Measured:
        """Percent of the selections, of the study's own program under its own lottery."""
        return measure(
            self.setup(original(test), THESIS, cpus),
            self.of_group("percent_picked", group),
            _PERCENT,
        )

    def share(self, test: LotteryTest, group: str, policy: str, cpus: int) -> Measured:
        """Percent of the CPU time, while all compete."""
        return measure(
            self.setup(competition(test), policy, cpus),
            self.of_group("percent_run", group),
            _PERCENT,
        )

    def own_ideal(self, test: LotteryTest, group: str, policy: str, cpus: int) -> Measured:
        """Percent: the ideal by what the processes of these very runs asked for."""
        return measure(
            self.setup(competition(test), policy, cpus), self.of_group("percent_ideal", group)
        )

    def count(self, experiment: str, policy: str, group: str, column: str, cpus: int) -> Measured:
        """A column of a group: `finished`, `selections`."""
        return measure(self.setup(experiment, policy, cpus), self.of_group(column, group))

    def off_ideal(self, test: LotteryTest, policy: str, cpus: int) -> Measured:
        """Mean over the groups of how far a share is off the ideal, in points.

        The ideal is that by what the processes of the run asked for.
        """
        return measure(self.setup(competition(test), policy, cpus), self._off)

    def chance(self, repeated: Repeated | None, ideal: float) -> float | None:
        """Points that a fair lottery's mean share may be off by chance, `ideal` in percent.

        As in docs/policies.md: if each tick of each CPU were a draw.
        """
        if repeated is None or not repeated.runs:
            return None
        draws = [self._draws[run.folder] for run in repeated.runs if run.folder in self._draws]
        part = ideal / 100
        if len(draws) != len(repeated.runs):
            return None
        return 100 * BOUND * math.sqrt(part * (1 - part) / sum(draws))

    def by_chance(self, test: LotteryTest, policy: str, cpus: int) -> float | None:
        """What `off_ideal` would come to if each tick of each CPU were an independent draw.

        The mean of |x| of a normal x is √(2 ÷ π) standard deviations. None where not all compute.
        """
        setup = self.setup(competition(test), policy, cpus)
        draws = measure(setup, self._draws).mean
        if not draws or any(group.demand < 1 for group in LOTTERY_GROUPS[test.table]):
            return None
        parts = ideal_group_shares(test.table, cpus).values()
        errors = [math.sqrt(2 / math.pi * part * (1 - part) / draws) for part in parts]
        return 100 * fmean(errors)

    @cached_property
    def idle(self) -> Numbers:
        """Percent of the CPUs' time in the window in which they had nothing to run."""
        import polars as pl

        rows = self.collection.summary
        if "idle_ns" not in rows.columns:
            return {}
        part = 100 * pl.col("idle_ns") / (pl.col("cpus") * pl.col("elapsed_ns"))
        return self._by_folder(rows.select("run", part).drop_nulls())

    @cached_property
    def window_ticks(self) -> Numbers:
        """How many ticks were measured."""
        import polars as pl

        rows = self.collection.summary
        if "elapsed_ns" not in rows.columns:
            return {}
        return self._by_folder(
            rows.select("run", pl.col("elapsed_ns") / pl.col("tick_ns")).drop_nulls()
        )

    @cached_property
    def _draws(self) -> Numbers:
        cpus = {run.folder: run.setup.cpus for run in self.collection}
        return {folder: cpus[folder] * ticks for folder, ticks in self.window_ticks.items()}

    @cached_property
    def _groups(self) -> pl.DataFrame:
        import polars as pl

        rows = self.collection.groups
        if rows.is_empty():
            return rows
        return rows.filter(pl.col("experiment").str.starts_with("s1-lottery-")).with_columns(
            (100 * pl.col("selections") / pl.col("selections").sum().over("run")).alias(
                "percent_picked"
            ),
            (100 * pl.col("share")).alias("percent_run"),
            (100 * pl.col("ideal_share")).alias("percent_ideal"),
        )

    @cached_property
    def _columns(self) -> dict[tuple[str, str], Numbers]:
        return {}

    def of_group(self, column: str, group: str) -> Numbers:
        """A column of a group, or `percent_picked`, `percent_run`, `percent_ideal`."""
        import polars as pl

        if (column, group) not in self._columns:
            rows = self._groups
            there = not rows.is_empty() and column in rows.columns
            self._columns[column, group] = (
                self._by_folder(
                    rows.filter(pl.col("group") == group).select("run", column).drop_nulls()
                )
                if there
                else {}
            )
        return self._columns[column, group]

    @cached_property
    def _off(self) -> Numbers:
        import polars as pl

        rows = self._groups
        if rows.is_empty():
            return {}
        errors = rows.group_by("run").agg(pl.col("share_error_points").abs().mean())
        return self._by_folder(errors.drop_nulls())

    def _by_folder(self, rows: pl.DataFrame) -> dict[Path, float]:
        return {self.collection.runs[number].folder: float(value) for number, value in rows.rows()}

# SPDX-License-Identifier: MIT
"""Study 5's runs on Linux: what benchmarks printed, and what their traces hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from schedlab.comparison.statistics import Difference, difference
from schedlab.outputs import Figures, OutputError, figures
from schedlab.report.studies.texts import of_rows
from schedlab.report.study_tables import Measured, Numbers, measure
from schedlab.runs.collection import Collection, Kept, Repeated
from schedlab.studies.experiments import EXPERIMENTS, OTHERS
from schedlab.studies.linux_experiments import OWN

POLICIES = tuple(dict.fromkeys((*OWN, *OTHERS)))
"""In the order of all tables."""


@dataclass
class LinuxRuns:
    """Reads a collection's runs on Linux."""

    collection: Collection

    @property
    def present(self) -> bool:
        """Is there one?"""
        return any(self.setups(name) for name, each in EXPERIMENTS.items() if each.machine)

    def setups(self, experiment: str) -> list[Repeated]:
        """All of an experiment, whatever the policy."""
        return self.collection.select(experiment=experiment)

    def setup(self, experiment: str, policy: str) -> Repeated | None:
        """On the CPUs that the experiment has; None if it was not run."""
        found = [
            each
            for each in self.collection.select(experiment=experiment, policy=policy)
            if not each.setup.settings
        ]
        return found[0] if found else None

    def policies(self, experiments: Iterable[str]) -> list[str]:
        """Those that any of the experiments was run under; the study's own first."""
        names = list(experiments)
        return [p for p in POLICIES if any(self.setup(name, p) for name in names)]

    def printed(self, experiment: str, policy: str, figure: str, factor: float = 1) -> Measured:
        """A figure of schedlab.outputs."""
        return measure(self.setup(experiment, policy), self._printed(experiment, figure, factor))

    def _printed(self, experiment: str, figure: str, factor: float) -> Numbers:
        runs = (run for each in self.setups(experiment) for run in each.runs if run.succeeded)
        told = {run.folder: self._figures(run) for run in runs}
        return {place: all_[figure] * factor for place, all_ in told.items() if figure in all_}

    def _figures(self, run: Kept) -> Figures:
        """Nothing, if it did not print what it should."""
        if run.folder not in self._read:
            try:
                self._read[run.folder] = figures(str(run.manifest["workload"]), run.console())
            except (OutputError, OSError):
                self._read[run.folder] = {}
        return self._read[run.folder]

    @cached_property
    def _read(self) -> dict[object, Figures]:
        return {}

    def summary(self, experiment: str, policy: str, value: pl.Expr) -> Measured:
        """Of the row of the trace's summary."""
        return self._of(experiment, policy, self.collection.summary, value)

    def group(self, experiment: str, policy: str, group: str, value: pl.Expr) -> Measured:
        """Of the row of a group of processes."""
        rows = self.collection.groups
        own = rows.filter(pl.col("group") == group) if len(rows) else rows
        return self._of(experiment, policy, own, value)

    def told(self, experiment: str, policy: str, name: str, value: pl.Expr) -> Measured:
        """Of what our programs told under a name; the column is `value`."""
        rows = self.collection.values
        own = rows.filter(pl.col("name") == name) if len(rows) else rows
        return self._of(experiment, policy, own, value)

    def _of(self, experiment: str, policy: str, rows: pl.DataFrame, value: pl.Expr) -> Measured:
        own = rows.filter(pl.col("experiment") == experiment) if len(rows) else rows
        return measure(self.setup(experiment, policy), of_rows(self.collection, own, value))


def apart(one: Measured, other: Measured) -> Difference | None:
    """What `other` has more; None where either is missing. Runs are boots of their own: nothing is
    the same in those of one seed but the seed."""
    if one.mean is None or other.mean is None:
        return None
    return difference(one.values, other.values, paired=False)

# SPDX-License-Identifier: MIT
"""What study 5 asks of its runs on Linux: what benchmarks printed, and under which policies."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from schedlab.analysis.comparison.statistics import Difference, difference
from schedlab.base.outputs import Figures
from schedlab.machines import LINUX_MACHINES
from schedlab.report.studies import queries
from schedlab.report.study_tables import Measured, measure
from schedlab.runs.collection import Kept
from schedlab.runs.results import printed
from schedlab.studies.experiments import EXPERIMENTS, OTHERS
from schedlab.studies.linux_experiments import OWN

POLICIES = tuple(dict.fromkeys((*OWN, *OTHERS)))
"""The policies in the order of all tables."""


class LinuxQueries(queries.Queries):
    """A benchmark's figures are named as schedlab.base.outputs names them."""

    def on_linux(self) -> bool:
        """Is there any run?"""
        return any(
            self.ran(name) for name, each in EXPERIMENTS.items() if each.machine in LINUX_MACHINES
        )

    def linux_policies(self, experiments: Iterable[str] | str) -> list[str]:
        """The policies under which any of the experiments was run; the study's own first."""
        names = [experiments] if isinstance(experiments, str) else list(experiments)
        return [p for p in POLICIES if any(self.ran(name, p) for name in names)]

    def told_by(self, experiment: str, policy: str, figure: str) -> Measured:
        """What a benchmark printed."""
        setup = self.setup(experiment, policy)
        runs = [run for run in (setup.runs if setup else ()) if run.succeeded]
        told = {run.folder: self._printed_by(run) for run in runs}
        return measure(setup, {at: all_[figure] for at, all_ in told.items() if figure in all_})

    def _printed_by(self, run: Kept) -> Figures:
        """Nothing, if it did not print what it should."""
        if run.folder not in self._read:
            self._read[run.folder] = printed(run.folder, str(run.manifest["workload"]))
        return self._read[run.folder]

    @cached_property
    def _read(self) -> dict[object, Figures]:
        return {}


def apart(one: Measured, other: Measured) -> Difference | None:
    """What `other` has more; None where either is missing. Runs are boots of their own: nothing is
    the same in those of one seed but the seed."""
    if one.mean is None or other.mean is None:
        return None
    return difference(one.values, other.values, paired=False)

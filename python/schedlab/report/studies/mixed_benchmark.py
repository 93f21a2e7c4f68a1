# SPDX-License-Identifier: MIT
"""What study 4's page asks of its mixed benchmark: each size by itself, all in one boot, and the largest
begun at several moments."""

from __future__ import annotations

from types import SimpleNamespace
from typing import ClassVar

import polars as pl

from schedlab.report.studies import queries
from schedlab.report.studies.queries import first, in_ticks
from schedlab.report.study_tables import Measured
from schedlab.studies.experiment import on_their_costs
from schedlab.studies.experiments import MIXED_SIZES
from schedlab.studies.figures import Figure, Source

ROUNDS, PHASES = "s4-rounds", "s4-phases"


class MixedBenchmark(queries.Queries):
    """Times are in ticks."""

    kinds: ClassVar = {"interactive": "inter", "CPU-bound": "cpu"}
    """The processes of the mixed benchmark, and their groups in our runs."""
    sizes = MIXED_SIZES
    rounds_experiment = ROUNDS

    def turnaround(self, kind: str, scheduler: str, size: int) -> Measured:
        """Mean of the processes of one kind, in ticks."""
        value, rows = in_ticks(first("turnaround_mean_ns")), self._group(self.kinds[kind])
        return self.of(f"s4-mixed-{size}", scheduler, value, rows)

    def in_rounds(
        self, kind: str, scheduler: str, size: int, their_costs: bool = False
    ) -> Measured:
        """The same where all rounds are run in one boot, in whole ticks, as the programs tell it."""
        rows = self._told_since("round")
        if len(rows):
            own = (pl.col("round") == size) & (pl.col("name") == "finished")
            rows = rows.filter(own & (pl.col("group") == self.kinds[kind]))
        experiment = on_their_costs(ROUNDS) if their_costs else ROUNDS
        return self.of(experiment, scheduler, pl.col("value").mean(), rows)

    def here(self, kind: str, scheduler: str, size: int) -> Measured:
        """What is held against theirs: of all rounds in one boot, or of each by itself if they were
        not run so."""
        if self.ran(ROUNDS, scheduler):
            return self.in_rounds(kind, scheduler, size)
        return self.turnaround(kind, scheduler, size)

    def feedback_is_quicker(self, size: int) -> bool:
        """True if interactive processes end earlier under the feedback queue than under round-robin."""
        one, other = (self.here("interactive", each, size).mean for each in ("MLFQ", "RR"))
        return one is not None and other is not None and one < other

    def benchmark_runs(self) -> list[str]:
        """The experiments that `here` is of."""
        if self.ran(ROUNDS):
            return [ROUNDS]
        return [f"s4-mixed-{size}" for size in self.sizes]

    def at_any_moment(self, their_costs: bool = False) -> Measured:
        """The interactive processes beside the most others under MLFQ, begun at several moments."""
        value, rows = in_ticks(first("turnaround_mean_ns")), self._group(self.kinds["interactive"])
        experiment = on_their_costs(PHASES) if their_costs else PHASES
        return self.of(experiment, "MLFQ", value, rows)

    def moments(self, their_costs: bool = False) -> SimpleNamespace:
        """The least and the greatest of these times, and how many there are."""
        found = self.at_any_moment(their_costs).values
        return SimpleNamespace(least=min(found), most=max(found), count=len(found))

    def began_at_moments(self, their_costs: bool = False) -> bool:
        """Are these times known?"""
        return bool(self.at_any_moment(their_costs).values)

    def within_moments(self, their_costs: bool = False) -> bool:
        """Does the authors' time lie among them?"""
        theirs = self.authors("interactive", "MLFQ", max(self.sizes))
        found = self.moments(their_costs)
        return bool(theirs and found.least <= theirs.value <= found.most)

    def authors(
        self, kind: str, scheduler: str, size: int, source: Source = "authors"
    ) -> Figure | None:
        """What the authors' output, or the rerun, has for it."""
        return self.figure("section 4.2", f"{size} CPU-bound", f"{scheduler} {kind}", source)

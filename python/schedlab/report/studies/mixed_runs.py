# SPDX-License-Identifier: MIT
"""The runs of study 4's mixed benchmark, and the figures of it."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from schedlab.report.studies.texts import of_rows
from schedlab.report.study_tables import Measured, measure
from schedlab.runs.collection import Collection
from schedlab.studies import select
from schedlab.studies.experiments import MIXED_SIZES
from schedlab.studies.figures import Figure, Source

CPUS = 1
SCHEDULERS = {"RR": "rr:table-scan", "MLFQ": "mlfq:allotment-boost"}
"""As the authors' output calls them, and the presets that are like them."""
KINDS = {"interactive": "inter", "CPU-bound": "cpu"}
"""The processes, and their groups in our runs."""


def experiment(size: int) -> str:
    """With so many CPU-bound processes."""
    return f"s4-mixed-{size}"


@dataclass(frozen=True)
class Benchmark:
    """Reads a collection's runs of the benchmark."""

    collection: Collection

    def mean(self, size: int, policy: str, kind: str) -> Measured:
        """Mean turnaround of the processes of one kind, in ticks."""
        rows = self.collection.groups
        if len(rows):
            rows = rows.filter(pl.col("group") == KINDS[kind])
        value = pl.col("turnaround_mean_ns").first() / pl.col("tick_ns").first()
        setup = self.collection.one(experiment(size), policy, CPUS)
        return measure(setup, of_rows(self.collection, rows, value))

    def sizes(self, policy: str) -> list[int]:
        """Which were run, without a failure."""
        return [
            size
            for size in MIXED_SIZES
            if (setup := self.collection.one(experiment(size), policy, CPUS)) and setup.succeeded
        ]

    def by_seed(self, policy: str, kind: str) -> dict[int, tuple[float, ...]]:
        """By size: a value for each of the seeds that all sizes have."""
        found = {size: self.mean(size, policy, kind).values for size in self.sizes(policy)}
        seeds = min((len(values) for values in found.values()), default=0)
        return {size: values[:seeds] for size, values in found.items()} if seeds else {}


def published(size: int, scheduler: str, kind: str, source: Source) -> Figure | None:
    """What the authors, or the rerun, have for it."""
    found = [
        each
        for each in select(study=4, place="section 4.2", source=source)
        if each.row == f"{size} CPU-bound" and each.column == f"{scheduler} {kind}"
    ]
    return found[0] if found else None

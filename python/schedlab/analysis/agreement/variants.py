# SPDX-License-Identifier: MIT
"""Measures how sensitive the simulator's results are to its costs.

If two processes reach the same queue within microseconds of each other, their order decides the
rest of the run. The kernel's schedule is then only one of several plausible ones, and a simulator
without exact costs may produce another one.

To separate these cells from simulator errors, each experiment is simulated again. Each cost is
changed randomly by up to `SPREAD`, and the begin by up to `SHIFT_NS`. If the range of these
variants includes the kernel's value, microseconds decide.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from schedlab.analysis.agreement.cells import Cell, Key
from schedlab.analysis.agreement.plan import Case, Windows, simulated_run
from schedlab.base.files.atomic import written
from schedlab.machines.spec import RunSpec
from schedlab.workload import costs as profiles

COUNT = 16
SPREAD = 0.1
"""Largest relative change of each cost."""
SHIFT_NS = 20_000
FILE = "variants.csv"
_COLUMNS = ["experiment", "policy", "cpus", "what", "least", "most"]


@dataclass(frozen=True)
class Range:
    """The range of a value over all variants."""

    least: float
    most: float

    def spans(self, cell: Cell) -> bool:
        """True if the kernel's value is within the range, extended by the allowed difference."""
        return self.least - cell.allowed <= cell.kernel_mean <= self.most + cell.allowed


Ranges = Mapping[Key, Range]


def varied_costs(number: int) -> profiles.Costs:
    """Returns the costs of a variant; they are the same in all configurations."""
    generator = random.Random(number)
    changes = [
        f"{name}={round(cost.ns * (1 + SPREAD * generator.uniform(-1, 1)))}"
        for name, cost in profiles.read(profiles.SHIPPED).costs.items()
    ]
    text = ",".join(["kernel", *changes])
    return profiles.Costs(f"kernel, variant {number}", text)


def shift(number: int) -> int:
    """Returns the shift of the begin, in nanoseconds."""
    return round(SHIFT_NS * random.Random(-number).uniform(-1, 1))


def varied_runs(cases: Iterable[Case], windows: Windows, number: int) -> tuple[RunSpec, ...]:
    varied = varied_costs(number)
    runs = []
    for case in cases:
        window = windows.get(case.setup)
        moved = window and replace(window, begin_ns=window.begin_ns + shift(number))
        runs.append(simulated_run(case, moved, varied))
    return tuple(runs)


def ranges(variants: Sequence[Iterable[Cell]]) -> dict[Key, Range]:
    """Returns the range of each cell over all variants. Each variant contributes its mean over seeds."""
    figures: dict[Key, list[float]] = {}
    for cells in variants:
        for cell in cells:
            if not cell.failure:
                figures.setdefault(cell.key, []).append(cell.simulator_mean)
    return {key: Range(min(values), max(values)) for key, values in figures.items()}


def write(folder: Path, ranges: Ranges) -> None:
    """Writes the ranges to the folder of the runs; reports read them from there."""
    with written(folder / FILE) as new, new.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(_COLUMNS)
        for key, cell_range in ranges.items():
            rows.writerow(
                [key.experiment, key.policy, key.cpus, key.what, cell_range.least, cell_range.most]
            )


def read(folder: Path) -> dict[Key, Range]:
    """Returns the ranges that `write` stored; empty if there is no file."""
    path = folder / FILE
    if not path.is_file():
        return {}
    with path.open(newline="") as file:
        return {
            Key(row["experiment"], row["policy"], int(row["cpus"]), row["what"]): Range(
                float(row["least"]), float(row["most"])
            )
            for row in csv.DictReader(file)
        }

# SPDX-License-Identifier: MIT
"""How far figures of the simulator go apart if its costs are a little other than they are.

Where two processes come to the same queue within microseconds of each other, their order decides
the rest of a run: then no simulator whose costs are not exact to the microsecond gives the kernel's
schedule, and its figures are those of one schedule out of several. To tell such cells from those
where the simulator is wrong, their experiments are simulated again, with each cost changed by up to
`SPREAD` and the begin moved by up to `SHIFT_NS`, both at random. If the figures of these variants
span the kernel's, microseconds decide.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from schedlab.analysis.agreement.cells import Cell, Key
from schedlab.analysis.agreement.plan import Case, Windows, simulated_run
from schedlab.base.files.whole import written
from schedlab.machines.spec import RunSpec
from schedlab.workload import costs as profiles

COUNT = 16
SPREAD = 0.1
"""A part of each cost."""
SHIFT_NS = 20_000
FILE = "variants.csv"
_COLUMNS = ["experiment", "policy", "cpus", "what", "least", "most"]


@dataclass(frozen=True)
class Range:
    """A figure's range over all variants."""

    least: float
    most: float

    def spans(self, cell: Cell) -> bool:
        """Could the kernel's figure be one of them, as near as a figure must be?"""
        return self.least - cell.allowed <= cell.kernel_mean <= self.most + cell.allowed


Ranges = Mapping[Key, Range]


def varied_costs(number: int) -> profiles.Costs:
    """Each variant has the same costs in all setups."""
    generator = random.Random(number)
    changes = [
        f"{name}={round(cost.ns * (1 + SPREAD * generator.uniform(-1, 1)))}"
        for name, cost in profiles.read(profiles.SHIPPED).costs.items()
    ]
    text = ",".join(["kernel", *changes])
    return profiles.Costs(f"kernel, variant {number}", text)


def shift(number: int) -> int:
    """The shift of the begin, in nanoseconds."""
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
    """Ranges of the cells over all variants. The mean over seeds is one figure of a variant."""
    figures: dict[Key, list[float]] = {}
    for cells in variants:
        for cell in cells:
            if not cell.failure:
                figures.setdefault(cell.key, []).append(cell.simulator_mean)
    return {key: Range(min(values), max(values)) for key, values in figures.items()}


def write(folder: Path, ranges: Ranges) -> None:
    """Writes the ranges beside the runs: a report of them reads the file."""
    with written(folder / FILE) as new, new.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(_COLUMNS)
        for key, cell_range in ranges.items():
            rows.writerow(
                [key.experiment, key.policy, key.cpus, key.what, cell_range.least, cell_range.most]
            )


def read(folder: Path) -> dict[Key, Range]:
    """What was written there; empty, if nothing was."""
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

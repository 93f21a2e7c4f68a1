# SPDX-License-Identifier: MIT
"""Measures how sensitive the simulator's results are to its costs.

If two processes reach the same queue within microseconds of each other, their order decides the
rest of the run. The kernel's schedule is then only one of several plausible ones, and a simulator
without exact costs may produce another one.

To separate these cells from simulator errors, each experiment is simulated again. Each cost is
changed randomly by up to `COST_SPREAD`, and the begin by up to `BEGIN_SHIFT_MAX_NS`. If the range of these
variants includes the kernel's value, microseconds decide.
"""

import csv
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from schedlab.analysis.agreement.cells import Cell, CellKey
from schedlab.analysis.agreement.plan import ComparedRun, Windows, simulated_run_spec
from schedlab.base.files.atomic import atomic_write
from schedlab.machines.spec import RunSpec
from schedlab.workload import costs as profiles

VARIANT_COUNT = 16
COST_SPREAD = 0.1
"""Largest relative change of each cost."""
BEGIN_SHIFT_MAX_NS = 20_000
VARIANTS_FILE = "variants.csv"
_COLUMNS = ["experiment", "policy", "cpus", "what", "least", "most"]


@dataclass(frozen=True)
class ValueRange:
    """The range of a value over all variants."""

    least: float
    most: float

    def includes_kernel(self, cell: Cell) -> bool:
        """True if the kernel's value is within the range, extended by the allowed difference."""
        return self.least - cell.near_limit <= cell.kernel_mean <= self.most + cell.near_limit


RangesByCell = Mapping[CellKey, ValueRange]


def varied_costs(number: int) -> profiles.Costs:
    """Returns the costs of a variant; they are the same in all configurations."""
    generator = random.Random(number)
    changes = [
        f"{name}={round(cost.ns * (1 + COST_SPREAD * generator.uniform(-1, 1)))}"
        for name, cost in profiles.read_profile(profiles.SHIPPED_PROFILE).costs.items()
    ]
    cost_settings = ",".join(["kernel", *changes])
    return profiles.Costs(f"kernel, variant {number}", cost_settings)


def begin_shift_ns(number: int) -> int:
    """Returns the shift of the begin, in nanoseconds."""
    return round(BEGIN_SHIFT_MAX_NS * random.Random(-number).uniform(-1, 1))


def varied_runs(cases: Iterable[ComparedRun], windows: Windows, number: int) -> tuple[RunSpec, ...]:
    """Returns the simulator's runs of one variant."""
    costs = varied_costs(number)
    runs = []
    for case in cases:
        window = windows.get(case.configuration)
        shifted_window = window and replace(
            window, begin_ns=window.begin_ns + begin_shift_ns(number)
        )
        runs.append(simulated_run_spec(case, shifted_window, costs))
    return tuple(runs)


def value_ranges(variants: Sequence[Iterable[Cell]]) -> dict[CellKey, ValueRange]:
    """Returns the range of each cell over all variants. Each variant contributes its mean over seeds."""
    figures: dict[CellKey, list[float]] = {}
    for cells in variants:
        for cell in cells:
            if not cell.failure:
                figures.setdefault(cell.key, []).append(cell.simulator_mean)
    return {key: ValueRange(min(values), max(values)) for key, values in figures.items()}


def write_ranges(folder: Path, ranges: RangesByCell) -> None:
    """Writes the ranges to the folder of the runs; reports read them from there."""
    with atomic_write(folder / VARIANTS_FILE) as new, new.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(_COLUMNS)
        for key, cell_range in ranges.items():
            writer.writerow(
                [key.experiment, key.policy, key.cpus, key.what, cell_range.least, cell_range.most]
            )


def read_ranges(folder: Path) -> dict[CellKey, ValueRange]:
    """Returns the ranges that `write_ranges` stored; empty if there is no file."""
    path = folder / VARIANTS_FILE
    if not path.is_file():
        return {}
    with path.open(newline="") as file:
        return {
            CellKey(row["experiment"], row["policy"], int(row["cpus"]), row["what"]): ValueRange(
                float(row["least"]), float(row["most"])
            )
            for row in csv.DictReader(file)
        }

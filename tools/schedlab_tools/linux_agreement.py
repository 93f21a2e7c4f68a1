# SPDX-License-Identifier: MIT
"""Compares workloads under Linux's fair class with `eevdf` in the simulator and on the schedlab kernel.

`bench/linux-agreement` has the workloads and the data: one row per run. The rule of `judge` gives a
verdict on each cell: one metric of one workload, number of CPUs and machine.
"""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Literal

from schedlab.analysis.comparison.statistics import difference
from schedlab.base.files.atomic import atomic_write, lock_folder
from schedlab.paths import ROOT

FOLDER = ROOT / "bench" / "linux-agreement"
WORKLOADS, VARIANTS, RUNS = (FOLDER / f"{name}.csv" for name in ("workloads", "variants", "runs"))
GUEST, SIMULATOR, KERNEL = "linux", "sim", "spike"
POLICIES = {GUEST: "fair", SIMULATOR: "eevdf", KERNEL: "eevdf"}
NEARNESS = 0.1
"""Largest relative difference of a cell that is `near`."""
SEEDS_LEAST = 3
"""Fewer seeds have no interval: Student's t would include almost everything."""
WAKEUPS_LEAST = 100
"""Fewer wake-ups have no 99th percentile."""


@dataclass(frozen=True)
class Metric:
    """A metric of a run: its column in the data."""

    title: str
    unit: str
    floor: float
    """Differences up to this value are near: what the guest's own work amounts to, in the metric's unit."""
    cpus: tuple[int, ...] = (1,)
    """The metric is compared on these numbers of CPUs. The guest's CPUs share one clock, so latencies
    and times are compared on one CPU only."""


ALL_CPUS = (1, 2, 4)
HALVES = ("tuning", "held out")
SHARES, ORDER = "share_error_points", "order_errors"
METRICS = {
    SHARES: Metric("largest share error", "points", 1, ALL_CPUS),
    ORDER: Metric("pairs of groups in another order", "", 0, ALL_CPUS),
    "wakeup_latency_median_ns": Metric("wake-up latency, median", "ns", 50_000),
    "wakeup_latency_p99_ns": Metric("wake-up latency, 99th percentile", "ns", 50_000),
    "slice_median_ns": Metric("time slice, median", "ns", 50_000),
    "turnaround_mean_ns": Metric("turnaround, mean", "ns", 50_000),
    "preemptions": Metric("preemptions", "", 5, ALL_CPUS),
    "migrations": Metric("migrations", "", 5, (2, 4)),
}
MEASURED = tuple(name for name in METRICS if name not in (SHARES, ORDER))
KEY = ("workload", "machine", "variant", "cpus", "seed")
COLUMNS = (*KEY, "half", "policy", "versions", "date", *MEASURED, "shares")
Verdict = Literal["near", "within the interval", "off"]
Row = Mapping[str, str]


@dataclass(frozen=True)
class Workload:
    """A workload of the suite. Its half was fixed before any tuning."""

    workload: str
    kind: str
    half: str
    file: str
    changes: str

    @property
    def path(self) -> Path:
        """Returns the workload file."""
        return ROOT / "workloads" / "files" / self.file

    @property
    def changed_values(self) -> dict[str, str]:
        """Returns the changes of the file's values."""
        return dict(change.split("=", 1) for change in self.changes.split())


@dataclass(frozen=True)
class Variant:
    """An experiment in the simulator: costs and settings that differ from the defaults, and what they model."""

    variant: str = ""
    half: str = "all"
    """The half of the workloads that it may use: tuning, or all."""
    cause: str = ""
    costs: str = ""
    settings: str = ""

    @property
    def costs_text(self) -> str:
        """Returns the value of --costs."""
        return str(FOLDER / self.costs) if self.costs else "kernel"

    @property
    def tunables(self) -> dict[str, int]:
        """Returns the settings of tunables."""
        pairs = (setting.split("=") for setting in self.settings.split())
        return {name: int(value) for name, value in pairs}

    def covers(self, workload: Workload) -> bool:
        """True if the experiment may use the workload."""
        return self.half in ("all", workload.half)


DEFAULTS = Variant()


def read_variants(path: Path = VARIANTS) -> list[Variant]:
    """Returns the experiments."""
    with path.open(newline="") as file:
        return [Variant(**row) for row in csv.DictReader(file)]


def read_workloads(path: Path = WORKLOADS) -> list[Workload]:
    """Returns the workloads of the suite."""
    with path.open(newline="") as file:
        return [Workload(**row) for row in csv.DictReader(file)]


def read_data(path: Path = RUNS) -> list[Row]:
    """Returns the rows of the data; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def add_row(row: Row, path: Path = RUNS) -> None:
    """Adds a run to the data, or replaces it. Several processes may do so at the same time."""
    with lock_folder(ROOT / "build" / "linux-agreement"):
        rows = {_row_key(row): row for row in (*read_data(path), row)}
        with atomic_write(path) as new, new.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows[place] for place in sorted(rows))


def _row_key(row: Row) -> tuple[str, str, str, int, int]:
    return row["workload"], row["machine"], row["variant"], int(row["cpus"]), int(row["seed"])


# --- cells and their verdicts


@dataclass(frozen=True)
class Cell:
    """A metric of a workload on Linux and on another machine: one value per seed of both."""

    workload: Workload
    cpus: int
    machine: str
    metric: str
    guest: tuple[float, ...]
    other: tuple[float, ...]

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """Returns the 95 % interval of the difference by Student's t; None for fewer seeds than `SEEDS_LEAST`."""
        if len(self.guest) < SEEDS_LEAST:
            return None
        compared = difference(self.guest, self.other, paired=True)
        return compared.low, compared.high

    @property
    def change(self) -> float:
        """Returns the other machine's mean minus Linux's mean."""
        return fmean(self.other) - fmean(self.guest)

    @property
    def relative(self) -> float | None:
        """Returns the difference as a part of Linux's mean; None for shares, orders, and a mean of 0."""
        if self.metric in (SHARES, ORDER) or not fmean(self.guest):
            return None
        return self.change / fmean(self.guest)

    @property
    def excess(self) -> float:
        """Returns the difference as a multiple of the allowed difference; at most 1 is near."""
        allowed = max(METRICS[self.metric].floor, NEARNESS * abs(fmean(self.guest)))
        return abs(self.change) / allowed if allowed else 2 * abs(self.change)


def judge(cell: Cell) -> Verdict:
    """Returns the verdict on a cell.

    `near`: the means differ by at most 10 % of Linux's mean or by the metric's floor. Otherwise `within
    the interval` if the 95 % interval of the difference over seeds includes 0, else `off`.
    """
    if cell.excess <= 1:
        return "near"
    if cell.interval and cell.interval[0] <= 0 <= cell.interval[1]:
        return "within the interval"
    return "off"


def cells(
    rows: Iterable[Row], workloads: Iterable[Workload], machine: str, variant: str = ""
) -> list[Cell]:
    """Returns the cells of a machine, in the order of the workloads."""
    runs: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        if row["variant"] == (variant if row["machine"] == machine else ""):
            place = row["workload"], row["machine"], int(row["cpus"])
            runs.setdefault(place, []).append(row)
    result = []
    for workload in workloads:
        for cpus in ALL_CPUS:
            guest, other = _with_common_seeds(
                *(runs.get((workload.workload, name, cpus), []) for name in (GUEST, machine))
            )
            for metric, about in METRICS.items():
                if cpus in about.cpus and guest and other:
                    values = _values(metric, guest, other)
                    if all(values):
                        result.append(Cell(workload, cpus, machine, metric, *values))
    return result


def _with_common_seeds(guest: list[Row], other: list[Row]) -> tuple[list[Row], list[Row]]:
    """Returns the rows of seeds that both machines have, in the order of the seeds.

    A seed's random numbers are the same on both, so the differences are paired.
    """
    first, second = ({int(row["seed"]): row for row in rows} for rows in (guest, other))
    seeds = sorted(first.keys() & second.keys())
    return [first[seed] for seed in seeds], [second[seed] for seed in seeds]


def _values(
    metric: str, guest: Sequence[Row], other: Sequence[Row]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Returns the values of seeds that have one on both machines. Linux has no errors of shares and orders."""
    pairs = list(zip(guest, other, strict=True))
    if metric in (SHARES, ORDER):
        measure = share_error if metric == SHARES else order_errors
        errors = [measure(read_shares(first), read_shares(second)) for first, second in pairs]
        return ((0.0,) * len(errors), tuple(errors)) if len(read_shares(guest[0])) > 1 else ((), ())
    both = [(float(a[metric]), float(b[metric])) for a, b in pairs if a[metric] and b[metric]]
    return tuple(a for a, _ in both), tuple(b for _, b in both)


def read_shares(row: Row) -> dict[str, float]:
    """Returns the shares of a row, in percent, by group."""
    return {name: float(share) for name, share in re.findall(r"(\S.*?)=([\d.]+)", row["shares"])}


def share_error(expected: Mapping[str, float], shares: Mapping[str, float]) -> float:
    """Returns the largest difference of a group's share, in percentage points."""
    return max(abs(shares.get(group, 0) - share) for group, share in expected.items())


def order_errors(expected: Mapping[str, float], shares: Mapping[str, float]) -> float:
    """Returns how many pairs of groups are in another order by share. Pairs within a point are tied."""
    groups = list(expected)
    pairs = ((a, b) for number, a in enumerate(groups) for b in groups[:number])
    return float(
        sum(
            abs(expected[a] - expected[b]) > 1
            and (expected[a] - expected[b]) * (shares.get(a, 0) - shares.get(b, 0)) < 0
            for a, b in pairs
        )
    )

# SPDX-License-Identifier: MIT
"""Compares the results of both machines and decides whether they agree.

A cell is one metric of one configuration: the completion time of all processes, or a group's mean
turnaround. If the window ends before the processes do, it is the group's share of the CPUs.

A cell is `near` if the means over seeds differ by at most `NEAR_FRACTION` of the kernel's mean, or by
one tick. Otherwise it is `off`, unless the difference is not significant. The cell then reports how
large a difference the seeds could have hidden.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import polars as pl

from schedlab.analysis.comparison.statistics import (
    CONFIDENCE,
    correct_p_values,
    difference,
    p_value_beyond_margin,
)
from schedlab.runs.collection import Collection, ConfigurationRuns

NEAR_FRACTION = 0.02
"""Largest relative difference that counts as near. A difference of one tick is near, too."""
KERNEL, SIMULATOR = "spike", "sim"

Verdict = Literal["near", "not significant", "off", "failed"]
COMPLETION = "completion"
TURNAROUND = "turnaround of "
SHARE = "share of "


@dataclass(frozen=True)
class CellKey:
    """Identifies a cell: configuration and metric."""

    experiment: str
    policy: str
    cpus: int
    what: str
    """The metric: COMPLETION, or TURNAROUND or SHARE and a group."""

    def __str__(self) -> str:
        """Returns the cell in words: experiment, policy, CPUs and metric."""
        return f"{self.experiment}, {self.policy}, {self.cpus} CPUs, {self.what}"


@dataclass(frozen=True)
class Cell:
    """A metric on both machines. Times are in nanoseconds, shares are fractions of 1."""

    key: CellKey
    kernel: tuple[float, ...]
    """One value per seed; empty if a run failed or has no such metric."""
    simulator: tuple[float, ...]
    is_paired: bool
    """True if both sides ran the same seeds, so that a seed's effect cancels in the difference."""
    tick_effect: float
    """The effect of one tick on the value. For a share: one tick of one CPU, divided by the CPU time of all groups."""
    failure: str = ""
    p_value: float = 1.0
    """Probability of so large a difference if the true means are near (Holm-corrected over all
    cells). 0 if each machine ran only once.
    """

    @property
    def is_share(self) -> bool:
        """Returns whether the metric is a share of the CPUs; otherwise it is a time in ns."""
        return self.key.what.startswith(SHARE)

    @property
    def kernel_mean(self) -> float:
        """Returns the kernel's mean over seeds."""
        return sum(self.kernel) / len(self.kernel)

    @property
    def simulator_mean(self) -> float:
        """Returns the simulator's mean over seeds."""
        return sum(self.simulator) / len(self.simulator)

    @property
    def change(self) -> float:
        """Simulator mean minus kernel mean."""
        return self.simulator_mean - self.kernel_mean

    @property
    def relative(self) -> float:
        """The change divided by the kernel's mean; infinite if that mean is 0."""
        if self.kernel_mean:
            return self.change / self.kernel_mean
        return 0.0 if not self.change else float("inf")

    @property
    def ticks(self) -> float:
        """Returns the change in multiples of the effect of one tick."""
        return self.change / self.tick_effect

    @property
    def near_limit(self) -> float:
        """The largest change that counts as near."""
        return max(NEAR_FRACTION * self.kernel_mean, self.tick_effect)

    @property
    def half_width(self) -> float | None:
        """Half the width of the change's 95 % interval; None if either machine ran only once."""
        if min(len(self.kernel), len(self.simulator)) < 2:
            return None
        change = difference(self.kernel, self.simulator, self.is_paired)
        return (change.high - change.low) / 2

    @property
    def verdict(self) -> Verdict:
        """Returns whether the machines agree in this cell."""
        if self.failure:
            return "failed"
        if abs(self.change) <= self.near_limit:
            return "near"
        return "off" if self.p_value < 1 - CONFIDENCE else "not significant"

    def to_dict(self) -> dict[str, Any]:
        """Returns the cell for JSON, CSV and Parquet."""
        has_values = not self.failure
        return {
            "experiment": self.key.experiment,
            "policy": self.key.policy,
            "cpus": self.key.cpus,
            "what": self.key.what,
            "kernel": self.kernel_mean if has_values else None,
            "kernel_seeds": len(self.kernel),
            "simulator": self.simulator_mean if has_values else None,
            "simulator_seeds": len(self.simulator),
            "change": self.change if has_values else None,
            "relative": self.relative if has_values else None,
            "ticks": self.ticks if has_values else None,
            "half_width": self.half_width if has_values else None,
            "verdict": self.verdict,
            "failure": self.failure,
        }


def compute_cells(collection: Collection) -> list[Cell]:
    """Returns the cells of all configurations that both machines ran, in the order of the kernel's runs."""
    simulated = {
        _machine_independent_key(setup): setup
        for setup in _configurations_on(collection, SIMULATOR)
    }
    cells: list[Cell] = []
    frames = _ConfigurationRows(collection)
    for kernel in _configurations_on(collection, KERNEL):
        simulator = simulated.get(_machine_independent_key(kernel))
        if simulator is not None:
            cells += _configuration_cells(frames, kernel, simulator)
    return add_p_values(cells)


def _configurations_on(collection: Collection, machine: str) -> Iterator[ConfigurationRuns]:
    return (setup for setup in collection.repeated.values() if setup.setup.machine == machine)


def _machine_independent_key(repeated: ConfigurationRuns) -> tuple[str, str, int, int]:
    """Returns what a configuration has in common on both machines. Changes of workload files exist
    only on the simulator.
    """
    setup = repeated.setup
    return setup.experiment, setup.policy_title, setup.cpus, setup.tick_ns


class _ConfigurationRows:
    """Indexes the rows of each configuration once, because there are thousands of configurations."""

    def __init__(self, collection: Collection) -> None:
        self.summary = _rows_by_configuration(collection.summary)
        self.groups = _rows_by_configuration(collection.groups)
        self._no_groups = collection.groups.clear()

    def rows(self, setup: ConfigurationRuns) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Returns the rows of `summary` and of `groups`."""
        key = (*_machine_independent_key(setup), setup.setup.machine)
        summary = self.summary[key]
        return summary, self.groups.get(key, self._no_groups)


_CONFIGURATION_COLUMNS = ("experiment", "policy", "cpus", "tick_ns", "machine")


def _rows_by_configuration(frame: pl.DataFrame) -> dict[tuple[Any, ...], pl.DataFrame]:
    if frame.is_empty():
        return {}
    parts = frame.partition_by(*_CONFIGURATION_COLUMNS, as_dict=True, maintain_order=True)
    return {tuple(key): part for key, part in parts.items()}


def _configuration_cells(
    frames: _ConfigurationRows, kernel: ConfigurationRuns, simulator: ConfigurationRuns
) -> Iterable[Cell]:
    """Returns the cells of a configuration that both machines ran."""
    setup = kernel.setup
    failed = [*kernel.failed, *simulator.failed]
    if failed:
        run = failed[0]
        key = CellKey(setup.experiment, setup.policy_title, setup.cpus, COMPLETION)
        failure = f"seed {run.seed} on {run.setup.machine}: {run.status}"
        return [Cell(key, (), (), False, setup.tick_ns, failure=failure)]
    paired = [run.seed for run in kernel.runs] == [run.seed for run in simulator.runs]
    kernel_rows, simulator_rows = frames.rows(kernel), frames.rows(simulator)
    names = sorted({*kernel_rows[1]["group"], *simulator_rows[1]["group"]})
    ticks = {SHARE: setup.tick_ns / max(_total_cpu_time(*kernel_rows), 1)}
    return [
        _make_cell(
            CellKey(setup.experiment, setup.policy_title, setup.cpus, title + name),
            _values_by_seed(*kernel_rows, title, name),
            _values_by_seed(*simulator_rows, title, name),
            paired,
            ticks.get(title, float(setup.tick_ns)),
        )
        for title, name in _compared_metrics(kernel_rows[0], simulator_rows[0], names)
    ]


def _compared_metrics(
    kernel_rows: pl.DataFrame, simulator_rows: pl.DataFrame, names: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yields the metrics to compare, with their groups: shares if any process was still running
    when the window ended.
    """
    all_completed = not (
        kernel_rows["completion_ns"].null_count() or simulator_rows["completion_ns"].null_count()
    )
    if all_completed:
        yield COMPLETION, ""
    yield from ((TURNAROUND if all_completed else SHARE, name) for name in names)


def _values_by_seed(
    summary: pl.DataFrame, groups: pl.DataFrame, title: str, name: str
) -> Sequence[float]:
    """Returns one value per seed; empty if any seed has none."""
    if title == COMPLETION:
        return [float(value) for value in summary["completion_ns"]]
    group_rows = groups.filter(group=name)
    if title == SHARE:
        # A group that did not run has no row, or no share.
        shares = dict(zip(group_rows["run"], group_rows["share"], strict=True))
        return [float(shares.get(run) or 0.0) for run in summary["run"]]
    values = group_rows["turnaround_mean_ns"]
    return values.to_list() if len(group_rows) == len(summary) and not values.null_count() else []


def _make_cell(
    key: CellKey, kernel: Sequence[float], simulator: Sequence[float], paired: bool, tick: float
) -> Cell:
    """Returns a cell without its p-value."""
    for values, machine in ((kernel, KERNEL), (simulator, SIMULATOR)):
        if not values:
            return Cell(key, (), (), paired, tick, failure=f"{machine} has no such figure")
    return Cell(key, tuple(kernel), tuple(simulator), paired, tick)


def _total_cpu_time(summary: pl.DataFrame, groups: pl.DataFrame) -> float:
    """Returns the CPU time of all groups together, as a mean over seeds."""
    return float(groups["running_ns"].sum()) / len(summary)


def add_p_values(cells: Sequence[Cell]) -> list[Cell]:
    """Returns the cells with their p-values, Holm-corrected over all cells. The p-value of a near cell is 1."""
    p_values = [1.0 if cell.failure or _is_near(cell) else _p_value(cell) for cell in cells]
    return [
        replace(cell, p_value=p_value)
        for cell, p_value in zip(cells, correct_p_values(p_values), strict=True)
    ]


def _is_near(cell: Cell) -> bool:
    """Returns whether the cell's change is within the allowed difference."""
    return abs(cell.change) <= cell.near_limit


def _p_value(cell: Cell) -> float:
    """Returns the p-value of a cell; 0 if either machine ran only once."""
    if min(len(cell.kernel), len(cell.simulator)) < 2:
        return 0.0
    return p_value_beyond_margin(cell.kernel, cell.simulator, cell.near_limit, cell.is_paired)

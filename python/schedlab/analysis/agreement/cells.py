# SPDX-License-Identifier: MIT
"""What came out on both machines, side by side, and whether it agrees.

A cell is one figure of one setup: how long until all have ended, a group's mean turnaround, or,
where the window ends before the processes do, a group's share of the CPUs. It is near if the means
over seeds differ by `NEARNESS` of the kernel's or by one tick. Otherwise it is off, unless
chance may explain it: where seeds make runs differ, a difference of means that is not more than
they allow cannot be told from none, and the cell says how much it could have hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import polars as pl

from schedlab.analysis.comparison.statistics import CONFIDENCE, difference, holm, probability_beyond
from schedlab.runs.collection import Collection, Repeated

NEARNESS = 0.02
"""The part of the kernel's figure that a difference may be. A tick is near, too."""
KERNEL, SIMULATOR = "spike", "sim"

Verdict = Literal["near", "not told apart", "off", "failed"]
COMPLETION = "completion"
TURNAROUND = "turnaround of "
SHARE = "share of "


@dataclass(frozen=True)
class Key:
    """What identifies a cell: the setup, and the figure."""

    experiment: str
    policy: str
    cpus: int
    what: str

    def __str__(self) -> str:
        return f"{self.experiment}, {self.policy}, {self.cpus} CPUs, {self.what}"


@dataclass(frozen=True)
class Cell:
    """A figure on both machines. Times in nanoseconds, shares in parts of 1."""

    key: Key
    kernel: tuple[float, ...]
    """A value for each seed; empty if a run failed, or if there is no such figure."""
    simulator: tuple[float, ...]
    paired: bool
    """The same seeds on both sides: what a seed does to both falls out of the difference."""
    tick: float
    """What one tick is of it: in a share, a tick of one CPU among all that ran."""
    failure: str = ""
    chance: float = 1.0
    """The probability that means are so far beyond what counts as near, if in truth they are near
    (corrected for the number of cells). 0: chance has no part in it, as each machine ran once."""

    @property
    def is_share(self) -> bool:
        return self.key.what.startswith(SHARE)

    @property
    def kernel_mean(self) -> float:
        return sum(self.kernel) / len(self.kernel)

    @property
    def simulator_mean(self) -> float:
        return sum(self.simulator) / len(self.simulator)

    @property
    def change(self) -> float:
        """Simulator − kernel."""
        return self.simulator_mean - self.kernel_mean

    @property
    def relative(self) -> float:
        """The same, of the kernel's; infinite if that is 0."""
        if self.kernel_mean:
            return self.change / self.kernel_mean
        return 0.0 if not self.change else float("inf")

    @property
    def ticks(self) -> float:
        return self.change / self.tick

    @property
    def allowed(self) -> float:
        """A change that is near."""
        return max(NEARNESS * self.kernel_mean, self.tick)

    @property
    def half_width(self) -> float | None:
        """Half the width of the change's interval of 95 %; None: a machine ran once, so there is
        none."""
        if min(len(self.kernel), len(self.simulator)) < 2:
            return None
        gap = difference(self.kernel, self.simulator, self.paired)
        return (gap.high - gap.low) / 2

    @property
    def verdict(self) -> Verdict:
        if self.failure:
            return "failed"
        if abs(self.change) <= self.allowed:
            return "near"
        return "off" if self.chance < 1 - CONFIDENCE else "not told apart"

    def to_dict(self) -> dict[str, Any]:
        """The cell for JSON, CSV and Parquet."""
        known = not self.failure
        return {
            "experiment": self.key.experiment,
            "policy": self.key.policy,
            "cpus": self.key.cpus,
            "what": self.key.what,
            "kernel": self.kernel_mean if known else None,
            "kernel_seeds": len(self.kernel),
            "simulator": self.simulator_mean if known else None,
            "simulator_seeds": len(self.simulator),
            "change": self.change if known else None,
            "relative": self.relative if known else None,
            "ticks": self.ticks if known else None,
            "half_width": self.half_width if known else None,
            "verdict": self.verdict,
            "failure": self.failure,
        }


def cells(collection: Collection) -> list[Cell]:
    """The cells of all setups that both machines ran, in the order of the kernel's runs."""
    simulated = {_same(setup): setup for setup in _of(collection, SIMULATOR)}
    cell_list: list[Cell] = []
    frames = _Frames(collection)
    for kernel in _of(collection, KERNEL):
        simulator = simulated.get(_same(kernel))
        if simulator is not None:
            cell_list += _cells_of(frames, kernel, simulator)
    return with_chances(cell_list)


def _of(collection: Collection, machine: str) -> Iterator[Repeated]:
    return (setup for setup in collection.repeated.values() if setup.setup.machine == machine)


def _same(repeated: Repeated) -> tuple[str, str, int, int]:
    """What both machines have in common. What was set in a workload file is the simulator's."""
    setup = repeated.setup
    return setup.experiment, setup.policy_title, setup.cpus, setup.tick_ns


class _Frames:
    """The rows of each setup, found once: there are thousands."""

    def __init__(self, collection: Collection) -> None:
        self.summary = _by_setup(collection.summary)
        self.groups = _by_setup(collection.groups)
        self._nobody = collection.groups.clear()

    def rows(self, setup: Repeated) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Summary and groups."""
        key = (*_same(setup), setup.setup.machine)
        summary = self.summary[key]
        return summary, self.groups.get(key, self._nobody)


_SETUP = ("experiment", "policy", "cpus", "tick_ns", "machine")


def _by_setup(frame: pl.DataFrame) -> dict[tuple[Any, ...], pl.DataFrame]:
    if frame.is_empty():
        return {}
    parts = frame.partition_by(*_SETUP, as_dict=True, maintain_order=True)
    return {tuple(key): part for key, part in parts.items()}


def _cells_of(frames: _Frames, kernel: Repeated, simulator: Repeated) -> Iterable[Cell]:
    setup = kernel.setup
    failed = [*kernel.failed, *simulator.failed]
    if failed:
        run = failed[0]
        key = Key(setup.experiment, setup.policy_title, setup.cpus, COMPLETION)
        why = f"seed {run.seed} on {run.setup.machine}: {run.status}"
        return [Cell(key, (), (), False, setup.tick_ns, failure=why)]
    paired = [run.seed for run in kernel.runs] == [run.seed for run in simulator.runs]
    kernel_rows, simulator_rows = frames.rows(kernel), frames.rows(simulator)
    names = sorted({*kernel_rows[1]["group"], *simulator_rows[1]["group"]})
    ticks = {SHARE: setup.tick_ns / max(_ran(*kernel_rows), 1)}
    return [
        _cell(
            Key(setup.experiment, setup.policy_title, setup.cpus, title + name),
            _figures(*kernel_rows, title, name),
            _figures(*simulator_rows, title, name),
            paired,
            ticks.get(title, float(setup.tick_ns)),
        )
        for title, name in _titles(kernel_rows[0], simulator_rows[0], names)
    ]


def _titles(
    kernel_rows: pl.DataFrame, simulator_rows: pl.DataFrame, names: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """What is told of which group: shares, if some process went on when the window ended."""
    all_completed = not (
        kernel_rows["completion_ns"].null_count() or simulator_rows["completion_ns"].null_count()
    )
    if all_completed:
        yield COMPLETION, ""
    yield from ((TURNAROUND if all_completed else SHARE, name) for name in names)


def _figures(summary: pl.DataFrame, groups: pl.DataFrame, title: str, name: str) -> Sequence[float]:
    """A value for each seed; empty if one has none."""
    if title == COMPLETION:
        return [float(value) for value in summary["completion_ns"]]
    group_rows = groups.filter(group=name)
    if title == SHARE:
        # Of a group that did not run there is no row, or no share.
        shares = dict(zip(group_rows["run"], group_rows["share"], strict=True))
        return [float(shares.get(run) or 0.0) for run in summary["run"]]
    values = group_rows["turnaround_mean_ns"]
    return values.to_list() if len(group_rows) == len(summary) and not values.null_count() else []


def _cell(
    key: Key, kernel: Sequence[float], simulator: Sequence[float], paired: bool, tick: float
) -> Cell:
    for values, machine in ((kernel, KERNEL), (simulator, SIMULATOR)):
        if not values:
            return Cell(key, (), (), paired, tick, failure=f"{machine} has no such figure")
    return Cell(key, tuple(kernel), tuple(simulator), paired, tick)


def _ran(summary: pl.DataFrame, groups: pl.DataFrame) -> float:
    """CPU time that all groups had together, the mean over seeds."""
    return float(groups["running_ns"].sum()) / len(summary)


def with_chances(cells: Sequence[Cell]) -> list[Cell]:
    """Says of all cells that are not near whether chance may explain it, with Holm's correction for
    all cells."""
    chances = [1.0 if cell.failure or _is_near(cell) else _chance(cell) for cell in cells]
    return [replace(cell, chance=chance) for cell, chance in zip(cells, holm(chances), strict=True)]


def _is_near(cell: Cell) -> bool:
    return abs(cell.change) <= cell.allowed


def _chance(cell: Cell) -> float:
    """0 where a machine ran once: what it shows is all there is."""
    if min(len(cell.kernel), len(cell.simulator)) < 2:
        return 0.0
    return probability_beyond(cell.kernel, cell.simulator, cell.allowed, cell.paired)

# SPDX-License-Identifier: MIT
"""Reads a study's costs: operations that took longer on its machine (costs.yaml in the study's folder).

A few constants are calibrated with a few of the study's cells; the other cells show what they
explain.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from schedlab.errors import FileRefused
from schedlab.paths import STUDIES_FOLDER
from schedlab.studies.study import read_yaml
from schedlab.workload.delays import DELAYED_OPERATIONS, Delay

COSTS_FILE = "costs.yaml"
"""The name of the optional file in each study's folder."""
_STEP_NS = 1000
"""Delays are multiples of this."""


@dataclass(frozen=True)
class CalibratedFigure:
    """A figure of the study that determined a constant, and therefore agrees by definition."""

    place: str
    row: str
    """`all`: the whole column."""
    column: str
    gives: str


@dataclass(frozen=True)
class SlowerOperation:
    """A slower operation of the study's kernels with these policies."""

    operation: str
    policies: tuple[str, ...]
    """Built-in policies that correspond to the kernels' schedulers."""
    ticks: Mapping[int, float]
    """Additional duration in ticks, by number of CPUs; interpolated linearly in between."""

    def ticks_on(self, cpus: int) -> float:
        """Returns the additional ticks on this many CPUs. Outside the range of the file, the nearest value applies."""
        cpu_counts = sorted(self.ticks)
        below = max((count for count in cpu_counts if count <= cpus), default=cpu_counts[0])
        above = min((count for count in cpu_counts if count >= cpus), default=cpu_counts[-1])
        if below == above:
            return self.ticks[below]
        fraction = (cpus - below) / (above - below)
        return self.ticks[below] + fraction * (self.ticks[above] - self.ticks[below])


@dataclass(frozen=True)
class StudyCosts:
    """The content of a study's file."""

    calibrated: tuple[CalibratedFigure, ...] = ()
    delays: tuple[SlowerOperation, ...] = ()
    habits: Mapping[str, str] = field(default_factory=dict)
    """Boot arguments that make the schedlab kernel behave like the study's, with their meanings."""

    def delays_of(
        self, policy: str, cpus: int, tick_ns: int, without: str = ""
    ) -> tuple[Delay, ...]:
        """Returns the delays of a run under this policy in nanoseconds, except that of one operation."""
        return tuple(
            (delay.operation, _STEP_NS * round(delay.ticks_on(cpus) * tick_ns / _STEP_NS))
            for delay in self.delays
            if policy in delay.policies and delay.operation != without
        )

    def boot_arguments(self, without: str = "") -> str:
        """Returns the habits as the kernel reads them, except one: `recheck`."""
        return " ".join(habit for habit in self.habits if habit.partition("=")[0] != without)

    def is_calibrated(self, place: str, row: str, column: str) -> bool:
        """True if this figure determined a constant."""
        return any(
            (place, column) == (calibrated_figure.place, calibrated_figure.column)
            and calibrated_figure.row in (row, "all")
            for calibrated_figure in self.calibrated
        )


@cache
def costs_of(study: int, folder: Path = STUDIES_FOLDER) -> StudyCosts:
    """Returns the costs of a study; empty without a file. Raises FileRefused."""
    path = folder / str(study) / COSTS_FILE
    if not path.exists():
        return StudyCosts()
    try:
        content = read_yaml(path)
        calibrated = tuple(CalibratedFigure(**entry) for entry in content.get("calibrated", ()))
        delays = tuple(_parse_slower_operation(entry) for entry in content["delays"])
        return StudyCosts(calibrated, delays, dict(content.get("habits", {})))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FileRefused(
            f"{path}: expected `calibrated`, a list of place, row, column and gives, "
            f"and `delays`, a list of operation, policies and ticks: {error}"
        ) from None


def _parse_slower_operation(entry: Mapping[str, Any]) -> SlowerOperation:
    if entry["operation"] not in DELAYED_OPERATIONS:
        raise ValueError(f"{entry['operation']}: expected one of {', '.join(DELAYED_OPERATIONS)}")
    policies: Sequence[str] = entry["policies"]
    ticks = {int(cpus): float(longer) for cpus, longer in entry["ticks"].items()}
    if not ticks or min(ticks.values()) < 0:
        raise ValueError("ticks: expected a number of at least 0 for one number of CPUs or more")
    return SlowerOperation(entry["operation"], tuple(policies), ticks)

# SPDX-License-Identifier: MIT
"""Lists the known reasons for differences between simulator and kernel (known.csv).

A row names one cell, or a class of cells if it contains `*`. A cell with its own row must be off:
if the cell is near, the row is outdated. Members of a class may be near, because any kernel change
of a microsecond shifts them. If other costs explain a cell (schedlab.analysis.agreement.variants),
that verdict replaces the reason of its class.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Literal

from schedlab.analysis.agreement.cells import Cell, CellKey, Verdict
from schedlab.analysis.agreement.variants import RangesByCell, ValueRange
from schedlab.base.files.reading import read_text
from schedlab.errors import FileRefused

KNOWN_FILE = Path(__file__).with_name("known.csv")
_COLUMNS = ["experiment", "policy", "cpus", "what", "reason"]

Judgement = Verdict | Literal["known", "microseconds", "unexpectedly near"]


@dataclass(frozen=True)
class KnownReason:
    """Why a cell differs between simulator and kernel."""

    name: str
    """The reason's name in known.csv."""
    text: str
    """Markdown of one or a few sentences, with the evidence in the traces."""


_KNOWN_REASONS = (
    KnownReason(
        "journal",
        "The kernel's journal puts all waiting operations into one transaction, and the last one"
        " to end writes it for all. The workload file has a lock instead, which one process after"
        " the other takes. So the two interactive processes wait for each other at other times."
        " If a policy lets them wait long for their time slices, they also end at other times.",
    ),
    KnownReason(
        "turns by time",
        "Some policies measure time slices in nanoseconds, or choose the next task by its run"
        " time. If two tasks differ only by the microseconds that ticks cost, or by half a"
        " microsecond, a step of Spike's clock, these decide which task is next. The machines"
        " drift apart by half a microsecond per tick.",
    ),
    KnownReason(
        "not explained",
        "The cause is unknown. An I/O-bound process, which runs for 11 µs at a time, has up to 10"
        " % more CPU time in the simulator. The processes of a lottery test start within 10 µs of"
        " each other: in the kernel, awake processes wake the others; in the simulator, their"
        " parent wakes all. If a policy migrates few tasks, the first switch of the window"
        " already differs.",
    ),
    KnownReason(
        "rest of a tick",
        "The mixed processes sleep until the next tick after each burst: a burst that ends a"
        " little later adds nearly a tick of sleep. In the kernel, a burst has several steps with"
        " a call after each; in the workload file it is one step, longer by the mean cost of"
        " these calls.",
    ),
)
REASONS_BY_NAME: Mapping[str, KnownReason] = {
    difference.name: difference for difference in _KNOWN_REASONS
}
ANY_VALUE = "*"


@dataclass(frozen=True)
class KnownDifference:
    """A row of known.csv; each field may be a pattern."""

    experiment: str
    policy: str
    cpus: str
    what: str
    reason: KnownReason

    @property
    def is_class(self) -> bool:
        """Returns whether the row is a pattern for several cells."""
        return any(
            ANY_VALUE in word for word in (self.experiment, self.policy, self.cpus, self.what)
        )

    def matches(self, key: CellKey) -> bool:
        """Returns whether the row applies to the cell."""
        return (
            fnmatchcase(key.experiment, self.experiment)
            and fnmatchcase(key.policy, self.policy)
            and fnmatchcase(str(key.cpus), self.cpus)
            and fnmatchcase(key.what, self.what)
        )


@dataclass(frozen=True)
class JudgedCell:
    """A cell with its known reason and its range over cost variants."""

    cell: Cell
    known: KnownDifference | None = None
    """The row of known.csv that matches the cell."""
    range: ValueRange | None = None
    """The simulator's range under slightly different costs (schedlab.analysis.agreement.variants)."""

    @property
    def reason(self) -> KnownReason | None:
        """The reason for a difference. The reason of a class applies only to cells that are off."""
        if self.known and (not self.known.is_class or self.judgement == "known"):
            return self.known.reason
        return None

    @property
    def judgement(self) -> Judgement:
        """Returns the verdict, refined by what is known.

        `microseconds`: off, but the range over cost variants includes the kernel's value. `known`:
        off, with a known reason. `unexpectedly near`: a reason is listed, but the cell is near.
        """
        verdict = self.cell.verdict
        has_reason = self.known is not None and not self.known.is_class
        if verdict == "near" and has_reason:
            return "unexpectedly near"
        if verdict != "off" or has_reason:
            return "known" if verdict == "off" else verdict
        if self.range and self.range.includes_kernel(self.cell):
            return "microseconds"
        return "known" if self.known else "off"

    @property
    def is_wrong(self) -> bool:
        """True if the cell is off without a known reason, has failed, or its listed reason is outdated."""
        return self.judgement in ("off", "failed", "unexpectedly near")


@cache
def known_differences() -> tuple[KnownDifference, ...]:
    """Returns the differences listed in FILE."""
    return read_known_differences(KNOWN_FILE)


def read_known_differences(path: Path) -> tuple[KnownDifference, ...]:
    """Returns the rows, single cells before classes. Raises FileRefused for a malformed file."""
    rows = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    differences = []
    try:
        if next(rows, None) != _COLUMNS:
            raise FileRefused(f"{path}: wrong columns; begin with the line {','.join(_COLUMNS)}")
        for row in rows:
            if len(row) != len(_COLUMNS) or row[-1] not in REASONS_BY_NAME:
                raise FileRefused(f"{path}:{rows.line_num}: expected {len(_COLUMNS)} columns; end the"
                                  f" row with one of the reasons {', '.join(REASONS_BY_NAME)}")  # fmt: skip
            experiment, policy, cpus, what, name = row
            differences.append(
                KnownDifference(experiment, policy, cpus, what, REASONS_BY_NAME[name])
            )
    except csv.Error as error:
        raise FileRefused(f"{path}:{rows.line_num}: {error}") from None
    return tuple(sorted(differences, key=lambda difference: difference.is_class))


def find_known_difference(key: CellKey) -> KnownDifference | None:
    """Returns the first row that matches, or None if none does."""
    return next((row for row in known_differences() if row.matches(key)), None)


def judge_cells(cells: Iterable[Cell], ranges: RangesByCell | None = None) -> list[JudgedCell]:
    """Returns the cells with their reasons: failed cells first, then the largest differences."""
    cell_ranges = ranges or {}
    judged_cells = [
        JudgedCell(cell, find_known_difference(cell.key), cell_ranges.get(cell.key))
        for cell in cells
    ]
    return sorted(judged_cells, key=_relative_size, reverse=True)


def _relative_size(judged_cell: JudgedCell) -> float:
    """Returns the difference in multiples of the largest near difference."""
    return (
        float("inf")
        if judged_cell.cell.failure
        else abs(judged_cell.cell.change) / judged_cell.cell.near_limit
    )


def wrong_cells(cells: Sequence[JudgedCell]) -> list[JudgedCell]:
    """Returns the cells that need attention: see `JudgedCell.is_wrong`."""
    return [cell for cell in cells if cell.is_wrong]

# SPDX-License-Identifier: MIT
"""Why simulator and kernel differ where they do: known.csv.

A row names a cell; or, with `*` in it, a class of cells, of which some are off. A cell that has a
row of its own must be off: if it is near after all, the row has outlived its reason. Of a class,
other cells are off with each change of the kernel that takes a microsecond; what other costs
explain (schedlab.analysis.agreement.variants) is told before it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Literal

from schedlab.analysis.agreement.cells import Cell, Key, Verdict
from schedlab.analysis.agreement.variants import Range, Ranges
from schedlab.base.files.reading import read_text
from schedlab.errors import FileRefused

FILE = Path(__file__).with_name("known.csv")
_COLUMNS = ["experiment", "policy", "cpus", "what", "reason"]

Judgement = Verdict | Literal["known", "microseconds", "near after all"]


@dataclass(frozen=True)
class Reason:
    """Why cells differ."""

    name: str
    """The name that known.csv has for it."""
    text: str
    """Markdown, a sentence or a few; what shows it in the traces."""


_ALL = (
    Reason(
        "journal",
        "The kernel's journal lets all that stand in line into one transaction, and the last of them"
        " to end writes it for all. The file has a lock, which one process gets after the other. So"
        " the two interactive processes wait for each other at other times; where a policy lets them"
        " wait long for their turn, they end at other times, too.",
    ),
    Reason(
        "turns by time",
        "Under some policies a turn is a time, or the next task is found by the time that each has"
        " run: where two are equal but for the microseconds that ticks cost, or for a step of Spike's"
        " clock, half a microsecond, which is next depends on these. The machines drift apart by half a"
        " microsecond a tick.",
    ),
    Reason(
        "not explained",
        "No run has shown why. An I/O-bound process, which runs for 11 µs at a time, has up to a tenth"
        " more in the simulator. The processes of a lottery test begin within 10 µs of each other, on"
        " the kernel woken by those that are awake, in the simulator all by their parent; where a"
        " policy moves few, the first switch of the window already differs.",
    ),
    Reason(
        "what is left of a tick",
        "The mixed ones sleep until the tick after each burst: one that ends a little later sleeps"
        " nearly a tick more. Their bursts are steps on the kernel, with a call after each; the file"
        " has one that is longer by the mean of these calls.",
    ),
)
REASONS: Mapping[str, Reason] = {difference.name: difference for difference in _ALL}
ANY = "*"


@dataclass(frozen=True)
class Known:
    """A row of known.csv; each of its words may be a pattern."""

    experiment: str
    policy: str
    cpus: str
    what: str
    reason: Reason

    @property
    def is_class(self) -> bool:
        return any(ANY in word for word in (self.experiment, self.policy, self.cpus, self.what))

    def matches(self, key: Key) -> bool:
        return (
            fnmatchcase(key.experiment, self.experiment)
            and fnmatchcase(key.policy, self.policy)
            and fnmatchcase(str(key.cpus), self.cpus)
            and fnmatchcase(key.what, self.what)
        )


@dataclass(frozen=True)
class Judged:
    """A cell, and what is known of it."""

    cell: Cell
    known: Known | None = None
    range: Range | None = None
    """The range of the simulator's figure if its costs were a little different
    (schedlab.analysis.agreement.variants)."""

    @property
    def reason(self) -> Reason | None:
        """The reason for a cell. A class of cells has one only for those that are off."""
        if self.known and (not self.known.is_class or self.judgement == "known"):
            return self.known.reason
        return None

    @property
    def judgement(self) -> Judgement:
        """`microseconds`: off, but other costs within what is known of them span the kernel's figure.
        `known`: off, and the reason is given. `near after all`: a reason is given for what does not
        differ any more."""
        verdict = self.cell.verdict
        has_reason = self.known is not None and not self.known.is_class
        if verdict == "near" and has_reason:
            return "near after all"
        if verdict != "off" or has_reason:
            return "known" if verdict == "off" else verdict
        if self.range and self.range.spans(self.cell):
            return "microseconds"
        return "known" if self.known else "off"

    @property
    def is_wrong(self) -> bool:
        """No reason is known; or what is said is no longer so."""
        return self.judgement in ("off", "failed", "near after all")


@cache
def known() -> tuple[Known, ...]:
    """The differences that FILE lists."""
    return read(FILE)


def read(path: Path) -> tuple[Known, ...]:
    """Rows of single cells come first. Raises FileRefused if the file is not as it must be."""
    lines = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    differences = []
    try:
        if next(lines, None) != _COLUMNS:
            raise FileRefused(f"{path}: its columns must be {', '.join(_COLUMNS)}")
        for row in lines:
            if len(row) != len(_COLUMNS) or row[-1] not in REASONS:
                raise FileRefused(f"{path}:{lines.line_num}: expected {len(_COLUMNS)} words, the last of"
                                  f" them a reason: {', '.join(REASONS)}")  # fmt: skip
            experiment, policy, cpus, what, name = row
            differences.append(Known(experiment, policy, cpus, what, REASONS[name]))
    except csv.Error as error:
        raise FileRefused(f"{path}:{lines.line_num}: {error}") from None
    return tuple(sorted(differences, key=lambda difference: difference.is_class))


def row_of(key: Key) -> Known | None:
    """Returns the first row that matches, or None if none does."""
    return next((row for row in known() if row.matches(key)), None)


def judged(cells: Iterable[Cell], ranges: Ranges | None = None) -> list[Judged]:
    """The largest difference first; before all, what failed."""
    spans = ranges or {}
    judged_cells = [Judged(cell, row_of(cell.key), spans.get(cell.key)) for cell in cells]
    return sorted(judged_cells, key=_size, reverse=True)


def _size(judged_cell: Judged) -> float:
    """How many times what is near."""
    return (
        float("inf")
        if judged_cell.cell.failure
        else abs(judged_cell.cell.change) / judged_cell.cell.allowed
    )


def wrong(cells: Sequence[Judged]) -> list[Judged]:
    return [cell for cell in cells if cell.is_wrong]

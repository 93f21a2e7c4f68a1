# SPDX-License-Identifier: MIT
"""Why simulator and kernel differ where they do: each cell by name, in known.csv."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from schedlab.agreement.cells import Cell, Key, Verdict
from schedlab.agreement.variants import Range, Ranges

FILE = Path(__file__).with_name("known.csv")
_COLUMNS = ["experiment", "policy", "cpus", "what", "reason"]

Judgement = Verdict | Literal["known", "microseconds", "near after all"]


@dataclass(frozen=True)
class Reason:
    """Why cells differ."""

    name: str
    """As known.csv has it."""
    text: str
    """Markdown, a sentence or a few; what shows it in the traces."""


_ALL: tuple[Reason, ...] = ()
REASONS: Mapping[str, Reason] = {each.name: each for each in _ALL}


@dataclass(frozen=True)
class Judged:
    """A cell, and what is known of it."""

    cell: Cell
    reason: Reason | None = None
    range: Range | None = None
    """Of the simulator's figure, if its costs were a little other (schedlab.agreement.variants)."""

    @property
    def judgement(self) -> Judgement:
        """`microseconds`: off, but other costs within what is known of them span the kernel's figure.
        `known`: off, and the reason is given. `near after all`: a reason is given for what does not
        differ any more."""
        verdict = self.cell.verdict
        if verdict == "off":
            if self.reason:
                return "known"
            return "microseconds" if self.range and self.range.spans(self.cell) else "off"
        return "near after all" if verdict == "near" and self.reason else verdict

    @property
    def is_wrong(self) -> bool:
        """Nobody can say why; or what is said is no longer so."""
        return self.judgement in ("off", "failed", "near after all")


@cache
def known() -> Mapping[Key, Reason]:
    """Raises ValueError if the file is not as it must be: a program's mistake."""
    found: dict[Key, Reason] = {}
    with FILE.open(newline="") as file:
        rows = csv.DictReader(file)
        if rows.fieldnames != _COLUMNS:
            raise ValueError(f"{FILE}: its columns must be {', '.join(_COLUMNS)}")
        for row in rows:
            key = Key(row["experiment"], row["policy"], int(row["cpus"]), row["what"])
            if key in found or row["reason"] not in REASONS:
                raise ValueError(f"{FILE}: {key}: twice, or {row['reason']} is no reason")
            found[key] = REASONS[row["reason"]]
    return found


def judged(cells: Iterable[Cell], ranges: Ranges | None = None) -> list[Judged]:
    """The largest difference first; before all, what failed."""
    reasons = known()
    spans = ranges or {}
    found = [Judged(cell, reasons.get(cell.key), spans.get(cell.key)) for cell in cells]
    return sorted(found, key=_size, reverse=True)


def _size(each: Judged) -> float:
    """How many times what is near."""
    return float("inf") if each.cell.failure else abs(each.cell.change) / each.cell.allowed


def wrong(found: Sequence[Judged]) -> list[Judged]:
    return [each for each in found if each.is_wrong]

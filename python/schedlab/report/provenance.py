# SPDX-License-Identifier: MIT
"""How what a report shows came about: machine, tick, seeds; and how runs ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from schedlab.base.display.markdown import literal
from schedlab.base.display.numbers import NOTHING, counted
from schedlab.report.model import Cell
from schedlab.report.wording import listed, ranges
from schedlab.runs.collection import Kept, Repeated
from schedlab.units import format_time


def repeatable(setups: Iterable[Repeated]) -> bool:
    """Do their machines give the same run every time?"""
    return all(is_repeatable(run) for each in setups for run in each.runs)


def is_repeatable(run: Kept) -> bool:
    """Returns what its machine said when it was run."""
    return bool(run.manifest.get("repeatable", True))


def mark(setups: Iterable[Repeated]) -> str:
    """Returns what follows the title of a table or chart: "" if its runs can be repeated."""
    return "" if repeatable(setups) else " (not repeatable)"


def provenance(setups: Sequence[Repeated], *, brackets: bool = True) -> str:
    """Markdown for a caption: machine, tick, seeds, and what they allow to be said.

    `brackets`: intervals are printed, in brackets after means.
    """
    words = [f"Machine {_machines(setups)}, {_ticks(setups)}, {seeds(setups)}."]
    if max(len(each.runs) for each in setups) > 1:
        if brackets:
            words.append("In brackets: the 95 % interval of the mean over seeds.")
        words.append("Runs of one setup differ because their seeds do.")
    doubtful = sorted({e.setup.machine for e in setups if not repeatable([e])})
    if doubtful:
        names = literal(listed(doubtful))
        words.append(f"**{names}: not repeatable.** Another run would give other numbers.")
    return " ".join(words)


def _machines(setups: Sequence[Repeated]) -> str:
    """Each with the mode that it ran in, if it has several."""
    names = {
        f"{each.setup.machine}{f', {mode}' if (mode := run.manifest.get('mode')) else ''}"
        for each in setups
        for run in each.runs
    }
    return literal(listed(sorted(names)))


def _ticks(setups: Sequence[Repeated]) -> str:
    lengths = sorted({each.setup.tick_ns for each in setups})
    return f"tick {listed([format_time(length) for length in lengths])}"


def seeds(setups: Sequence[Repeated]) -> str:
    """`seed 1`; `seeds 1–5`; with how many a setup has, if that is fewer than there are."""
    all_of_them = sorted({run.seed for each in setups for run in each.runs})
    if len(all_of_them) == 1:
        return f"seed {all_of_them[0]}"
    counts = sorted({len(each.runs) for each in setups})
    own = "" if counts == [len(all_of_them)] else f" ({ranges(counts)} for each setup)"
    return f"seeds {ranges(all_of_them)}{own}"


def message(run: Kept) -> str:
    """Returns how a run ended, in words."""
    return str(run.manifest.get("message") or run.status)


def failure_cells(repeated: Repeated, count: int) -> list[Cell]:
    """What stands in a row's cells if a run of its setup failed: no mean of the others."""
    run = repeated.failed[0]
    few = f"{len(repeated.failed)} of {counted(len(repeated.runs), 'run')}"
    why = f"{few} did not succeed. Seed {run.seed}: {literal(message(run))}"
    return [Cell(run.status, "failed", why), *(Cell(NOTHING, "failed") for _ in range(count - 1))]

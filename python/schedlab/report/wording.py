# SPDX-License-Identifier: MIT
"""Formats numbers, counts and lists in reports, and describes how the results were produced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from string import Template

from schedlab.analysis.comparison.formatting import column_decimals, in_column
from schedlab.analysis.comparison.statistics import Estimate, estimate
from schedlab.base.display.markdown import literal
from schedlab.base.display.numbers import NOTHING, TIME, Quantity, counted, fitting
from schedlab.report.model import Cell
from schedlab.runs.collection import Repeated, StoredRun
from schedlab.units import format_time

COUNT = Quantity(digits=0)
"""The count of one run. A mean of several runs is written like any other number."""
PERCENT_OF_SHARES = Quantity("%", 100, digits=1, within=(0, 1))
_SHORTEST_UNIT_NS = 1000


def time_unit(nanoseconds: Iterable[float | None]) -> Quantity:
    """Returns the largest unit of s, ms and µs that makes the
    greatest of these times one or more.
    """
    times = [abs(value) for value in nanoseconds if value is not None]
    return fitting(TIME, max([_SHORTEST_UNIT_NS, *times]))


def mean_of(values: Sequence[float | None], unit: Quantity) -> Estimate | None:
    """Returns the mean over seeds.

    Returns None if a seed has no value, since the mean would mislead.
    """
    present = [float(value) for value in values if value is not None]
    return estimate(present, unit.within) if present and len(present) == len(values) else None


def in_a_column(unit: Quantity, means: Iterable[Estimate | None]) -> Quantity:
    """Returns the unit with decimals for all numbers of its column, unless the unit sets them."""
    present = [mean for mean in means if mean is not None]
    if unit.digits is not None or not present:
        return unit
    return replace(unit, digits=column_decimals(present, unit))


def with_interval(mean: Estimate | None, unit: Quantity) -> str:
    """Returns a mean with its interval, as in all tables; a dash for None."""
    return NOTHING if mean is None else in_column(mean, unit)


def prose(name: str, **slots: str) -> str:
    """Returns the Markdown of prose/NAME.md with its slots (`$slot`) replaced."""
    text = (Path(__file__).parent / "prose" / f"{name}.md").read_text(encoding="utf-8")
    return Template(text).substitute(slots).strip()


def listed(words: Sequence[str]) -> str:
    """Joins words: `a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def cpus(numbers: Iterable[int]) -> str:
    """Returns numbers of CPUs as text: `1 CPU`, `1–3, 5 CPUs`."""
    text = ranges(numbers)
    return f"{text} CPU" if text == "1" else f"{text} CPUs"


def ranges(numbers: Iterable[int]) -> str:
    """Returns ranges of numbers: `1–3, 5` for 1, 2, 3 and 5."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{part[0]}–{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def repeatable(setups: Iterable[Repeated]) -> bool:
    """Returns whether these configurations ran on machines that repeat runs exactly."""
    return all(is_repeatable(run) for setup in setups for run in setup.runs)


def is_repeatable(run: StoredRun) -> bool:
    """Returns whether the run's machine was repeatable, as recorded at the run."""
    return bool(run.manifest.get("repeatable", True))


def mark(setups: Iterable[Repeated]) -> str:
    """Returns the suffix of a table's or chart's title: "" if its runs are repeatable."""
    return "" if repeatable(setups) else " (not repeatable)"


def provenance(setups: Sequence[Repeated], *, brackets: bool = True) -> str:
    """Returns Markdown for a caption: machine, tick, seeds, and the meaning of intervals.

    `brackets`: intervals are printed in brackets after means.
    """
    words = [f"Machine {_machines(setups)}, {_ticks(setups)}, {seeds(setups)}."]
    if max(len(setup.runs) for setup in setups) > 1:
        if brackets:
            words.append("In brackets: the 95 % interval of the mean over seeds.")
        words.append("Runs of one configuration differ only in their seeds.")
    doubtful = sorted({e.setup.machine for e in setups if not repeatable([e])})
    if doubtful:
        names = literal(listed(doubtful))
        words.append(f"**{names}: not repeatable.** Another run would give other numbers.")
    return " ".join(words)


def _machines(setups: Sequence[Repeated]) -> str:
    """Returns the machines, each with its mode if it has several."""
    names = {
        f"{setup.setup.machine}{f', {mode}' if (mode := run.manifest.get('mode')) else ''}"
        for setup in setups
        for run in setup.runs
    }
    return literal(listed(sorted(names)))


def _ticks(setups: Sequence[Repeated]) -> str:
    lengths = sorted({setup.setup.tick_ns for setup in setups})
    return f"tick {listed([format_time(length) for length in lengths])}"


def seeds(setups: Sequence[Repeated]) -> str:
    """Returns the seeds as text: `seed 1`, `seeds 1–5`.

    If configurations differ, also the number of seeds per configuration.
    """
    all_of_them = sorted({run.seed for setup in setups for run in setup.runs})
    if len(all_of_them) == 1:
        return f"seed {all_of_them[0]}"
    counts = sorted({len(setup.runs) for setup in setups})
    suffix = "" if counts == [len(all_of_them)] else f" ({ranges(counts)} per configuration)"
    return f"seeds {ranges(all_of_them)}{suffix}"


def message(run: StoredRun) -> str:
    """Returns how a run ended, in words."""
    return str(run.manifest.get("message") or run.status)


def failure_cells(repeated: Repeated, count: int) -> list[Cell]:
    """Returns the cells of a row with a failed run. The other runs' mean is not shown."""
    run = repeated.failed[0]
    few = f"{len(repeated.failed)} of {counted(len(repeated.runs), 'run')}"
    why = f"{few} failed. Seed {run.seed}: {literal(message(run))}"
    return [Cell(run.status, "failed", why), *(Cell(NOTHING, "failed") for _ in range(count - 1))]

# SPDX-License-Identifier: MIT
"""Formats numbers, counts and lists in reports, and describes how the results were produced."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from string import Template

from schedlab.analysis.comparison.formatting import column_decimals, estimate_in_column
from schedlab.analysis.comparison.statistics import Estimate, estimate
from schedlab.base.display.markdown import literal
from schedlab.base.display.numbers import NO_VALUE, TIME, Quantity, format_count, with_fitting_unit
from schedlab.paths import ROOT
from schedlab.report.model import Cell
from schedlab.runs.collection import ConfigurationRuns, StoredRun
from schedlab.studies.study import read_yaml
from schedlab.units import format_time

COUNT_QUANTITY = Quantity(digits=0)
"""The count of one run. A mean of several runs is written like any other number."""
SHARE_PERCENT = Quantity("%", 100, digits=1, within=(0, 1))
_SHORTEST_UNIT_NS = 1000


def time_unit(nanoseconds: Iterable[float | None]) -> Quantity:
    """Returns the largest unit of s, ms and µs that makes the
    greatest of these times one or more.
    """
    times = [abs(value) for value in nanoseconds if value is not None]
    return with_fitting_unit(TIME, max([_SHORTEST_UNIT_NS, *times]))


def mean_over_seeds(values: Sequence[float | None], unit: Quantity) -> Estimate | None:
    """Returns the mean over seeds.

    Returns None if a seed has no value, since the mean would mislead.
    """
    known_values = [float(value) for value in values if value is not None]
    return (
        estimate(known_values, unit.within)
        if known_values and len(known_values) == len(values)
        else None
    )


def with_common_decimals(unit: Quantity, means: Iterable[Estimate | None]) -> Quantity:
    """Returns the unit with decimals for all numbers of its column, unless the unit sets them."""
    known_means = [mean for mean in means if mean is not None]
    if unit.digits is not None or not known_means:
        return unit
    return replace(unit, digits=column_decimals(known_means, unit))


def mean_with_interval(mean: Estimate | None, unit: Quantity) -> str:
    """Returns a mean with its interval, as in all tables; a dash for None."""
    return NO_VALUE if mean is None else estimate_in_column(mean, unit)


def read_prose(name: str, **slots: str) -> str:
    """Returns the Markdown of prose/NAME.md with its slots (`$slot`) replaced."""
    text = (Path(__file__).parent / "prose" / f"{name}.md").read_text(encoding="utf-8")
    return Template(text).substitute(slots).strip()


def listed(words: Sequence[str]) -> str:
    """Joins words: `a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def cpus_text(numbers: Iterable[int]) -> str:
    """Returns numbers of CPUs as text: `1 CPU`, `1–3, 5 CPUs`."""
    text = ranges_text(numbers)
    return f"{text} CPU" if text == "1" else f"{text} CPUs"


def ranges_text(numbers: Iterable[int]) -> str:
    """Returns ranges of numbers: `1–3, 5` for 1, 2, 3 and 5."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1].append(number)
        else:
            ranges.append([number])
    return ", ".join(f"{part[0]}–{part[-1]}" if len(part) > 1 else str(part[0]) for part in ranges)


def are_repeatable(setups: Iterable[ConfigurationRuns]) -> bool:
    """Returns whether these configurations ran on machines that repeat runs exactly."""
    return all(is_repeatable(run) for setup in setups for run in setup.runs)


def is_repeatable(run: StoredRun) -> bool:
    """Returns whether the run's machine was repeatable, as recorded at the run."""
    return bool(run.manifest.get("repeatable", True))


def repeatability_suffix(setups: Iterable[ConfigurationRuns]) -> str:
    """Returns the suffix of a table's or chart's title: "" if its runs are repeatable."""
    return "" if are_repeatable(setups) else " (not repeatable)"


def provenance_text(setups: Sequence[ConfigurationRuns], *, brackets: bool = True) -> str:
    """Returns Markdown for a caption: machine, tick, seeds, and the meaning of intervals.

    `brackets`: intervals are printed in brackets after means.
    """
    sentences = [f"Machine {_machines_text(setups)}, {_ticks_text(setups)}, {seeds_text(setups)}."]
    if max(len(setup.runs) for setup in setups) > 1:
        if brackets:
            sentences.append("In brackets: the 95 % interval of the mean over seeds.")
        sentences.append("Runs of one configuration differ only in their seeds.")
    unrepeatable = sorted({e.setup.machine for e in setups if not are_repeatable([e])})
    if unrepeatable:
        names = literal(listed(unrepeatable))
        sentences.append(f"**{names}: not repeatable.** Another run would give other numbers.")
    return " ".join(sentences)


def _machines_text(setups: Sequence[ConfigurationRuns]) -> str:
    """Returns the machines, each with its mode if it has several."""
    names = {
        f"{setup.setup.machine}{f', {mode}' if (mode := run.manifest.get('mode')) else ''}"
        for setup in setups
        for run in setup.runs
    }
    return literal(listed(sorted(names)))


def _ticks_text(setups: Sequence[ConfigurationRuns]) -> str:
    lengths = sorted({setup.setup.tick_ns for setup in setups})
    return f"tick {listed([format_time(length) for length in lengths])}"


def seeds_text(setups: Sequence[ConfigurationRuns]) -> str:
    """Returns the seeds as text: `seed 1`, `seeds 1–5`.

    If configurations differ, also the number of seeds per configuration.
    """
    distinct_seeds = sorted({run.seed for setup in setups for run in setup.runs})
    if len(distinct_seeds) == 1:
        return f"seed {distinct_seeds[0]}"
    counts = sorted({len(setup.runs) for setup in setups})
    suffix = (
        "" if counts == [len(distinct_seeds)] else f" ({ranges_text(counts)} per configuration)"
    )
    return f"seeds {ranges_text(distinct_seeds)}{suffix}"


def run_message(run: StoredRun) -> str:
    """Returns how a run ended, in words."""
    return str(run.manifest.get("message") or run.status)


def failure_cells(repeated: ConfigurationRuns, count: int) -> list[Cell]:
    """Returns the cells of a row with a failed run. The other runs' mean is not shown."""
    run = repeated.failed[0]
    failed_text = f"{len(repeated.failed)} of {format_count(len(repeated.runs), 'run')}"
    why = f"{failed_text} failed. Seed {run.seed}: {literal(run_message(run))}"
    return [Cell(run.status, "failed", why), *(Cell(NO_VALUE, "failed") for _ in range(count - 1))]


LABELS_FILE = ROOT / "policies" / "labels.yaml"


def policy_label(title: str) -> str:
    """Returns the label of a policy's title, such as `mlfq:four-quanta slice=2,boost=0`.

    A title without a label takes the label of its preset or policy, with the rest in brackets.
    """
    labels = _read_labels()
    choice, _, settings = title.partition(" ")
    name, _, preset = choice.partition(":")
    if title in labels:
        return labels[title]
    if name not in labels:
        return title
    details = [] if choice in labels else [preset]
    details += [setting.replace("=", " ") for setting in settings.split(",") if setting]
    base_label = labels.get(choice, labels[name])
    return f"{base_label} ({', '.join(details)})" if details else base_label


@cache
def _read_labels() -> dict[str, str]:
    labels: dict[str, str] = read_yaml(LABELS_FILE)
    return labels

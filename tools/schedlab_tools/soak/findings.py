# SPDX-License-Identifier: MIT
"""Evaluates a soak: a row for each figure, and the files with the results."""

from __future__ import annotations

import csv
import json
import math
import platform
import signal
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from schedlab import __version__
from schedlab_tools.soak.conduct import HOST_FIGURES, Sample, Soak
from schedlab_tools.soak.loads import Load

SAMPLES, FINDINGS = "samples.csv", "soak.json"


@dataclass(frozen=True)
class Row:
    """A figure of a part over the whole time."""

    load: str
    part: str
    figure: str
    first: float
    last: float
    most: float
    samples: int
    trend: Trend | None
    """None for a counter, or if there were too few samples."""


def rows(soak: Soak, loads: Sequence[Load]) -> list[Row]:
    """Returns the rows, in the order of the figures' first appearance."""
    series: dict[tuple[str, str, str], list[Sample]] = {}
    for sample in soak.samples:
        series.setdefault((sample.load, sample.part, sample.figure), []).append(sample)
    steady = {load.name: (*HOST_FIGURES, *load.steady) for load in loads}
    return [_row(key, samples, key[2] in steady[key[0]]) for key, samples in series.items()]


def _row(key: tuple[str, str, str], samples: Sequence[Sample], steady: bool) -> Row:
    """Returns the row of a figure. `steady`: the figure should not grow."""
    values = [sample.value for sample in samples]
    slope = trend([sample.seconds for sample in samples], values) if steady else None
    return Row(*key, values[0], values[-1], max(values), len(values), slope)


def findings(soak: Soak, rows: Sequence[Row]) -> dict[str, Any]:
    """Returns the results for JSON."""
    return {
        "schedlab": __version__,
        "host": {"system": platform.platform(), "machine": platform.machine()},
        "seconds": round(soak.seconds, 1),
        "ended_early_by": signal.Signals(soak.signal).name if soak.signal else None,
        "figures": [asdict(row) for row in rows],
        "problems": soak.problems,
        "temporary_files_left": soak.leftover_files,
    }


def write_results(out: Path, soak: Soak, content: Mapping[str, Any]) -> None:
    """Writes both files to `out`."""
    with (out / SAMPLES).open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("load", "part", "seconds", "figure", "value"))
        for sample in soak.samples:
            value = f"{sample.value:g}" if sample.value < 1e6 else f"{sample.value:.0f}"
            writer.writerow(
                (sample.load, sample.part, f"{sample.seconds:.1f}", sample.figure, value)
            )
    (out / FINDINGS).write_text(json.dumps(content, indent=2) + "\n")


CONFIDENCE = 0.95
WARM_UP = 0.25
"""Fraction of the time to ignore, because caches fill without being a leak."""
BATCHES = 20
"""Number of batches. Means of batches are less correlated than consecutive samples."""


@dataclass(frozen=True)
class Trend:
    """A straight line through a figure, after the warm-up."""

    per_hour: float
    low: float
    high: float
    """Bounds of the 95 % confidence interval of the slope."""


def trend(seconds: Sequence[float], values: Sequence[float]) -> Trend | None:
    """Returns the slope of least squares through the means of batches, with Student's interval.

    Returns None if there are fewer than two samples per batch. `seconds`: when each value was
    taken, in order. Method of batch means: Conway (1963).
    """
    times, figures = np.asarray(seconds, float), np.asarray(values, float)
    warm = times >= times[0] + WARM_UP * (times[-1] - times[0]) if len(times) else times > 0
    times, figures = times[warm], figures[warm]
    if len(times) < 2 * BATCHES:
        return None
    hours = np.array([part.mean() for part in np.array_split(times, BATCHES)]) / 3600
    batch_means = np.array([part.mean() for part in np.array_split(figures, BATCHES)])
    from scipy import stats  # slow import

    regression = stats.linregress(hours, batch_means)
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, BATCHES - 2)) * float(regression.stderr)
    slope = float(regression.slope)
    if math.isclose(float(np.ptp(batch_means)), 0, abs_tol=1e-9):
        slope = reach = 0.0
    return Trend(slope, slope - reach, slope + reach)

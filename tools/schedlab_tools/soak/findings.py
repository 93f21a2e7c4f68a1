# SPDX-License-Identifier: MIT
"""What a soak has shown: a row for each figure, and the files in which it is kept."""

from __future__ import annotations

import csv
import json
import platform
import signal
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from schedlab import __version__
from schedlab_tools.soak.conduct import Sample, Soak
from schedlab_tools.soak.loads import Load
from schedlab_tools.soak.sampling import HOST_FIGURES
from schedlab_tools.soak.trend import Trend, trend

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
    """None: it counts up by its nature, or there were too few samples."""


def rows(soak: Soak, loads: Sequence[Load]) -> list[Row]:
    """The rows, in the order in which the figures came first."""
    series: dict[tuple[str, str, str], list[Sample]] = {}
    for sample in soak.samples:
        series.setdefault((sample.load, sample.part, sample.figure), []).append(sample)
    steady = {load.name: (*HOST_FIGURES, *load.steady) for load in loads}
    return [_row(key, samples, key[2] in steady[key[0]]) for key, samples in series.items()]


def _row(key: tuple[str, str, str], samples: Sequence[Sample], steady: bool) -> Row:
    values = [sample.value for sample in samples]
    slope = trend([sample.seconds for sample in samples], values) if steady else None
    return Row(*key, values[0], values[-1], max(values), len(values), slope)


def findings(soak: Soak, found: Sequence[Row]) -> dict[str, Any]:
    """All of it, for programs."""
    return {
        "schedlab": __version__,
        "host": {"system": platform.platform(), "machine": platform.machine()},
        "seconds": round(soak.seconds, 1),
        "ended_early_by": signal.Signals(soak.signal).name if soak.signal else None,
        "figures": [asdict(row) for row in found],
        "problems": soak.problems,
        "temporary_files_left": soak.left,
    }


def keep(out: Path, soak: Soak, content: Mapping[str, Any]) -> None:
    """Writes both files into `out`."""
    with (out / SAMPLES).open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("load", "part", "seconds", "figure", "value"))
        for each in soak.samples:
            value = f"{each.value:g}" if each.value < 1e6 else f"{each.value:.0f}"
            writer.writerow((each.load, each.part, f"{each.seconds:.1f}", each.figure, value))
    (out / FINDINGS).write_text(json.dumps(content, indent=2) + "\n")

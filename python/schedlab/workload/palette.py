# SPDX-License-Identifier: MIT
"""Lists the palette: workloads that users can start in a running system.

Each is a workload file (docs/workload-files.md), so it is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from schedlab.errors import WrongUsage, format_parameter
from schedlab.paths import ROOT

_FILES = ROOT / "workloads" / "files"


@dataclass(frozen=True)
class PaletteEntry:
    """A workload of the palette."""

    name: str
    title: str
    """A short description."""
    kind: str
    """simple, study, or own (a file of the user)."""
    file: Path


_SIMPLE_WORKLOADS = (
    ("two-hogs", "two CPU-bound processes"),
    ("hog", "one CPU-bound process"),
    ("interactive", "an interactive process: short bursts, long pauses"),
    ("tickets-3-2-1", "three CPU-bound processes with 3, 2 and 1 tickets, and such weights"),
    ("tickets-100-10-1", "three CPU-bound processes with 100, 10 and 1 tickets"),
    ("fork-storm", "a fork storm: 500 short processes, one after another"),
    ("ping-pong", "two processes that wake each other"),
    (
        "inversion",
        "an urgent process waits for a lock that a lowly one holds, while another computes",
    ),
)


def read_palette(user_files: Iterable[Path] = ()) -> dict[str, PaletteEntry]:
    """Returns the palette's workloads by name: simple ones, those of the studies, then the user's
    files.

    Raises WrongUsage if a user's file does not exist, or its name is taken.
    """
    entries = {
        name: PaletteEntry(name, title, "simple", _FILES / "monitor" / f"{name}.json")
        for name, title in _SIMPLE_WORKLOADS
    }
    for file in sorted(_FILES.glob("*.json")):
        entries[file.stem] = PaletteEntry(file.stem, file.stem.replace("-", " "), "study", file)
    for file in user_files:
        if not file.is_file():
            raise WrongUsage(
                "the file does not exist",
                what=format_parameter("workload", file),
                fix="name an existing workload file",
            )
        if file.stem in entries:
            raise WrongUsage(
                f"the palette already has a workload {file.stem}",
                what=format_parameter("workload", file),
                fix="rename the file",
            )
        entries[file.stem] = PaletteEntry(file.stem, file.stem, "own", file)
    return entries

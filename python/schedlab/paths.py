# SPDX-License-Identifier: MIT
"""Where things are."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout."""
BUILD = ROOT / "build"
RUNS = ROOT / "runs"
STUDIES = ROOT / "studies"
"""A folder for each, named by its number."""


def new_runs_folder(name: str) -> Path:
    """A name in runs/ that is free, in the order of time."""
    stem = f"{datetime.now():%Y%m%d-%H%M%S}-{name}"
    place, number = RUNS / stem, 2
    while place.exists():
        place, number = RUNS / f"{stem}-{number}", number + 1
    return place


def cache_folder() -> Path:
    """What is kept between starts, beside the launcher's own."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "schedlab"

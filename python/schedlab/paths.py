# SPDX-License-Identifier: MIT
"""Where things are."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout."""
BUILD = ROOT / "build"
RUNS = ROOT / "runs"


def cache_folder() -> Path:
    """What is kept between starts, beside the launcher's own."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "schedlab"

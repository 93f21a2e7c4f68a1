# SPDX-License-Identifier: MIT
"""Identifies the code that measures traces, so that results of different code are not mixed."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

import schedlab
from schedlab import __version__

SOURCES = (
    "trace/*.py",
    "metrics/*.py",
    "workload/model.py",
    "workload/text.py",
    "machines/outcome.py",
)

Facts = dict[str, str]


@cache
def measuring_code(*more: str) -> Facts:
    """Returns the versions and hash of the measuring code; `more` are patterns of additional sources."""
    digest = hashlib.sha256()
    package = Path(schedlab.__file__).parent
    for pattern in (*SOURCES, *more):
        for path in sorted(package.glob(pattern)):
            digest.update(path.relative_to(package).as_posix().encode())
            digest.update(path.read_bytes())
    return {
        "schedlab": __version__,
        "sources_sha256": digest.hexdigest(),
        "polars": pl.__version__,
        "numpy": np.__version__,
        "architecture": platform.machine(),
    }

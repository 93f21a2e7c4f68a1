# SPDX-License-Identifier: MIT
"""Identifies the code that computes metrics, so that results of different versions are not mixed."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

import schedlab
from schedlab import __version__

MEASURING_SOURCES = (
    "trace/*.py",
    "metrics/*.py",
    "workload/model.py",
    "workload/text.py",
    "machines/outcome.py",
)

CodeFacts = dict[str, str]


@cache
def identify_measuring_code(*more_patterns: str) -> CodeFacts:
    """Returns versions and a hash of the code that computes metrics.

    `more_patterns`: patterns of further source files.
    """
    digest = hashlib.sha256()
    package = Path(schedlab.__file__).parent
    for pattern in (*MEASURING_SOURCES, *more_patterns):
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

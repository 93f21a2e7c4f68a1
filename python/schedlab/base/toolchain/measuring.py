# SPDX-License-Identifier: MIT
"""By what traces are measured here: figures of other code are not put together with its own."""

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
    """The measuring code of this checkout and this Python. `more`: other sources that count, as
    patterns."""
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

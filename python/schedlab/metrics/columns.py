# SPDX-License-Identifier: MIT
"""Converts arrays to columns of tables."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from schedlab.trace.model import Integers


def nullable(values: Integers, absent: npt.NDArray[np.bool_]) -> pl.Series:
    """Returns a column of integers that is null where `absent` is true."""
    series = pl.Series(values, dtype=pl.Int64)
    column: pl.Series = series.zip_with(pl.Series(~absent), pl.Series([None], dtype=pl.Int64))
    return column


def named(numbers: npt.NDArray[np.integer], names: dict[int, str]) -> pl.Series:
    """Returns a column of words for numbers of 0 or more. Raises for a number without a name."""
    words = list(names.values())
    place = np.full(max(names) + 1, len(words))  # an index beyond the words makes gather() raise
    place[list(names)] = np.arange(len(words))
    column: pl.Series = pl.Series(words, dtype=pl.Enum(words)).gather(place[numbers])
    return column

# SPDX-License-Identifier: MIT
"""From arrays to columns of tables."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from schedlab.trace.model import Integers


def nullable(values: Integers, absent: npt.NDArray[np.bool_]) -> pl.Series:
    """A column of integers that has null where `absent` is true."""
    series = pl.Series(values, dtype=pl.Int64)
    column: pl.Series = series.zip_with(pl.Series(~absent), pl.Series([None], dtype=pl.Int64))
    return column


def named(numbers: npt.NDArray[np.integer], names: dict[int, str]) -> pl.Series:
    """A column of words for numbers, which are all 0 or more. Raises for a number that has no name."""
    words = list(names.values())
    place = np.full(max(names) + 1, len(words))  # beyond the words: gather() raises
    place[list(names)] = np.arange(len(words))
    column: pl.Series = pl.Series(words, dtype=pl.Enum(words)).gather(place[numbers])
    return column

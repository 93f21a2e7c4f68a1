# SPDX-License-Identifier: MIT
"""Converts arrays to columns of tables.

Polars plans and schedules each query, which takes longer than the work on the small tables of a
run. So these functions avoid queries.
"""

import numpy as np
import numpy.typing as npt
import polars as pl

Mask = npt.NDArray[np.bool_]


def nullable(
    values: npt.NDArray[np.generic],
    absent: Mask,
    dtype: type[pl.DataType] = pl.Int64,
    name: str = "",
) -> pl.Series:
    """Returns a column that is null where `absent` is true."""
    column = pl.Series(name, values, dtype)
    if not absent.any():
        return column
    present: pl.Series = column.zip_with(pl.Series(~absent), pl.Series([None], dtype=dtype))
    return present


def named(numbers: npt.NDArray[np.integer], names: dict[int, str]) -> pl.Series:
    """Returns a column with the name of each number. Raises an error for a number without a name."""
    words = list(names.values())
    name_index = np.full(
        max(names) + 1, len(words)
    )  # an index after the last name makes the selection raise an error
    name_index[list(names)] = np.arange(len(words))
    column: pl.Series = pl.Series(words, dtype=pl.Enum(words))[name_index[numbers]]
    return column


def quotients(
    values: npt.NDArray[np.integer], divisors: npt.NDArray[np.number], rows: npt.NDArray[np.integer]
) -> npt.NDArray[np.float64]:
    """Returns values ÷ divisors, rounded as by Polars. NaN or infinite for a divisor of 0.

    `rows`: for each value, how many values have the same divisor because they are of one run.
    Polars multiplies several values by the reciprocal, and divides a single one.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(rows == 1, values / divisors, values * (1 / divisors))

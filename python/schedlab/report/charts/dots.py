# SPDX-License-Identifier: MIT
"""One number for each of several things: measured with its interval, published, and ideal."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from schedlab.report.model import Chart

ROW_HEIGHT = 22


def dots(
    name: str,
    data: pl.DataFrame,
    *,
    title: str,
    caption: str,
    category: str,
    value: str,
    x_title: str,
    series: str | None = None,
    policies: bool = True,
    order: Sequence[str] | None = None,
    category_order: Sequence[str] | None = None,
    panel: str | None = None,
    ideal: pl.DataFrame | None = None,
    published: pl.DataFrame | None = None,
    zero: bool = True,
    log: bool = False,
    description: str = "",
) -> Chart:
    """A row for each `category`: filled points measured, hollow ones published, a stroke the ideal.

    `data` has a row a run with the columns named (a null value is a run that failed); `published`
    and `ideal` have the same columns, without `series` if it is the same for all. `panel`: the
    column that says in which of several pictures, one below the other, a row belongs.
    """
    raise NotImplementedError

# SPDX-License-Identifier: MIT
"""Box plots."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from schedlab.report.model import Chart


def boxes(
    name: str,
    data: pl.DataFrame,
    *,
    title: str,
    caption: str,
    category: str,
    value: str,
    x_title: str,
    policies: bool = True,
    category_order: Sequence[str] | None = None,
    panel: str | None = None,
    published: pl.DataFrame | None = None,
    log: bool = False,
    description: str = "",
) -> Chart:
    """A box for each `category`, from `data` with a row a process (or whatever is counted).

    The box is from the first to the third quartile with a line at the median; the whiskers reach
    to the farthest value within 1.5 interquartile ranges of the box (Tukey, 1977), and each value
    beyond is a point. `published` has `category` (and `panel`), `value`: hollow points beside.
    """
    raise NotImplementedError

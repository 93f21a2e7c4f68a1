# SPDX-License-Identifier: MIT
"""Who delays whom: what all runnable waits of a time went by with."""

from __future__ import annotations

import numpy as np
import polars as pl

from schedlab.analysis.explanation.blame import Blames
from schedlab.analysis.explanation.occupancy import IDLE, SCHEDULER, UNKNOWN

_WORDS = {IDLE: "(idle)", SCHEDULER: "(scheduler)", UNKNOWN: "(unknown)"}
"""In place of a group; no label that a program gives itself has brackets."""


def delays(blames: Blames, waits: pl.Series, by: str = "group") -> pl.DataFrame:
    """What some waits (rows of the table `waits`) went by with: for each pair of `waiting` and `because_of` the
    `duration_ns`.

    `by`: "group", "name" or "pid", of which the pairs are; `because_of` may also be "(idle)", "(scheduler)" and
    "(unknown)". The sum is that of the waits, exactly.
    """
    at = waits.to_numpy().astype(np.int64)
    which, cpu, begins, ends = blames.pieces(at)
    piece, begins, ends, occupant = blames.cpus.overlapping(cpu, begins, ends)
    life = blames.tables.waits["life"].to_numpy()[at[which[piece]]]
    called = blames.tables.processes[by].cast(pl.String)
    found = pl.DataFrame(
        {"life": life, "occupant": occupant, "duration_ns": ends - begins},
        schema={"life": pl.Int64, "occupant": pl.Int64, "duration_ns": pl.Int64},
    )
    summed = found.group_by("life", "occupant").agg(pl.col("duration_ns").sum())
    names = dict(enumerate(called.to_list()))
    return (
        summed.with_columns(
            waiting=pl.col("life").replace_strict(names, return_dtype=pl.String, default=None),
            because_of=pl.col("occupant").replace_strict(
                {**names, **_WORDS}, return_dtype=pl.String, default=None
            ),
        )
        .group_by("waiting", "because_of")
        .agg(pl.col("duration_ns").sum())
        .sort(["waiting", "duration_ns", "because_of"], descending=[False, True, False])
    )

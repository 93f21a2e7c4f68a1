# SPDX-License-Identifier: MIT
"""Whether blame holds: waits of a run beside those of the same run in which something was otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from schedlab.analysis.explanation.waits import select_waits
from schedlab.analysis.tables.trace_tables import TraceTables
from schedlab.metrics.window import measured_window
from schedlab.trace import Trace

_CONFIRMED = 0.5
"""Blame is confirmed if without its cause this part of it is not waited, or more."""


def difference(
    before: Trace,
    after: Trace,
    kinds: Sequence[str],
    task: str | None,
    begin_ns: int | None,
    by: str,
) -> pl.DataFrame:
    """For each `waiting` (a group, a name or a PID): `before_ns` and `after_ns`, how long its processes waited in what
    is measured, from a time on.

    Raises WrongUsage if a trace has no process that `task` names.
    """
    tables = [_waited(trace, kinds, task, begin_ns, by) for trace in (before, after)]
    first, second = (
        table.rename({"duration_ns": name})
        for table, name in zip(tables, ("before_ns", "after_ns"), strict=True)
    )
    joined = first.join(second, on="waiting", how="full", coalesce=True)
    return joined.with_columns(pl.col("before_ns", "after_ns").fill_null(0)).sort("waiting")


def confirmed(found: pl.DataFrame, delays: pl.DataFrame, because_of: Sequence[str]) -> pl.DataFrame:
    """`found` (see difference) with `blamed_ns`, for which `delays` blames some, and `confirmed`: true if at
    least half of that is not waited without them; null where nothing is blamed on them."""
    blamed = (
        delays.filter(pl.col("because_of").is_in(list(because_of)))
        .group_by("waiting")
        .agg(blamed_ns=pl.col("duration_ns").sum())
    )
    saved = pl.col("before_ns") - pl.col("after_ns")
    return found.join(blamed, on="waiting", how="left", maintain_order="left").with_columns(
        pl.col("blamed_ns").fill_null(0),
        confirmed=pl.when(pl.col("blamed_ns") > 0).then(saved >= _CONFIRMED * pl.col("blamed_ns")),
    )


def _waited(
    trace: Trace, kinds: Sequence[str], task: str | None, begin_ns: int | None, by: str
) -> pl.DataFrame:
    tables = TraceTables(trace)
    window = measured_window(trace)
    lives = tables.lives_of(task) if task else None
    begin_ns = window.begin_ns if begin_ns is None else begin_ns
    found = select_waits(tables, lives, kinds, begin_ns, window.end_ns)
    called = tables.processes.select("life", waiting=pl.col(by).cast(pl.String))
    return found.join(called, on="life").group_by("waiting").agg(pl.col("duration_ns").sum())

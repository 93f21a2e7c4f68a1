# SPDX-License-Identifier: MIT
"""Selects waits to explain."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from schedlab.analysis.tables.trace_tables import TraceTables

WAIT_KINDS = ("response", "wake-up", "turn", "found", "blocked")
"""Kinds of waits. `blocked` is for blocked processes that wait for another process; the others are
kinds of the table `waits`.
"""
QUEUED_KINDS = WAIT_KINDS[:-1]
"""Kinds of waits of runnable processes."""
_SLEEP_REASONS = ("sleep", "console")


@dataclass(frozen=True)
class Wait:
    """A wait of a process."""

    life: int
    at: int | None
    """Its row in the table `waits`; None for a row of `blocks`."""
    kind: str
    begin_ns: int
    end_ns: int
    ended: bool = True
    """False if the process still waits at the end of the trace."""

    @property
    def duration_ns(self) -> int:
        """Returns the length of the wait in ns."""
        return self.end_ns - self.begin_ns


def select_waits(
    tables: TraceTables,
    lives: Sequence[int] | None,
    kinds: Sequence[str],
    begin_ns: int,
    end_ns: int,
) -> pl.DataFrame:
    """Returns the waits that begin within an interval, the longest first.

    Columns: life, kind, begin_ns, end_ns, duration_ns, ended, and `at`, the row in the table `waits`
    (null for `blocks`). `lives`: only waits of these processes; None: of all.
    """
    parts = []
    if set(kinds) & set(QUEUED_KINDS):
        waits = tables.waits.with_row_index("at")
        parts.append(waits.filter(pl.col("kind").is_in(list(kinds))))
    if "blocked" in kinds:
        blocked = tables.blocks.filter(~pl.col("reason").is_in(_SLEEP_REASONS))
        parts.append(blocked.with_columns(kind=pl.lit("blocked"), at=pl.lit(None, pl.UInt32)))
    columns = ("life", "kind", "begin_ns", "end_ns", "duration_ns", "at")
    ended = pl.col("end_row").is_not_null().alias("ended")
    selected = pl.concat([part.select(*columns, ended) for part in parts])
    selected = selected.filter(pl.col("begin_ns").is_between(begin_ns, end_ns))
    if lives is not None:
        selected = selected.filter(pl.col("life").is_in(list(lives)))
    return selected.sort(["duration_ns", "begin_ns", "life"], descending=[True, False, False])


def rows_to_waits(table: pl.DataFrame) -> list[Wait]:
    """Returns the rows of select_waits as objects."""
    return [
        Wait(row["life"], row["at"], row["kind"], row["begin_ns"], row["end_ns"], row["ended"])
        for row in table.iter_rows(named=True)
    ]


def waits_at(table: pl.DataFrame, at_ns: int) -> pl.DataFrame:
    """Returns the waits in progress at a time. A wait that ends at this time is excluded."""
    return table.filter((pl.col("begin_ns") <= at_ns) & (at_ns < pl.col("end_ns")))


def waits_beyond_percentile(table: pl.DataFrame, percentile: float) -> pl.DataFrame:
    """Returns the waits at or above the percentile of their kind."""
    shortest = pl.col("duration_ns").quantile(percentile / 100, "lower").over("kind")
    return table.filter(pl.col("duration_ns") >= shortest)

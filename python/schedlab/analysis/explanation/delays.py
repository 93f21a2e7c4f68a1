# SPDX-License-Identifier: MIT
"""Sums up which processes delayed which others, and checks the attribution against a changed run."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from schedlab.analysis.explanation.blame import Blames
from schedlab.analysis.explanation.occupancy import IDLE, SCHEDULER, UNKNOWN
from schedlab.analysis.explanation.waits import select_waits
from schedlab.analysis.tables.trace_tables import TraceTables
from schedlab.metrics.window import measured_window
from schedlab.trace import Trace

_OTHER_CAUSES = {IDLE: "(idle)", SCHEDULER: "(scheduler)", UNKNOWN: "(unknown)"}
"""Names of causes that are not processes. Labels of programs never contain brackets."""


def sum_delays(blames: Blames, waits: pl.Series, by: str = "group") -> pl.DataFrame:
    """Returns the causes of some waits (rows of the table `waits`): columns `waiting`, `because_of`
    and `duration_ns`.

    `by`: "group", "name" or "pid", the kind of names in the pairs. `because_of` may also be
    "(idle)", "(scheduler)" or "(unknown)". The durations add up to the waits exactly.
    """
    wait_rows = waits.to_numpy().astype(np.int64)
    which, cpu, begins, ends = blames.split_at_migrations(wait_rows)
    piece, begins, ends, occupant = blames.occupancy.overlapping(cpu, begins, ends)
    life = blames.tables.waits["life"].to_numpy()[wait_rows[which[piece]]]
    life_names = blames.tables.processes[by].cast(pl.String)
    delays_table = pl.DataFrame(
        {"life": life, "occupant": occupant, "duration_ns": ends - begins},
        schema={"life": pl.Int64, "occupant": pl.Int64, "duration_ns": pl.Int64},
    )
    summed = delays_table.group_by("life", "occupant").agg(pl.col("duration_ns").sum())
    names = dict(enumerate(life_names.to_list()))
    return (
        summed.with_columns(
            waiting=pl.col("life").replace_strict(names, return_dtype=pl.String, default=None),
            because_of=pl.col("occupant").replace_strict(
                {**names, **_OTHER_CAUSES}, return_dtype=pl.String, default=None
            ),
        )
        .group_by("waiting", "because_of")
        .agg(pl.col("duration_ns").sum())
        .sort(["waiting", "duration_ns", "because_of"], descending=[False, True, False])
    )


_CONFIRMED_FRACTION = 0.5
"""An attribution is confirmed if removing the cause eliminates at least this fraction of the attributed wait."""


def waiting_time_changes(
    before: Trace,
    after: Trace,
    kinds: Sequence[str],
    task: str | None,
    begin_ns: int | None,
    by: str,
) -> pl.DataFrame:
    """Returns, for each `waiting` (a group, name or PID), `before_ns` and `after_ns`.

    Both are the total time that its processes waited in the measured window from `begin_ns`. Raises
    WrongUsage if `task` matches no process of a trace.
    """
    tables = [_waiting_times(trace, kinds, task, begin_ns, by) for trace in (before, after)]
    first, second = (
        table.rename({"duration_ns": name})
        for table, name in zip(tables, ("before_ns", "after_ns"), strict=True)
    )
    joined = first.join(second, on="waiting", how="full", coalesce=True)
    return joined.with_columns(pl.col("before_ns", "after_ns").fill_null(0)).sort("waiting")


def check_attribution(
    rows: pl.DataFrame, delays: pl.DataFrame, because_of: Sequence[str]
) -> pl.DataFrame:
    """Adds the columns `blamed_ns` and `confirmed` to `rows` (see difference).

    `blamed_ns` is the wait that `sum_delays` attributes to `because_of`. `confirmed` is true if at
    least half of that wait is eliminated; null if nothing is attributed.
    """
    blamed = (
        delays.filter(pl.col("because_of").is_in(list(because_of)))
        .group_by("waiting")
        .agg(blamed_ns=pl.col("duration_ns").sum())
    )
    saved = pl.col("before_ns") - pl.col("after_ns")
    return rows.join(blamed, on="waiting", how="left", maintain_order="left").with_columns(
        pl.col("blamed_ns").fill_null(0),
        confirmed=pl.when(pl.col("blamed_ns") > 0).then(
            saved >= _CONFIRMED_FRACTION * pl.col("blamed_ns")
        ),
    )


def _waiting_times(
    trace: Trace, kinds: Sequence[str], task: str | None, begin_ns: int | None, by: str
) -> pl.DataFrame:
    """Returns the total waiting time for each group, name or PID: `waiting` and `waited_ns`."""
    tables = TraceTables(trace)
    window = measured_window(trace)
    lives = tables.lives_of(task) if task else None
    begin_ns = window.begin_ns if begin_ns is None else begin_ns
    waits = select_waits(tables, lives, kinds, begin_ns, window.end_ns)
    life_names = tables.processes.select("life", waiting=pl.col(by).cast(pl.String))
    return waits.join(life_names, on="life").group_by("waiting").agg(pl.col("duration_ns").sum())

# SPDX-License-Identifier: MIT
"""Finds the dispatch queues (DSQs) of a wait under a sched_ext scheduler, and the kicks of CPUs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from schedlab.analysis.explanation.waits import Wait
from schedlab.analysis.tables.trace_tables import TraceTables
from schedlab.base.display.numbers import duration


@dataclass(frozen=True)
class KickCount:
    """Equal kicks during a wait."""

    cpu: int
    """The kicked CPU."""
    callback: str
    """The callback that kicked."""
    flags: str
    count: int
    first_ns: int
    """Time from the begin of the wait to the first of these kicks."""

    def describe(self) -> str:
        """Returns the kicks as a sentence: "after 1.2 ms, enqueue() kicked CPU 3 (idle), twice"."""
        caller = _caller(self.callback)
        flags = f" ({self.flags.replace(',', ', ')})" if self.flags else ""
        times = f", {self.count:,} times" if self.count > 1 else ""
        return f"after {duration(self.first_ns)}, {caller} kicked CPU {self.cpu}{flags}{times}"


@dataclass(frozen=True)
class QueueStay:
    """A part of a wait, in one dispatch queue."""

    begin_ns: int
    duration_ns: int
    queue: str
    """The queue; "" if the scheduler kept the process outside of all queues."""
    callback: str
    """The callback that put the process there, or `kernel`."""

    def describe(self) -> str:
        """Returns the place as a clause: "12 ms in DSQ 0x8, where enqueue() put it"."""
        caller = _caller(self.callback)
        if not self.queue:
            return f"{duration(self.duration_ns)} in no DSQ: {caller} took it"
        return f"{duration(self.duration_ns)} in {self.queue}, where {caller} put it"


def _caller(callback: str) -> str:
    """Returns how a sentence names a callback."""
    return {"kernel": "the kernel", "other": "another callback"}.get(callback, f"{callback}()")


class QueueStays:
    """The dispatches and kicks in a trace."""

    def __init__(self, tables: TraceTables) -> None:
        self._dispatches = tables.dispatches
        self._tables = tables

    def kicks_during(self, wait: Wait) -> list[KickCount]:
        """Returns the kicks of all CPUs during a wait, in the order of the first of equal kicks."""
        kicks = self._tables.kicks
        rows = (
            kicks.filter(pl.col("time_ns").is_between(wait.begin_ns, wait.end_ns))
            .group_by("kicked_cpu", "callback", "flags", maintain_order=True)
            .agg(pl.len(), pl.col("time_ns").first() - wait.begin_ns)
        )
        return [KickCount(*row) for row in rows.iter_rows()]

    def during(self, wait: Wait) -> list[QueueStay]:
        """Returns the parts of a wait, in order. Empty under other policies."""
        if not len(self._dispatches):
            return []
        # A preempted process is dispatched before the switch that ends its run.
        last_run_begin_ns = self._tables.stays.filter(
            (pl.col("life") == wait.life) & (pl.col("end_ns") <= wait.begin_ns)
        )["begin_ns"].max()
        rows = self._dispatches.filter(
            (pl.col("life") == wait.life)
            & (pl.col("time_ns") > (-1 if last_run_begin_ns is None else last_run_begin_ns))
            & (pl.col("time_ns") <= wait.end_ns)
        )
        is_same = (pl.col(name) == pl.col(name).shift(1) for name in ("queue", "callback"))
        rows = rows.filter(~pl.all_horizontal(*is_same).fill_null(False))
        times = [max(wait.begin_ns, time) for time in rows["time_ns"]]
        stays = zip(pairwise([*times, wait.end_ns]), rows["queue"], rows["callback"], strict=True)
        return [
            QueueStay(begin, end - begin, queue, callback)
            for (begin, end), queue, callback in stays
            if end > begin
        ]

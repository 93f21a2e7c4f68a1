# SPDX-License-Identifier: MIT
"""Finds the dispatch queues (DSQs) where a process waited under a sched_ext scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from schedlab.analysis.explanation.waits import Wait
from schedlab.analysis.tables.trace_tables import TraceTables
from schedlab.base.display.numbers import duration


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
        caller = {"kernel": "the kernel", "other": "another callback"}.get(
            self.callback, f"{self.callback}()"
        )
        if not self.queue:
            return f"{duration(self.duration_ns)} in no DSQ: {caller} took it"
        return f"{duration(self.duration_ns)} in {self.queue}, where {caller} put it"


class QueueStays:
    """The dispatches in a trace."""

    def __init__(self, tables: TraceTables) -> None:
        self._dispatches = tables.dispatches
        self._tables = tables

    def during(self, wait: Wait) -> list[QueueStay]:
        """Returns the parts of a wait, in order. Empty under other policies."""
        if not len(self._dispatches):
            return []
        # A preempted process is dispatched before the switch that ends its run.
        last_run = self._tables.stays.filter(
            (pl.col("life") == wait.life) & (pl.col("end_ns") <= wait.begin_ns)
        )["begin_ns"].max()
        rows = self._dispatches.filter(
            (pl.col("life") == wait.life)
            & (pl.col("time_ns") > (-1 if last_run is None else last_run))
            & (pl.col("time_ns") <= wait.end_ns)
        )
        is_same = (pl.col(name) == pl.col(name).shift(1) for name in ("queue", "callback"))
        rows = rows.filter(~pl.all_horizontal(*is_same).fill_null(False))
        times = [max(wait.begin_ns, time) for time in rows["time_ns"]]
        parts = zip(pairwise([*times, wait.end_ns]), rows["queue"], rows["callback"], strict=True)
        return [
            QueueStay(begin, end - begin, queue, callback)
            for (begin, end), queue, callback in parts
            if end > begin
        ]

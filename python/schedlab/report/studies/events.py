# SPDX-License-Identifier: MIT
"""Study 5's CPU benchmark: what its events told, and the turns in which they were done."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import polars as pl

from schedlab.metrics import state_intervals
from schedlab.report.studies import queries
from schedlab.report.study_tables import Measured
from schedlab.runs.collection import Kept
from schedlab.trace import Kind, Trace

_MS = 1e6
_SECOND = 1e9
_LATENCIES = {
    "mean": pl.col("ms").mean(),
    "longest": pl.col("ms").max(),
    "95th": pl.col("ms").quantile(0.95, "linear"),
}


class EventQueries(queries.Queries):
    """Asks for events by experiment and policy."""

    def throughput(self, experiment: str, policy: str) -> Measured:
        """Events a second, of all threads, as the program tells it."""
        told = pl.col("value").filter(pl.col("name") == "events").sum()
        elapsed = pl.col("value").filter(pl.col("name") == "elapsed").sum()
        rate = pl.when(elapsed > 0).then(told * 1e9 / elapsed)
        return self.of(experiment, policy, rate, self.collection.values)

    def latency(self, experiment: str, policy: str, which: str) -> Measured:
        """An event's latency in ms: the mean, the longest, or the 95th percentile."""
        return self.of(experiment, policy, _LATENCIES[which], self._latencies)

    def _latencies_of(self, experiment: str, policies: Sequence[str]) -> pl.DataFrame:
        """Latencies of all events of all runs whose setup has no failure. Columns: policy, ms."""
        rows = self._latencies
        setups = {policy: self.setup(experiment, policy) for policy in policies}
        whole = [policy for policy, setup in setups.items() if setup and setup.succeeded]
        if rows.is_empty():
            return pl.DataFrame(schema={"policy": pl.String, "ms": pl.Float64})
        return rows.filter(
            (pl.col("experiment") == experiment) & pl.col("policy").is_in(whole)
        ).select("policy", "ms")

    @cached_property
    def _latencies(self) -> pl.DataFrame:
        rows = self._told("latency")
        return rows.with_columns(ms=pl.col("value") / _MS) if len(rows) else rows


def turns(run: Kept, trace: Trace) -> pl.DataFrame:
    """Each turn of a thread that its slice ended. Columns: pid, ms."""
    events = run.metrics().processes.filter(pl.col("group") == "event")["pid"]
    intervals = state_intervals(trace).filter(pl.col("pid").is_in(events.implode()))
    ended_by = pl.col("cause").cast(pl.String).shift(-1).over("pid")
    return (
        intervals.with_columns(then=ended_by)
        .filter((pl.col("state") == "running") & (pl.col("then") == "preempted: slice"))
        .select("pid", ((pl.col("end_ns") - pl.col("begin_ns")) / _MS).alias("ms"))
    )


def lost_steps(run: Kept, trace: Trace) -> float:
    """Steps of the machine's clock, of each tick that a thread ran, in which the CPU did nothing.

    Where time goes on and the cycle counter does not: Spike ends a step early when an interrupt
    comes. 0 if the clock has no steps.
    """
    threads = run.metrics().processes.filter(pl.col("group") == "event")["pid"].to_list()
    rows = trace.rows(Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT)
    rows = rows[trace.column("cpu")[rows] == 0]
    kind, process = trace.column("kind")[rows], trace.column("process")[rows]
    begins = np.flatnonzero(
        (kind[:-1] == Kind.SCHEDULER_EXIT)
        & np.isin(process[:-1], threads)
        & (kind[1:] == Kind.SCHEDULER_ENTER)
    )
    cycles = trace.column("second")[rows].astype(np.int64)
    times = trace.column("time_ns")[rows]
    took = int((times[begins + 1] - times[begins]).sum())
    counted = int((cycles[begins + 1] - cycles[begins]).sum())
    if not took or not trace.clock_step_ns:
        return 0.0
    lost_ns = took - counted * _SECOND / trace.header.cycles_per_second
    return lost_ns / trace.clock_step_ns / (took / trace.header.tick_ns)

# SPDX-License-Identifier: MIT
"""Checks invariants of a run's trace, in addition to its validation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from schedlab.base.display.numbers import milliseconds
from schedlab.metrics.intervals import cpu_intervals, state_intervals
from schedlab.trace import Kind, Trace

Span = tuple[int, int]


def idle_while_work_waits(trace: Trace, most_ns: int, still: Sequence[Span] = ()) -> str:
    """Describes a CPU that idles longer than `most_ns` while a process waits in its queue; "" if there is none.

    The trace must contain QUEUED records. `still`: intervals when some CPU was held, which do not
    count. The held CPU may be the idle CPU, or the CPU that would notify it.
    """
    waits = _waits(trace)
    breaches = [
        _violation_on_cpu(trace, waits, cpu, most_ns, still) for cpu in range(trace.header.cpus)
    ]
    first = min((breach for breach in breaches if breach), default=None)
    if first is None:
        return ""
    at_ns, length_ns, cpu, pid = first
    return (
        f"from {milliseconds(at_ns, 4)} on, CPU {cpu} idles for {length_ns / 1000:.1f} µs while process {pid}"
        " waits in its queue"
    )


def _waits(trace: Trace) -> pl.DataFrame:
    """Returns the waits of processes in one queue: pid, cpu (the queue's), begin_ns, end_ns."""
    rows = trace.rows(Kind.QUEUED)
    queued = pl.DataFrame(
        {
            "pid": trace.at("process", rows).astype(np.int64),
            "cpu": trace.at("first", rows).astype(np.int64),
            "row": rows.astype(np.int64),
            "begin_ns": trace.at("time_ns", rows).astype(np.int64),
        }
    ).sort("row")
    picked = (
        state_intervals(trace)
        .filter((pl.col("state") == "runnable") & pl.col("end_row").is_not_null())
        .select(
            pl.col("pid").cast(pl.Int64),
            pl.col("end_row").cast(pl.Int64).alias("picked"),
            pl.col("begin_ns").cast(pl.Int64).alias("runnable_ns"),
            pl.col("end_ns").cast(pl.Int64),
        )
        .sort("picked")
    )
    again = pl.col("begin_ns").shift(-1).over("pid")
    return (
        queued.with_columns(again=again)
        .join_asof(
            picked,
            left_on="row",
            right_on="picked",
            by="pid",
            strategy="forward",
            check_sortedness=False,
        )
        .drop_nulls("end_ns")
        .with_columns(
            # it may have continued to run at first
            begin_ns=pl.max_horizontal("begin_ns", "runnable_ns"),
            end_ns=pl.min_horizontal("again", "end_ns"),
        )
    )


def _violation_on_cpu(
    trace: Trace, waits: pl.DataFrame, cpu: int, most_ns: int, still: Sequence[Span]
) -> tuple[int, int, int, int] | None:
    """Returns the first violation on a CPU: time, duration, CPU and waiting PID."""
    idle = cpu_intervals(trace).filter((pl.col("cpu") == cpu) & (pl.col("pid") == 0))
    cpu_waits = waits.filter(pl.col("cpu") == cpu)
    if not len(idle) or not len(cpu_waits):
        return None
    begins, ends = idle["begin_ns"].to_numpy(), idle["end_ns"].to_numpy()
    first, last, pids = (cpu_waits[name].to_numpy() for name in ("begin_ns", "end_ns", "pid"))
    preceding = np.searchsorted(begins, first, "right") - 1
    breaches = []
    for at in (
        preceding.clip(0),
        (preceding + 1).clip(0, len(begins) - 1),
    ):  # the wait overlaps this idle interval or the next
        since = np.maximum(begins[at], first)
        for index in np.flatnonzero(np.minimum(ends[at], last) - since > most_ns).tolist():
            begin, end = int(since[index]), int(min(ends[at][index], last[index]))
            length = end - begin - sum(max(0, min(end, b) - max(begin, a)) for a, b in still)
            if length > most_ns:
                breaches.append((begin, length, cpu, int(pids[index])))
    return min(breaches, default=None)

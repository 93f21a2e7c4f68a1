# SPDX-License-Identifier: MIT
"""What each process did from when to when: the tables from which metrics and pictures are made."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from schedlab.metrics.columns import named, nullable
from schedlab.metrics.lives import Lives, lives
from schedlab.trace import BlockReason, Kind, PreemptReason, ProcessState, Step, Trace
from schedlab.trace.model import Integers

_STATE_NAMES = {
    int(ProcessState.RUNNABLE): "runnable",
    int(ProcessState.RUNNING): "running",
    int(ProcessState.BLOCKED): "blocked",
}
_PICKED, _FORKED, _WOKEN, _YIELDED, _FOUND, _PREEMPTED, _BLOCKED = 0, 1, 2, 3, 4, 10, 20
_CAUSE_NAMES = {
    _PICKED: "picked",
    _FORKED: "forked",
    _WOKEN: "woken",
    _YIELDED: "yielded",
    _FOUND: "found",
    _PREEMPTED: "preempted",
    **{_PREEMPTED + reason: f"preempted: {reason.name.lower()}" for reason in PreemptReason},
    _BLOCKED: "blocked",
    **{_BLOCKED + reason: f"blocked: {reason.name.lower()}" for reason in BlockReason if reason},
}


def state_intervals(trace: Trace, who: Lives | None = None) -> pl.DataFrame:
    """What each process did, from its fork, or where it was found, to its end; by life, then time.

    Columns: life (a number for each), pid, state (runnable, running, blocked),
    cause (why: forked, woken, picked, "preempted: slice", "blocked: disk" …),
    cpu (whose record says so; where it ran, if it ran), by (PID of the process that
    forked or woke it; 0: an interrupt; null: none), begin_ns, end_ns, begin_row, end_row
    (of `trace.events`; end_row is null if it lasted until the trace ends).
    """
    steps = (who or lives(trace)).steps
    changes = np.flatnonzero(steps.step != Step.ENDED)
    life, row = steps.life[changes], steps.row[changes]
    continues = np.append(life[1:] == life[:-1], False) if len(life) else np.empty(0, bool)
    end_row = np.where(continues, np.roll(row, -1), -1)
    known = np.isin(steps.after[changes], list(_STATE_NAMES))
    changes, row, end_row = changes[known], row[known], end_row[known]
    pid, step, state = steps.pid[changes], steps.step[changes], steps.after[changes]

    time, cpu = trace.column("time_ns"), trace.column("cpu")[row]
    open_end = np.where(state == ProcessState.RUNNING, cpu_end_times(trace)[cpu], trace.end_ns)
    end = np.where(end_row >= 0, time[end_row], open_end) if len(row) else row
    by = trace.column("first")[row].astype(np.int64)
    forked = step == Step.BORN
    by[forked] = trace.column("process")[row[forked]]
    return pl.DataFrame(
        {
            "life": life[known],
            "pid": pid,
            "state": named(state, _STATE_NAMES),
            "cause": named(_causes(trace, pid, row, step, state), _CAUSE_NAMES),
            "cpu": cpu,
            "by": nullable(by, ~np.isin(step, (Step.BORN, Step.WOKEN))),
            "begin_ns": time[row],
            # Two CPUs' clocks may differ a little: nothing takes less than no time.
            "end_ns": np.maximum(end, time[row]),
            "begin_row": row,
            "end_row": nullable(end_row, end_row < 0),
        }
    )


def cpu_intervals(trace: Trace) -> pl.DataFrame:
    """Which process had each CPU, from its first record to its last; sorted by CPU, then time.

    Columns: cpu, pid (0: idle), begin_ns, end_ns, begin_row, end_row (as above).
    """
    kind = trace.column("kind")
    rows = np.union1d(trace.rows(Kind.START, Kind.SWITCH), _found_running(trace))
    rows = rows[np.argsort(trace.column("cpu")[rows], kind="stable")]
    cpu, time = trace.column("cpu")[rows], trace.column("time_ns")
    continues = np.append(cpu[1:] == cpu[:-1], False) if len(rows) else np.empty(0, bool)
    end_row = np.where(continues, np.roll(rows, -1), -1)
    end = np.where(end_row >= 0, time[end_row], cpu_end_times(trace)[cpu]) if len(rows) else rows
    return pl.DataFrame(
        {
            "cpu": cpu,
            "pid": np.where(kind[rows] == Kind.START, 0, trace.column("process")[rows]),
            "begin_ns": time[rows],
            "end_ns": end,
            "begin_row": rows,
            "end_row": nullable(end_row, end_row < 0),
        }
    )


def _found_running(trace: Trace) -> Integers:
    """Rows that say which process ran on a CPU when the trace began."""
    rows = trace.rows(Kind.FOUND)
    running: Integers = rows[trace.column("first")[rows] == ProcessState.RUNNING]
    return running


def scheduler_intervals(trace: Trace) -> pl.DataFrame:
    """Each CPU's way through the scheduler, and its idling; sorted by CPU, then time.

    Columns: cpu, what ("scheduler": from SCHEDULER_ENTER to SCHEDULER_EXIT; "idle":
    from where the idle loop was entered to where it was left), begin_ns, end_ns,
    cycles (of the scheduler; null for idle, when the counter may stand still),
    begin_row, end_row (as above).
    """
    kind = trace.column("kind")
    rows = np.union1d(
        trace.rows(Kind.START, Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT), _found_running(trace)
    )
    rows = rows[np.argsort(trace.column("cpu")[rows], kind="stable")]
    cpu, time = trace.column("cpu")[rows], trace.column("time_ns")
    cycles = trace.column("second")[rows].astype(np.int64)
    continues = np.append(cpu[1:] == cpu[:-1], False) if len(rows) else np.empty(0, bool)
    end_row = np.where(continues, np.roll(rows, -1), -1)
    end = np.where(end_row >= 0, time[end_row], cpu_end_times(trace)[cpu]) if len(rows) else rows
    enters = kind[rows] == Kind.SCHEDULER_ENTER
    idles = ~enters & (trace.column("process")[rows] == 0)
    spent = np.roll(cycles, -1) - cycles
    return pl.DataFrame(
        {
            "cpu": cpu,
            "what": named(enters.astype(np.int8), {0: "idle", 1: "scheduler"}),
            "begin_ns": time[rows],
            "end_ns": end,
            "cycles": nullable(spent, ~(enters & continues)),
            "begin_row": rows,
            "end_row": nullable(end_row, end_row < 0),
        }
    ).filter(pl.Series(enters | idles))


def cpu_end_times(trace: Trace) -> Integers:
    """The time of each CPU's last record; 0 for one that has none."""
    last = np.zeros(trace.header.cpus, np.int64)
    last[trace.column("cpu")] = trace.column("time_ns")
    return last


def _causes(
    trace: Trace,
    pid: Integers,
    row: Integers,
    step: npt.NDArray[np.int8],
    state: npt.NDArray[np.int8],
) -> Integers:
    cause = np.select(
        [step == Step.BORN, step == Step.WOKEN, step == Step.IN, step == Step.FOUND],
        [_FORKED, _WOKEN, _PICKED, _FOUND],
        np.where(state == ProcessState.BLOCKED, _BLOCKED, _PREEMPTED),
    )
    left = np.flatnonzero(step == Step.OUT)
    said, reason = _last_said(trace, pid[left], row[left])
    blocked = state[left] == ProcessState.BLOCKED
    detail = np.where(reason <= max(BlockReason), reason, 0)
    cause[left] += np.where(blocked == (said == Kind.BLOCK), detail, 0)
    cause[left[~blocked & (said == Kind.YIELD)]] = _YIELDED
    return cause


def _last_said(trace: Trace, pid: Integers, row: Integers) -> tuple[Integers, Integers]:
    """Kind and `first` of each process's last BLOCK, YIELD or PREEMPT before a row; 0: none."""
    kind = trace.column("kind")
    rows = trace.rows(Kind.BLOCK, Kind.YIELD, Kind.PREEMPT)
    if len(rows) == 0:
        return np.zeros_like(pid), np.zeros_like(pid)
    of = trace.column("process")[rows].astype(np.int64)
    order = np.argsort((of << 32) | rows)
    rows, of = rows[order], of[order]
    at = np.searchsorted((of << 32) | rows, (pid << 32) | row) - 1
    found = (at >= 0) & (of[at] == pid)
    return np.where(found, kind[rows[at]], 0), np.where(found, trace.column("first")[rows[at]], 0)

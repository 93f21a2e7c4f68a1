# SPDX-License-Identifier: MIT
"""Computes intervals: the states of each process, and what each CPU did."""

import numpy as np
import numpy.typing as npt
import polars as pl

from schedlab.metrics.columns import named, nullable
from schedlab.metrics.lives import Lives, lives
from schedlab.metrics.window import Window
from schedlab.trace import BlockReason, Kind, PreemptReason, ProcessState, Step, Trace
from schedlab.trace.cpu_records import CpuRecords, CpuSorter, Mask, equals_next
from schedlab.trace.format import is_kind
from schedlab.trace.model import Integers
from schedlab.trace.steps import Steps

_STATE_NAMES = {
    int(ProcessState.RUNNABLE): "runnable",
    int(ProcessState.RUNNING): "running",
    int(ProcessState.BLOCKED): "blocked",
}
_IS_NAMED = np.zeros(128, bool)
_IS_NAMED[list(_STATE_NAMES)] = True
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


def state_intervals(trace: Trace, life_table: Lives | None = None) -> pl.DataFrame:
    """Returns the intervals during which each process stayed in one state, sorted by life and time.

    Columns: life (index in schedlab.metrics.lives), pid, state (runnable, running, blocked), cause
    (forked, woken, picked, "preempted: slice", "blocked: disk" …), cpu (where the process ran, or
    the CPU of the record), by (PID of the process that forked or woke it; 0: an interrupt; null:
    none), begin_ns, end_ns, begin_row, end_row (in `trace.events`; null if the interval lasts until
    the trace ends).
    """
    steps, goes_on = state_changes((life_table or lives(trace)).steps)
    next_row = np.where(goes_on, np.roll(steps.row, -1), -1)
    next_ns = np.roll(steps.time, -1)
    # A state whose end is unknown gets no duration.
    unseen = goes_on & np.roll(is_kind(steps.step, Step.UNSEEN), -1) & (next_ns == steps.time)
    named_steps = np.flatnonzero(_IS_NAMED[steps.after] & ~unseen)
    steps, end_row, next_ns = steps.of(named_steps), next_row[named_steps], next_ns[named_steps]
    pid, row, step, state = steps.pid, steps.row, steps.step, steps.after

    runs = state == ProcessState.RUNNING
    open_end = np.where(runs, cpu_end_times(trace)[steps.cpu], trace.end_ns)
    end = np.where(end_row >= 0, next_ns, open_end)
    causing_pid = trace.column("first")[row].astype(np.int64)
    forked = step == Step.BORN
    causing_pid[forked] = trace.column("process")[row[forked]]
    return pl.DataFrame(
        {
            "life": steps.life,
            "pid": pid,
            "state": named(state, _STATE_NAMES),
            "cause": named(_causes(trace, pid, row, step, state), _CAUSE_NAMES),
            "cpu": steps.cpu,
            "by": nullable(causing_pid, ~np.isin(step, (Step.BORN, Step.WOKEN))),
            "begin_ns": steps.time,
            # The clocks of two CPUs may differ slightly; an interval is never negative.
            "end_ns": np.maximum(end, steps.time),
            "begin_row": row,
            "end_row": nullable(end_row, end_row < 0),
        }
    )


def state_changes(steps: Steps) -> tuple[Steps, Mask]:
    """Returns the steps that change a process's state.

    The mask is true for a state that lasts until the next of these steps, and false for a state
    that lasts until the trace ends.
    """
    ended = is_kind(steps.step, Step.ENDED)
    changing = steps.of(np.flatnonzero(~ended)) if ended.any() else steps
    return changing, equals_next(changing.life)


def wakeup_latencies(states: pl.DataFrame, window: Window) -> pl.DataFrame:
    """Returns each wake-up in the window that led to a run in the window: life, begin_ns, end_ns, latency_ns."""
    woken = states.filter((pl.col("cause") == "woken") & pl.col("end_row").is_not_null())
    begin_row, end_row = (woken[name].to_numpy() for name in ("begin_row", "end_row"))
    return woken.filter(window.holds(begin_row) & window.holds(end_row)).select(
        "life", "begin_ns", "end_ns", latency_ns=pl.col("end_ns") - pl.col("begin_ns")
    )


def cpu_intervals(trace: Trace) -> pl.DataFrame:
    """Returns which process each CPU ran, from its first record to its last, sorted by CPU and
    time.

    Columns: cpu, pid (0: idle), begin_ns, end_ns, begin_row, end_row (as in state_intervals). Omits
    times of unknown activity.
    """
    cpu_records = _records_by_cpu(trace)
    intervals = pl.DataFrame(
        {"pid": cpu_records.entered, **_spans(cpu_records, cpu_records.entries)}
    )
    return intervals.filter(pl.Series(~cpu_records.unseen)).select(
        "cpu", "pid", "begin_ns", "end_ns", "begin_row", "end_row"
    )


def scheduler_intervals(trace: Trace) -> pl.DataFrame:
    """Returns when each CPU was in the scheduler or in the idle loop, sorted by CPU and time.

    Columns: cpu, what ("scheduler": from SCHEDULER_ENTER to SCHEDULER_EXIT; "idle": the idle loop),
    begin_ns, end_ns, cycles (of the scheduler; null for idle, because the counter may stop),
    begin_row, end_row (as in state_intervals).
    """
    cpu_records = _records_by_cpu(trace)
    at = cpu_records.visits
    end = cpu_records.following(at)
    cycles = cpu_records.columns.second.view(np.int64)
    enters = is_kind(cpu_records.columns.kind[at], Kind.SCHEDULER_ENTER)
    idles = ~enters & (cpu_records.columns.process[at] == 0)
    return (
        pl.DataFrame(
            {
                **_spans(cpu_records, at),
                "what": named(enters.astype(np.int8), {0: "idle", 1: "scheduler"}),
                "cycles": nullable(cycles[end] - cycles[at], ~(enters & (end >= 0))),
            }
        )
        .select("cpu", "what", "begin_ns", "end_ns", "cycles", "begin_row", "end_row")
        .filter(pl.Series(enters | idles))
    )


def _records_by_cpu(trace: Trace) -> CpuRecords:
    return CpuSorter(trace.header.cpus).take(0, trace.piece(0, len(trace)))


def _spans(cpu_records: CpuRecords, at: Integers) -> dict[str, pl.Series | npt.NDArray[np.integer]]:
    """Returns columns of the intervals that begin at these records.

    Each lasts until the next one on its CPU, or until the CPU's last record.
    """
    end = cpu_records.following(at)
    last = np.append(cpu_records.begins[1:], len(cpu_records.row)) - 1
    last_of = last[np.searchsorted(cpu_records.begins, at, side="right") - 1]
    end_row = np.where(end >= 0, cpu_records.row[end], -1) if len(at) else at
    return {
        "cpu": cpu_records.columns.cpu[at],
        "begin_ns": cpu_records.columns.time[at],
        "end_ns": cpu_records.columns.time[np.where(end >= 0, end, last_of)],
        "begin_row": cpu_records.row[at],
        "end_row": nullable(end_row, end_row < 0),
    }


def cpu_end_times(trace: Trace) -> Integers:
    """Returns the time of each CPU's last record, or 0 if there is none."""
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
    """Returns the cause of each state: _PICKED, _FORKED and so on."""
    cause = np.select(
        [step == Step.BORN, step == Step.WOKEN, step == Step.IN, step == Step.FOUND],
        [_FORKED, _WOKEN, _PICKED, _FOUND],
        np.where(state == ProcessState.BLOCKED, _BLOCKED, _PREEMPTED),
    )
    leaving = np.flatnonzero(step == Step.OUT)
    annotations, reasons = _last_annotation(trace, pid[leaving], row[leaving])
    blocked = state[leaving] == ProcessState.BLOCKED
    detail = np.where(reasons <= max(BlockReason), reasons, 0)
    cause[leaving] += np.where(blocked == (annotations == Kind.BLOCK), detail, 0)
    cause[leaving[~blocked & (annotations == Kind.YIELD)]] = _YIELDED
    return cause


def _last_annotation(trace: Trace, pid: Integers, row: Integers) -> tuple[Integers, Integers]:
    """Returns kind and reason of each process's last BLOCK, YIELD or PREEMPT before a row; 0 without one."""
    kind = trace.column("kind")
    rows = trace.rows(Kind.BLOCK, Kind.YIELD, Kind.PREEMPT)
    if len(rows) == 0:
        return np.zeros_like(pid), np.zeros_like(pid)
    annotated_pid = trace.column("process")[rows].astype(np.int64)
    order = np.argsort((annotated_pid << 32) | rows)
    rows, annotated_pid = rows[order], annotated_pid[order]
    candidates = np.searchsorted((annotated_pid << 32) | rows, (pid << 32) | row) - 1
    matches = (candidates >= 0) & (annotated_pid[candidates] == pid)
    return np.where(matches, kind[rows[candidates]], 0), np.where(
        matches, trace.column("first")[rows[candidates]], 0
    )

# SPDX-License-Identifier: MIT
"""Sums up each CPU's time, scheduler passes and switches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from schedlab.metrics.accounts import add
from schedlab.metrics.columns import nullable, quotients
from schedlab.metrics.window import Windows
from schedlab.trace import Kind, TraceFacts
from schedlab.trace.cpu_records import CpuRecords, Mask
from schedlab.trace.format import is_kind
from schedlab.trace.joined import RunFacts
from schedlab.trace.model import Columns, Integers
from schedlab.trace.parts import TracePart

SECOND_NS = 1_000_000_000
_SUM_COLUMNS = {
    "running_ns": pl.Int64,
    "idle_ns": pl.Int64,
    "scheduler_entries": pl.UInt32,
    "scheduler_cycles": pl.Int64,
    "idle_loop_ns": pl.Int64,
    "context_switches": pl.UInt32,
    "switches_to_idle": pl.UInt32,
    "switches_from_idle": pl.UInt32,
}


class Spans(NamedTuple):
    """Intervals on CPUs, given by the records where they begin; each lasts until the next on its
    CPU.

    All arrays have the same length, sorted by CPU and row, except `ends` and `cpu`.
    """

    at: Integers
    row: Integers
    time: Integers
    closed: Mask
    """True if the interval ends in the same part of the trace."""
    ends: Integers
    """Index of the last interval of each CPU that has one."""
    cpu: npt.NDArray[np.uint16]
    """The CPUs of `ends`."""

    @classmethod
    def of(cls, cpu_records: CpuRecords, at: Integers) -> Spans:
        """Returns the intervals that begin at the records with these indices."""
        row = cpu_records.row[at]
        ends = cpu_records.last_of_cpus(at)
        closed = np.zeros(len(at), bool)
        np.greater_equal(row[1:], cpu_records.begin, out=closed[:-1])
        closed[ends] = False
        return cls(
            at, row, cpu_records.columns.time[at], closed, ends, cpu_records.columns.cpu[at[ends]]
        )


class CpuAccounts:
    """Sums for all CPUs, added up part by part of a trace."""

    def __init__(self, trace: TraceFacts, runs: RunFacts, windows: Windows) -> None:
        self._trace = trace
        self._runs = runs
        self._windows = windows
        self._sums = {name: np.zeros(trace.header.cpus, np.int64) for name in _SUM_COLUMNS}
        self.unknown_ns = 0
        """Time with unknown activity, summed over all CPUs."""

    def take(self, part: TracePart) -> None:
        """Adds the sums of the next part of the trace."""
        self._add(part.cpu_records)
        self._count_switches(part.columns, part.begin)

    def end(self, rest: CpuRecords) -> Integers:
        """Adds the intervals that last until the trace ends.

        `rest`: the records where they begin. Returns the time of each CPU's last record, or 0
        without one.
        """
        last = np.zeros(self._trace.header.cpus, np.int64)
        last[rest.columns.cpu] = rest.columns.time
        for at, add_up in ((rest.entries, self._add_runs), (rest.visits, self._add_idling)):
            spans = Spans.of(rest, at)
            spent = np.zeros_like(spans.time)
            spent[spans.ends] = self._windows.of_cpus(
                spans.cpu, spans.time[spans.ends], last[spans.cpu]
            )
            add_up(rest, spans, spent)
        return last

    def table(self) -> pl.DataFrame:
        """Returns one row per CPU, with its run."""
        sums = {
            name: pl.Series(self._sums[name], dtype=type_) for name, type_ in _SUM_COLUMNS.items()
        }
        cpu = np.arange(self._trace.header.cpus, dtype=np.uint16)
        run = self._runs.of_cpus(cpu)
        overhead = dict(zip(_OVERHEAD_COLUMNS, self._overhead(run), strict=True))
        return pl.DataFrame({"run": run, "cpu": cpu % self._runs.cpus, **sums, **overhead})

    def _add(self, cpu_records: CpuRecords) -> None:
        """Adds the spans that end in the part."""
        cpu = cpu_records.columns.cpu
        runs = Spans.of(cpu_records, cpu_records.entries)
        self._add_runs(cpu_records, runs, self._spent(runs, cpu))
        visits = Spans.of(cpu_records, cpu_records.visits)
        self._add_idling(cpu_records, visits, self._spent(visits, cpu))
        self._add_visits(cpu_records, visits)

    def _spent(self, spans: Spans, cpu: npt.NDArray[np.uint16]) -> Integers:
        """Returns how much of each interval is in the window (ns); 0 for intervals that are still open.

        `cpu`: the CPU of each record.
        """
        spent = np.zeros_like(spans.time)
        spent[:-1] = self._windows.of_cpus(cpu[spans.at[:-1]], spans.time[:-1], spans.time[1:])
        spent *= spans.closed
        return spent

    def _add_runs(self, cpu_records: CpuRecords, spans: Spans, spent: Integers) -> None:
        """Adds running, idle and unknown time, depending on the process that each interval belongs to."""
        is_idle = cpu_records.entered == 0
        add(self._sums["running_ns"], spans.cpu, spans.ends, spent * ~is_idle)
        add(self._sums["idle_ns"], spans.cpu, spans.ends, spent * (is_idle & ~cpu_records.unseen))
        self.unknown_ns += int((spent * cpu_records.unseen).sum())

    def _add_idling(self, cpu_records: CpuRecords, spans: Spans, spent: Integers) -> None:
        """Adds the time of the idle loop outside the scheduler."""
        is_idle = cpu_records.columns.process[spans.at] == 0
        is_idle &= ~is_kind(cpu_records.columns.kind[spans.at], Kind.SCHEDULER_ENTER)
        add(self._sums["idle_loop_ns"], spans.cpu, spans.ends, spent * is_idle)

    def _add_visits(self, cpu_records: CpuRecords, spans: Spans) -> None:
        """Adds the passes through the scheduler that lie completely in the window."""
        in_window = self._windows.holds(spans.row)
        passes = (
            spans.closed
            & in_window
            & is_kind(cpu_records.columns.kind[spans.at], Kind.SCHEDULER_ENTER)
        )
        passes[:-1] &= in_window[1:]
        counter = cpu_records.columns.second.view(np.int64)[spans.at]
        cycles = np.zeros_like(counter)
        np.subtract(counter[1:], counter[:-1], out=cycles[:-1])
        cycles *= passes
        add(self._sums["scheduler_entries"], spans.cpu, spans.ends, passes.astype(np.int64))
        add(self._sums["scheduler_cycles"], spans.cpu, spans.ends, cycles)

    def _count_switches(self, columns: Columns, begin: int) -> None:
        rows = np.flatnonzero(is_kind(columns.kind, Kind.SWITCH))
        rows = rows[self._windows.part(rows + begin)]
        cpu, next_pid, previous_pid = columns.cpu[rows], columns.process[rows], columns.first[rows]
        for name, is_counted in (
            ("context_switches", (next_pid != 0) & (previous_pid != 0)),
            ("switches_to_idle", next_pid == 0),
            ("switches_from_idle", previous_pid == 0),
        ):
            sums = self._sums[name]
            sums += np.bincount(cpu[is_counted], minlength=len(sums))

    def _overhead(self, run: Integers) -> tuple[pl.Series, pl.Series]:
        elapsed_ns = self._windows.elapsed_ns[run]
        cycles = elapsed_cycles(self._runs, elapsed_ns)
        unknown = elapsed_ns <= 0
        if not self._trace.has(Kind.SCHEDULER_EXIT):
            unknown = np.ones(len(run), bool)
        rows = np.full(len(run), self._runs.cpus)
        scheduler = quotients(self._sums["scheduler_cycles"], cycles, rows)
        with_idle = scheduler + quotients(self._sums["idle_loop_ns"], elapsed_ns, rows)
        return nullable(scheduler, unknown, pl.Float64), nullable(with_idle, unknown, pl.Float64)


_OVERHEAD_COLUMNS = ("overhead_share", "overhead_with_idle_share")


def elapsed_cycles(runs: RunFacts, elapsed_ns: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
    """Returns the cycles of one CPU in windows of these lengths.

    They are computed from the time, because the cycle counter may stop while a CPU is idle.
    """
    return elapsed_ns.astype(np.float64) * (runs.cycles_per_second / SECOND_NS)

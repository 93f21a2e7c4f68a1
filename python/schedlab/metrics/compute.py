# SPDX-License-Identifier: MIT
"""Computes the metrics of one run, or of many runs together; docs/metrics.md defines each."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from schedlab.metrics.accounts import LONGEST_WAIT, Accounts
from schedlab.metrics.columns import nullable, quotients
from schedlab.metrics.cpus import SECOND_NS, CpuAccounts, elapsed_cycles
from schedlab.metrics.fairness import jain_index
from schedlab.metrics.jobs import jobs_of
from schedlab.metrics.model import MeasuredRuns, Metrics
from schedlab.metrics.processes import alive_processes, called_of_runs
from schedlab.metrics.registry import values_by, values_by_run, values_of
from schedlab.metrics.reported import (
    late_arrivals_note,
    printed_values_of,
    remarks,
    unknown_activity_note,
)
from schedlab.metrics.shares import Shares, Weights, attributes_set, shares_of
from schedlab.metrics.unknown import (
    NEED_WAKEUPS,
    SHARES,
    UNKNOWN_PART,
    drop_unknown,
    wakeups_unknown,
    without_unknown,
)
from schedlab.metrics.window import (
    Window,
    Windows,
    measured_window,
    measured_windows,
    window_since,
)
from schedlab.trace import Kind, Trace, TraceFacts, open_outlined
from schedlab.trace.joined import JoinedTrace, RunFacts, facts_of_run
from schedlab.trace.model import Integers
from schedlab.trace.parts import TracePart, TraceParts
from schedlab.trace.validation import Checks

WINDOW = "window"
"""Name that a workload uses to report the planned length (ns) of the measured window.

See workload_window() in workloads/api/workload.h.
"""
_WINDOW_ERROR_MAX = 0.05
"""Largest accepted deviation of the window's length from the planned length, as a fraction of it."""


class NoResult(ValueError):
    """The measured window differs from the planned one."""


def _check_windows(values: pl.DataFrame, elapsed_ns: Integers) -> None:
    """Raises NoResult if a window's length differs from the length that the workload announced."""
    if WINDOW not in values["name"]:
        return
    announced = values.filter(pl.col("name") == WINDOW).unique("run", keep="first")
    for run, planned in announced.select("run", "value").iter_rows():
        lasted = int(elapsed_ns[run])
        if abs(lasted - planned) > _WINDOW_ERROR_MAX * planned:
            raise NoResult(
                f"the measured window lasted {lasted / 1e6:g} ms instead of {planned / 1e6:g} ms"
            )


def compute(trace: Trace, weights: Weights | None = None, since_ns: int = 0) -> Metrics:
    """Computes all metrics of a valid trace over its measured window, or the part from `since_ns`
    on.

    `weights`: the attribute that determines ideal shares. None: the attribute that the policy shares
    by, according to the trace. If there is none: weights if a process set one, or else tickets,
    or else equal shares.
    """
    window = window_since(measured_window(trace), trace, since_ns)
    trace_parts = TraceParts(trace)
    runs = facts_of_run(trace)
    books = _RunAccounts(trace, Windows([window], runs))
    for part in trace_parts:
        books.take(part)
    return _metrics_of_run(trace, window, books, books.close(trace_parts, weights))


def measure(path: str | Path) -> Metrics:
    """Validates a trace file and computes its metrics, with only a part of the records in memory.

    Raises the errors of `read`, `validate` and `compute`; and NoResult if the window's length
    differs from the length that the workload planned.
    """
    records, facts = open_outlined(path)
    trace_parts = TraceParts(records)
    window = measured_window(facts)
    windows = Windows([window], facts_of_run(facts))
    checks, books = Checks(records, facts), _RunAccounts(facts, windows)
    for part in trace_parts:
        checks.take(part)
        if checks.good:
            books.take(part)
    checks.end()
    measured = books.close(trace_parts)
    _check_windows(measured.values, windows.elapsed_ns)
    return _metrics_of_run(facts, window, books, measured)


def measure_joined(trace: JoinedTrace) -> MeasuredRuns:
    """Validates joined traces and computes the metrics of their runs.

    Raises the same errors as `measure`, if any of the traces is invalid.
    """
    facts = trace.outline
    windows = measured_windows(facts, trace.runs)
    trace_parts = TraceParts(trace)
    checks, books = Checks(trace, facts, only_together=True), _RunAccounts(facts, windows)
    for part in trace_parts:
        checks.take(part)
        if checks.good:
            books.take(part)
    checks.end()
    measured = books.close(trace_parts)
    _check_windows(measured.values, windows.elapsed_ns)
    return measured


class _RunAccounts:
    """All sums that metrics are computed from, while a trace is read part by part."""

    def __init__(self, trace: TraceFacts, windows: Windows) -> None:
        self._trace = trace
        self._windows = windows
        self._lives = Accounts(trace, windows.runs, windows)
        self._cpus = CpuAccounts(trace, windows.runs, windows)
        self.unknown_ns = np.empty(0, np.int64)
        """Time of each of the workload's processes whose activity is unknown."""

    @property
    def unknown_cpu_ns(self) -> int:
        """Time with unknown activity, summed over all CPUs."""
        return self._cpus.unknown_ns

    def take(self, part: TracePart) -> None:
        self._lives.take(part)
        self._cpus.take(part)

    def close(self, trace_parts: TraceParts, weights: Weights | None = None) -> MeasuredRuns:
        """Returns the tables after all parts were added."""
        trace, windows = self._trace, self._windows
        runs = windows.runs
        self._lives.end(trace_parts.by_process.rest(), self._cpus.end(trace_parts.by_cpu.rest()))
        who, sums, latencies = self._lives.results()
        called = called_of_runs(trace, runs, who, windows)
        alive = alive_processes(trace, runs, who, windows, called)
        sums = {name: values[alive.life] for name, values in sums.items()}
        workload_life = alive.life[alive.workload]
        workload_sums = {name: values[alive.workload] for name, values in sums.items()}
        self.unknown_ns = workload_sums["unknown_ns"]
        ended = alive.ended[alive.workload]
        shares = shares_of(trace, who, windows, weights, workload_life, workload_sums, ended)
        jobs = jobs_of(trace, who, windows)
        processes = alive.table.hstack(
            [
                *(pl.Series(name, values) for name, values in sums.items()),
                *values_by(latencies, "wakeups", "life", alive.life).get_columns(),
                *values_by(jobs, "jobs", "life", alive.life).get_columns(),
                *shares.columns(alive.workload, len(alive.life)),
            ]
        )
        if sums["unknown_ns"].any():
            processes = without_unknown(processes)
        processes = pl.DataFrame(
            [column for column in processes if column.name not in ("life", "unknown_ns")]
        )
        workload = processes[alive.workload]
        group_of_life = _group_numbers(workload, workload_life, len(who))
        run_of_life = runs.of_pids(who.pid)
        waits, jobs = (
            _with_groups(table, group_of_life, run_of_life) for table in (latencies, jobs)
        )
        cpus = self._cpus.table()
        running = {
            role: alive.sum_of(sums["running_ns"], role, len(runs)) for role in ("root", "other")
        }
        return MeasuredRuns(
            summary=summary_of(trace, windows, workload, running, cpus, waits, jobs, shares),
            processes=processes,
            groups=groups_of(windows, workload, waits, jobs),
            cpus=cpus,
            values=printed_values_of(trace, runs, who, called["group"].to_list()),
        )


def _metrics_of_run(
    trace: TraceFacts, window: Window, books: _RunAccounts, measured: MeasuredRuns
) -> Metrics:
    """Returns the metrics of a trace that was measured alone."""
    values = measured.values.drop("run")
    late = late_arrivals_note(values, window, trace.header.tick_ns)
    unknown = unknown_activity_note(trace, window, books.unknown_ns, books.unknown_cpu_ns)
    result = Metrics(
        summary=measured.summary,
        processes=measured.processes.drop("run"),
        groups=measured.groups.drop("run"),
        cpus=measured.cpus.drop("run"),
        values=values,
        said=remarks(trace, window).vstack(late).vstack(unknown),
        attributes=attributes_set(trace, window),
    )
    if wakeups_unknown(trace):
        return drop_unknown(result, NEED_WAKEUPS)
    much = books.unknown_cpu_ns > UNKNOWN_PART * trace.header.cpus * window.elapsed_ns
    return drop_unknown(result, SHARES) if much else result


def _group_numbers(workload: pl.DataFrame, lives: Integers, count: int) -> Integers:
    """Returns the number of each life's group, in the order of runs and names; −1 for other lives.

    `lives`: the lives of the rows of `workload`.
    """
    keys = list(zip(workload["run"].to_list(), workload["group"].to_list(), strict=True))
    number_by_key = {key: place for place, key in enumerate(sorted(set(keys)))}
    numbers = np.full(count, -1)
    numbers[lives] = [number_by_key[key] for key in keys]
    return numbers


def _with_groups(
    items: pl.DataFrame, group_of_life: Integers, run_of_life: Integers
) -> pl.DataFrame:
    """Returns the items of the workload's lives, with the numbers of their groups and runs."""
    life = items["life"].to_numpy()
    group, run = group_of_life[life], run_of_life[life]
    of_workload = np.flatnonzero(group >= 0)
    if len(of_workload) < len(group):
        items, group, run = items[of_workload], group[of_workload], run[of_workload]
    return items.hstack([pl.Series("group", group), pl.Series("run", run)])


_OVERHEAD_WITH_IDLE = "overhead_with_idle_share"


def _completion() -> pl.Expr:
    """Returns the time from the first fork to the last exit.

    Null unless all processes were forked in the trace and have ended.
    """
    fork, end = pl.col("fork_ns"), pl.col("exit_ns")
    return (
        pl.when(end.is_not_null().all() & fork.is_not_null().all())
        .then((end.max() - fork.min()).clip(0))
        .alias("completion_ns")
    )


def _longest_waiter() -> pl.Expr:
    """Returns the group and PID of the process with the longest uninterrupted wait; null if none waited."""
    waited = pl.col(LONGEST_WAIT)
    index = waited.arg_max()
    name = pl.format("{} ({})", pl.col("group").get(index), pl.col("pid").get(index))
    return pl.when(waited.max() > 0).then(name).alias("longest_wait_of")


def groups_of(
    windows: Windows, workload: pl.DataFrame, waits: pl.DataFrame, jobs: pl.DataFrame
) -> pl.DataFrame:
    """Returns a row of metrics for each run and group, including its share of the CPUs.

    `waits` and `jobs` have the number of their group, in the order of the runs and the groups' names.
    """
    shares = pl.col("share", "ideal_share", "share_error_points")
    # A sum of nulls would be 0, although the share is unknown.
    groups = (
        workload.group_by("run", "group")
        .agg(*values_of("processes"), pl.when(shares.count() > 0).then(shares.sum()))
        .sort("run", "group")
    )
    numbers = np.arange(len(groups))
    run = groups["run"].to_numpy()
    seconds = (windows.elapsed_ns / SECOND_NS)[run]
    throughput = _rate("throughput_per_second", groups, seconds, np.bincount(run)[run])
    return pl.DataFrame(
        [
            *groups.get_columns(),
            *values_by(waits, "wakeups", "group", numbers).get_columns(),
            *values_by(jobs, "jobs", "group", numbers).get_columns(),
            throughput,
        ]
    )


_RUN_COLUMNS = {
    "policy": pl.String,
    "cpus": pl.Int64,
    "seed": pl.UInt64,
    "tick_ns": pl.Int64,
    "clock_step_ns": pl.Int64,
    "truncated": pl.Boolean,
    "lost_records": pl.Int64,
    "root_pid": pl.Int64,
    "begin_ns": pl.Int64,
    "end_ns": pl.Int64,
    "elapsed_ns": pl.Int64,
    "elapsed_cycles": pl.Float64,
}
"""Columns that describe the run, with explicit types, so that the tables of all runs fit together."""


def _run_facts(trace: TraceFacts, windows: Windows) -> dict[str, Any]:
    runs = windows.runs
    return {
        "policy": _policies(trace, windows),
        "cpus": [header.cpus for header in runs.headers],
        "seed": [header.seed for header in runs.headers],
        "tick_ns": [header.tick_ns for header in runs.headers],
        "clock_step_ns": list(runs.clock_step_ns),
        "truncated": [runs.truncated] * len(runs),
        "lost_records": [runs.lost] * len(runs),
        "root_pid": [
            None if window.root_pid is None else window.root_pid - run * runs.pids
            for run, window in enumerate(windows.windows)
        ],
        "begin_ns": windows.begin_ns,
        "end_ns": windows.end_ns,
        "elapsed_ns": windows.elapsed_ns,
        "elapsed_cycles": elapsed_cycles(runs, windows.elapsed_ns),
    }


def _policies(trace: TraceFacts, windows: Windows) -> list[str]:
    """Returns each run's active policy when its window ends, as `name` or `name:preset`."""
    rows = trace.texts["row"].to_numpy()
    naming = np.flatnonzero(np.isin(rows, trace.rows(Kind.POLICY)))
    last = np.searchsorted(rows[naming], windows.end_row, side="right") - 1
    return [
        str(trace.texts["text"][int(naming[index])])
        if index >= 0 and rows[naming[index]] >= first_row
        else ""
        for index, first_row in zip(last.tolist(), windows.runs.first_row.tolist(), strict=True)
    ]


def summary_of(
    trace: TraceFacts,
    windows: Windows,
    workload: pl.DataFrame,
    running_ns: Mapping[str, Integers],
    cpus: pl.DataFrame,
    waits: pl.DataFrame,
    jobs: pl.DataFrame,
    shares: Shares,
) -> pl.DataFrame:
    """Returns the summary, with a row per run; `running_ns`: the running time of the other roles."""
    runs = windows.runs
    cycles = elapsed_cycles(runs, windows.elapsed_ns)
    all_cycles = pl.Series("all_cycles", (runs.cpus * cycles)[cpus["run"].to_numpy()], pl.Float64)
    ones = np.ones(len(runs), np.int64)
    of_processes = values_by_run(
        workload, len(runs), *values_of("processes"), _completion(), _longest_waiter()
    )
    turnaround = workload["turnaround_ns"].to_numpy()
    is_known = ~np.isnan(turnaround)
    of_runs = runs.slices(workload["run"].to_numpy())
    fairness = {
        "fairness_turnaround": [jain_index(turnaround[of][is_known[of]]) for of in of_runs],
        "fairness_share": [jain_index(shares.relative(of)) for of in of_runs],
    }
    return pl.DataFrame(_run_facts(trace, windows), schema=_RUN_COLUMNS).hstack(
        [
            *of_processes.get_columns(),
            *values_by_run(waits, len(runs), *values_of("wakeups")).get_columns(),
            *values_by_run(jobs, len(runs), *values_of("jobs")).get_columns(),
            *(pl.Series(f"{role}_running_ns", times) for role, times in running_ns.items()),
            *_values_of_cpus(cpus.hstack([all_cycles]), runs).get_columns(),
            *(pl.Series(name, indices, pl.Float64) for name, indices in fairness.items()),
            _rate("throughput_per_second", of_processes, windows.elapsed_ns / SECOND_NS, ones),
            _rate("throughput_per_million_cycles", of_processes, cycles / 1_000_000, ones),
        ]
    )


def _values_of_cpus(cpus: pl.DataFrame, runs: RunFacts) -> pl.DataFrame:
    values = values_by_run(cpus, len(runs), *values_of("cpus"))
    # Polars rounds the mean of a column differently from the mean of a group.
    part = cpus[_OVERHEAD_WITH_IDLE]
    means = [part[first : first + runs.cpus].mean() for first in range(0, len(part), runs.cpus)]
    return values.with_columns(pl.Series(_OVERHEAD_WITH_IDLE, means, pl.Float64))


def _rate(
    name: str, table: pl.DataFrame, per: npt.NDArray[np.float64], rows: Integers
) -> pl.Series:
    """Returns the number of processes that ended, per unit of time; null without time.

    `rows`: the number of rows of each row's run.
    """
    rates = quotients(table["finished"].to_numpy(), per, rows)
    return nullable(rates, per <= 0, pl.Float64, name)

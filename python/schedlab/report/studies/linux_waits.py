# SPDX-License-Identifier: MIT
"""Finds what runs on Linux while a runnable thread of sysbench waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from schedlab.base.display.numbers import NO_VALUE, format_count
from schedlab.metrics import state_intervals
from schedlab.report.model import Cell, Column, Table
from schedlab.report.studies.queries import Queries, traces
from schedlab.report.wording import listed
from schedlab.runs.collection import StoredRun
from schedlab.trace import Trace

_NS_PER_MS = 1e6
_THREAD_KINDS = {
    "[": "threads of the kernel",
    "schedlab": "schedlab's process that reads the trace",
    "sysbench": "the benchmark's other threads",
}
"""Descriptions of threads by the start of their names. Names of kernel threads are in brackets."""


@dataclass(frozen=True)
class ThreadWaits:
    """The waits of the computing thread in the measured window."""

    count: int
    total_ms: float
    longest_ms: float
    running_ms: dict[str, float]
    """The threads that ran during the longest wait: times in ms by name."""

    @property
    def main_kind(self) -> str:
        """The kind of thread that ran most during the longest wait, in words."""
        main = max(self.running_ms, key=self.running_ms.__getitem__)
        return next(
            (words for start, words in _THREAD_KINDS.items() if main.startswith(start)), "others"
        )


def find_thread_waits(run: StoredRun, trace: Trace) -> ThreadWaits:
    """Returns the waits of the workload's thread with the longest running time, from the trace."""
    metrics = run.metrics()
    processes = metrics.processes
    thread = processes.filter(pl.col("role") == "workload").sort("running_ns")["pid"][-1]
    begin, end = (int(metrics.summary[name][0]) for name in ("begin_ns", "end_ns"))
    states = state_intervals(trace).filter(
        (pl.col("begin_ns") >= begin) & (pl.col("begin_ns") <= end)
    )
    waits = states.filter((pl.col("pid") == thread) & (pl.col("state") == "runnable"))
    if waits.is_empty():
        return ThreadWaits(0, 0.0, 0.0, {})
    length = (waits["end_ns"] - waits["begin_ns"]).to_list()
    longest = max(range(len(length)), key=length.__getitem__)
    window = (int(waits["begin_ns"][longest]), int(waits["end_ns"][longest]))
    names = dict(processes.select("pid", "name").iter_rows())
    return ThreadWaits(
        len(length),
        sum(length) / _NS_PER_MS,
        length[longest] / _NS_PER_MS,
        _running_threads(states, names, *window),
    )


def running_threads_text(rows: Sequence[WaitRow]) -> str:
    """Returns in words which threads ran during the longest wait of each run."""
    kinds = Counter(waits.main_kind for _, _, waits in rows if waits.running_ms)
    texts = [f"{kind} ({format_count(number, 'run')})" for kind, number in kinds.most_common()]
    return listed(texts) or "none that is known"


def _running_threads(
    states: pl.DataFrame, names: dict[int, str], begin: int, end: int
) -> dict[str, float]:
    """Returns the threads that ran between `begin` and `end` and their
    times in ms, the longest first.
    """
    overlap = pl.min_horizontal("end_ns", pl.lit(end)) - pl.max_horizontal(
        "begin_ns", pl.lit(begin)
    )
    running = (
        states.filter(
            (pl.col("state") == "running") & (pl.col("begin_ns") < end) & (pl.col("end_ns") > begin)
        )
        .group_by("pid")
        .agg(ms=overlap.sum() / _NS_PER_MS)
        .sort("ms", "pid", descending=[True, False])
    )
    return {names.get(pid, f"thread {pid}"): float(ms) for pid, ms in running.iter_rows()}


WaitRow = tuple[str, int, ThreadWaits]
"""Scheduler, seed, and the waits of its thread."""


def wait_rows(queries: Queries, experiment: str) -> list[WaitRow]:
    """Returns a row for each run with a trace."""
    return [
        (name, run.seed, find_thread_waits(run, trace))
        for name in queries.schedulers
        for run, trace in traces(queries.setup(experiment, name))
    ]


def waits_table(queries: Queries, experiment: str, rows: Sequence[WaitRow]) -> Table:
    """Returns a table with a row for each run."""
    columns = ("waits", "all waits, ms", "longest wait, ms", "ran during the longest wait, ms")
    return Table(
        f"{experiment.replace('s5', 'study-5')}-waits",
        "Causes of the thread's waiting",
        (
            Column("scheduler", align="left"),
            Column("run", align="left"),
            *(Column(name) for name in columns[:-1]),
            Column(columns[-1], align="left"),
        ),
        tuple(
            (
                Cell(name),
                Cell(str(seed)),
                Cell(str(waits.count)),
                Cell(f"{waits.total_ms:.2f}"),
                Cell(f"{waits.longest_ms:.2f}"),
                Cell(_meanwhile_text(waits)),
            )
            for name, seed, waits in rows
        ),
        pl.DataFrame(
            [
                {
                    "scheduler": name,
                    "seed": seed,
                    "waits": waits.count,
                    "whole_ms": waits.total_ms,
                    "longest_ms": waits.longest_ms,
                    "meanwhile": _meanwhile_text(waits),
                }
                for name, seed, waits in rows
            ]
        ),
        f"From the traces. Names in brackets are kernel threads. {queries.how(experiment)}",
    )


def _meanwhile_text(waits: ThreadWaits) -> str:
    """Returns the threads of the longest wait in words. Programs set the names of their threads."""
    texts = [f"{name} {ms:.2f}" for name, ms in waits.running_ms.items() if ms >= 0.005]
    return listed(texts) or NO_VALUE

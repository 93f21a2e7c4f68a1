# SPDX-License-Identifier: MIT
"""The metrics of one run, from its trace; docs/metrics.md defines each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from schedlab.errors import FileRefused
from schedlab.files.kept import read_tables
from schedlab.metrics.columns import nullable
from schedlab.metrics.fairness import jain_index
from schedlab.metrics.ideal import Floats, ideal_shares
from schedlab.metrics.intervals import cpu_intervals, scheduler_intervals, state_intervals
from schedlab.metrics.lives import Lives, attribute, descendants, labels, lives, names
from schedlab.metrics.told import VALUES_SCHEMA, told_values
from schedlab.metrics.window import Window, measured_window
from schedlab.trace import AttributeKind, Kind, Trace
from schedlab.trace.model import EVENTS_SCHEMA, TEXTS_SCHEMA, Header, Integers

Weights = Literal["tickets", "weight", "equal"]

ATTRIBUTE_DEFAULTS = {AttributeKind.TICKETS: 1, AttributeKind.WEIGHT: 5}
"""TICKETS_DEFAULT and WEIGHT_DEFAULT of policies/policy.h."""
_SECOND_NS = 1_000_000_000
_TABLES = ("summary", "processes", "groups", "cpus", "values")


@dataclass(frozen=True, eq=False)
class Metrics:
    """What `compute` found. Each column has its unit in its name; null: there is no such value."""

    summary: pl.DataFrame
    """One row: the workload as a whole, and the machine."""
    processes: pl.DataFrame
    """A row per process that lived in the window; `role`: workload, root or other."""
    groups: pl.DataFrame
    """A row per group of the workload's processes."""
    cpus: pl.DataFrame
    """A row per CPU."""
    values: pl.DataFrame
    """A row per figure that a program told, at any time of the trace: pid, group, time_ns, name,
    value."""

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {
            "summary": self.summary.row(0, named=True),
            "groups": self.groups.to_dicts(),
            "processes": self.processes.to_dicts(),
            "cpus": self.cpus.to_dicts(),
            "values": self.values.to_dicts(),
        }

    def write(self, directory: str | Path) -> None:
        """Writes each table to its NAME.parquet in a directory, which is made if needed."""
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        for name in _TABLES:
            table: pl.DataFrame = getattr(self, name)
            table.write_parquet(directory / f"{name}.parquet")


def load(directory: str | Path) -> Metrics:
    """What `Metrics.write` wrote. Folders of before there were told values have none.

    Raises FileRefused if a table is not whole, or has other columns than it must.
    """
    return Metrics(**{name: _read_table(Path(directory), name) for name in _TABLES})


def _read_table(directory: Path, name: str) -> pl.DataFrame:
    place = directory / f"{name}.parquet"
    if name == "values" and not place.exists():
        return pl.DataFrame(schema=VALUES_SCHEMA)
    table = read_tables([place], schemas()[name])
    if name == "summary" and len(table) != 1:
        raise FileRefused(f"{place}: expected one row, found {len(table)}")
    for column in schemas()[name]:
        if table[column].null_count() and not may_lack(name, column):
            raise FileRefused(f"{place}: {column} is missing: measure anew, with --from-traces")
    return table


_MAY_LACK = re.compile(
    r".*\.((turnaround|response|waiting|wakeup_latency|overhead|fairness|throughput)_.*|.*share.*"
    r"|completion_ns)|summary\.root_pid|processes\.(fork_ns|first_run_ns|exit_ns|status|weight|demand_cpus)"
    r"|values\.name"
)


def may_lack(table: str, column: str) -> bool:
    """True if a row of a table may have no value in a column."""
    return bool(_MAY_LACK.fullmatch(f"{table}.{column}"))


def schemas() -> Mapping[str, pl.Schema]:
    """Columns and types of each table, by its name: those that an empty trace gives, too."""
    return {name: getattr(_of_nothing(), name).schema for name in _TABLES}


@cache
def _of_nothing() -> Metrics:
    """The metrics of an empty trace."""
    nothing = Trace(
        path=Path(),
        header=Header(cpus=1, tick_ns=1, cycles_per_second=1, seed=0),
        events=pl.DataFrame(schema=EVENTS_SCHEMA),
        texts=pl.DataFrame(schema=TEXTS_SCHEMA),
        truncated=False,
        missing=0,
        declared_lost=0,
    )
    return compute(nothing)


def compute(trace: Trace, weights: Weights | None = None) -> Metrics:
    """All metrics of a trace that `validate` found good.

    `weights` names the attribute by which ideal shares are allotted. None: the
    one by which the policy shares, as the trace says; if it shares by none, weight
    if a process had that set, else tickets, likewise; else equal.
    """
    window = measured_window(trace)
    who = lives(trace)
    states = state_intervals(trace, who)
    latencies = wakeup_latencies(states, window)
    called = _called(trace, who)
    processes = _people(trace, who, window, called)
    for table in (_times(states, window), _counts(trace, who, window), _latency_table(latencies)):
        processes = processes.join(table, on="life", how="left", maintain_order="left")
    counted = pl.col("running_ns", "waiting_ns", "blocked_ns", *_COUNTS)
    processes = _with_shares(
        processes.with_columns(counted.fill_null(0)), trace, who, window, weights
    )
    workload = processes.filter(pl.col("role") == "workload")
    waits = latencies.join(workload.select("life", "group"), on="life")
    cpus = _cpus(trace, window)
    return Metrics(
        summary=_summary(trace, window, processes, cpus, waits),
        processes=processes.drop("life"),
        groups=_groups(window, workload, waits),
        cpus=cpus,
        values=told_values(trace, who, called["group"].to_list()),
    )


def wakeup_latencies(states: pl.DataFrame, window: Window) -> pl.DataFrame:
    """Each wake-up in the window that was followed by a run in it: life, latency_ns."""
    return states.filter((pl.col("cause") == "woken") & window.holds()).select(
        "life", latency_ns=pl.col("end_ns") - pl.col("begin_ns")
    )


# --- processes


def _called(trace: Trace, who: Lives) -> pl.DataFrame:
    """The name and the group of each life."""
    pids = who.pid.tolist()
    name = [name or f"process {pid}" for name, pid in zip(names(trace, who), pids, strict=True)]
    group = [label or own for label, own in zip(labels(trace, who), name, strict=True)]
    return pl.DataFrame(
        {"name": name, "group": group}, schema={"name": pl.String, "group": pl.String}
    )


def people(trace: Trace, who: Lives, window: Window) -> pl.DataFrame:
    """The processes that lived in the window, a row for each: their names; when they came, ran and
    ended."""
    return _people(trace, who, window, _called(trace, who))


def _people(trace: Trace, who: Lives, window: Window, called: pl.DataFrame) -> pl.DataFrame:
    """The processes that lived in the window: their names, groups and roles; when they came, ran and
    ended."""
    time = trace.column("time_ns")
    root = _root(who, window)
    role = np.where(descendants(who, root), "workload", "other").astype(object)
    if window.root_pid is None:
        role[_programs(called)] = "workload"
    if root >= 0:
        role[root] = "root"

    def when(row: Integers) -> pl.Series:
        there = (row >= 0) & (row <= window.end_row)
        return nullable(time[row] if len(time) else row, ~there)

    status = pl.Series(trace.column("first")[who.exit_row] if len(time) else who.exit_row)
    people = pl.DataFrame(
        {
            "life": np.arange(len(who)),
            "pid": who.pid,
            "parent": np.where(who.parent >= 0, who.pid[who.parent], 0) if len(who) else who.pid,
            "name": called["name"],
            "group": called["group"],
            "role": pl.Series(role.tolist(), dtype=pl.Enum(["workload", "root", "other"])),
            "fork_ns": when(who.fork_row),
            "first_run_ns": when(who.first_run_row),
            "exit_ns": when(who.exit_row),
            "status": status.cast(pl.UInt32).reinterpret(signed=True),
        }
    )
    # The root's own fork comes before the window, but it does live in it.
    alive = (who.fork_row <= window.end_row) & (
        (who.exit_row < 0) | (who.exit_row >= window.begin_row)
    )
    fork = pl.col("fork_ns")
    return people.filter(pl.Series(alive)).with_columns(
        status=pl.when(pl.col("exit_ns").is_not_null()).then("status"),
        turnaround_ns=(pl.col("exit_ns") - fork).clip(0),
        response_ns=(pl.col("first_run_ns") - fork).clip(0),
    )


def _programs(called: pl.DataFrame) -> npt.NDArray[np.bool_]:
    """The rows that are no threads of the kernel: those have their names in brackets."""
    programs: npt.NDArray[np.bool_] = (~called["name"].str.starts_with("[")).to_numpy()
    return programs


def _root(who: Lives, window: Window) -> int:
    lives_of_root = np.flatnonzero(who.pid == window.root_pid)
    begun = lives_of_root[who.fork_row[lives_of_root] <= window.begin_row]
    return int((begun if len(begun) else lives_of_root[:1])[-1]) if len(lives_of_root) else -1


def _times(states: pl.DataFrame, window: Window) -> pl.DataFrame:
    """Per life, what of the window it was running, waiting and blocked."""
    return (
        states.with_columns(duration=window.duration())
        .group_by("life")
        .agg(
            pl.col("duration").filter(pl.col("state") == state).sum().alias(column)
            for column, state in (
                ("running_ns", "running"),
                ("waiting_ns", "runnable"),
                ("blocked_ns", "blocked"),
            )
        )
    )


_COUNTS = {
    "selections": Kind.SCHEDULER_EXIT,
    "wakeups": Kind.WAKEUP,
    "blocks": Kind.BLOCK,
    "yields": Kind.YIELD,
    "preemptions": Kind.PREEMPT,
    "migrations": Kind.MIGRATE,
}
"""Columns that count records of a kind about the process."""


def _counts(trace: Trace, who: Lives, window: Window) -> pl.DataFrame:
    counts: dict[str, Integers] = {"life": np.arange(len(who))}
    tells_visits = bool(len(trace.rows(Kind.SCHEDULER_EXIT)))
    for column, kind in _COUNTS.items():
        # A machine that does not tell of its scheduler tells of a pick by the switch alone.
        told = kind if tells_visits or kind != Kind.SCHEDULER_EXIT else Kind.SWITCH
        rows = trace.rows(told)
        rows = rows[(rows >= window.begin_row) & (rows <= window.end_row)]
        pid = trace.column("process")[rows].astype(np.int64)
        life = who.steps.life_at(pid, rows)
        counts[column] = np.bincount(life[life >= 0], minlength=len(who))
    return pl.DataFrame(counts)


def _latency_statistics() -> list[pl.Expr]:
    latency = pl.col("latency_ns")
    return [
        latency.median().alias("wakeup_latency_median_ns"),
        latency.quantile(0.99, "linear").alias("wakeup_latency_p99_ns"),
        latency.max().alias("wakeup_latency_max_ns"),
    ]


def _latency_table(latencies: pl.DataFrame) -> pl.DataFrame:
    return latencies.group_by("life").agg(_latency_statistics())


def _with_shares(
    processes: pl.DataFrame, trace: Trace, who: Lives, window: Window, weights: Weights | None
) -> pl.DataFrame:
    """Adds, for the workload's processes, what they got of the CPUs and what they should get."""
    workload = processes.filter(pl.col("role") == "workload")
    life = workload["life"].to_numpy()
    weight = _weights(trace, who, window, life, weights)
    demand = _demands(workload, window)
    allocation = ideal_shares(weight, demand, trace.header.cpus)
    running = workload["running_ns"].to_numpy()
    shares = pl.DataFrame(
        {
            "life": life,
            "weight": weight,
            "demand_cpus": demand,
            "share": _part(running.astype(np.float64)),
            "ideal_share": _part(allocation),
        }
    ).with_columns(share_error_points=(pl.col("share") - pl.col("ideal_share")) * 100)
    return processes.join(shares, on="life", how="left", maintain_order="left")


def _demands(workload: pl.DataFrame, window: Window) -> Floats:
    """How much of a CPU each process asked for.

    One that ended has got all that it asked for: what it ran. One that goes on would
    have run more, had it never waited: of the time it waited, the part that it runs
    when it does not wait, running ÷ (running + blocked). That is all of it for one
    that never blocks (or never ran), and little for one that mostly sleeps.
    """
    running, waiting, blocked = (
        workload[column].to_numpy().astype(np.float64)
        for column in ("running_ns", "waiting_ns", "blocked_ns")
    )
    waiting = np.where(workload["exit_ns"].is_null().to_numpy(), waiting, 0)
    known = running + blocked
    part = np.divide(running, known, out=np.ones_like(known), where=running > 0)
    demand: Floats = (running + waiting * part) / max(window.elapsed_ns, 1)
    return demand


def _weights(
    trace: Trace, who: Lives, window: Window, life: Integers, weights: Weights | None
) -> Integers:
    choice = weights or _chosen_weights(trace, window)
    if choice == "equal":
        return np.ones(len(life), np.int64)
    kind = AttributeKind.TICKETS if choice == "tickets" else AttributeKind.WEIGHT
    return np.maximum(
        attribute(trace, who, kind, window.end_row, ATTRIBUTE_DEFAULTS[kind])[life], 1
    )


def _chosen_weights(trace: Trace, window: Window) -> Weights:
    shares_by = _shares_by(trace, window)
    if shares_by:
        return "tickets" if shares_by == AttributeKind.TICKETS else "weight"
    rows = trace.rows(Kind.ATTRIBUTE)
    used = set(trace.column("first")[rows[rows <= window.end_row]].tolist())
    if AttributeKind.WEIGHT in used:
        return "weight"
    return "tickets" if AttributeKind.TICKETS in used else "equal"


def _shares_by(trace: Trace, window: Window) -> int:
    """The attribute by which the policy shares when the window ends; 0: by none."""
    said = np.concatenate((trace.rows(Kind.POLICY), trace.rows(Kind.TUNABLE)))
    said = said[said <= window.end_row]
    return int(trace.column("process")[said.max()]) if len(said) else 0


def _policy(trace: Trace, window: Window) -> str:
    """The policy in force when the window ends, as `name` or `name:preset`."""
    named = pl.DataFrame({"row": trace.rows(Kind.POLICY)}).filter(pl.col("row") <= window.end_row)
    texts = trace.texts.join(named, on="row").sort("row")["text"]
    return str(texts[-1]) if len(texts) else ""


def _part(values: Floats) -> pl.Series:
    """Each value's part of the sum; null if that is 0."""
    total = values.sum()
    if total <= 0:
        return pl.Series([None] * len(values), dtype=pl.Float64)
    return pl.Series(values / total)


# --- groups


def _statistics(column: str) -> list[pl.Expr]:
    stem = column.removesuffix("_ns")
    value = pl.col(column)
    return [
        value.mean().alias(f"{stem}_mean_ns"),
        value.median().alias(f"{stem}_median_ns"),
        value.max().alias(f"{stem}_max_ns"),
    ]


def _population() -> list[pl.Expr]:
    """What is said of any set of processes."""
    return [
        pl.len().alias("processes"),
        pl.col("exit_ns").count().alias("finished"),
        *_statistics("turnaround_ns"),
        *_statistics("response_ns"),
        *_statistics("waiting_ns"),
        pl.col("running_ns", "blocked_ns", *_COUNTS).sum(),
    ]


def _completion() -> pl.Expr:
    """The time from the first fork to the last end; null unless all have ended, and were forked."""
    fork, end = pl.col("fork_ns"), pl.col("exit_ns")
    return (
        pl.when(end.is_not_null().all() & fork.is_not_null().all())
        .then((end.max() - fork.min()).clip(0))
        .alias("completion_ns")
    )


def _groups(window: Window, workload: pl.DataFrame, waits: pl.DataFrame) -> pl.DataFrame:
    """Per group the same as for all, and its share of the CPUs."""
    shares = pl.col("share", "ideal_share")
    # A sum of nulls would be 0, but a share of nothing is no share.
    groups = workload.group_by("group").agg(
        *_population(), pl.when(shares.count() > 0).then(shares.sum())
    )
    return (
        groups.join(waits.group_by("group").agg(_latency_statistics()), on="group", how="left")
        .with_columns(
            share_error_points=(pl.col("share") - pl.col("ideal_share")) * 100,
            throughput_per_second=_rate(pl.col("finished"), window.elapsed_ns / _SECOND_NS),
        )
        .sort("group")
    )


def _rate(count: pl.Expr, per: float) -> pl.Expr:
    return count / per if per > 0 else pl.lit(None, pl.Float64)


# --- CPUs


def _cpus(trace: Trace, window: Window) -> pl.DataFrame:
    """Per CPU, its time, its way through the scheduler, its switches."""
    runs = cpu_intervals(trace).with_columns(duration=window.duration())
    times = runs.group_by("cpu").agg(
        running_ns=pl.col("duration").filter(pl.col("pid") != 0).sum(),
        idle_ns=pl.col("duration").filter(pl.col("pid") == 0).sum(),
    )
    passes = (pl.col("what") == "scheduler") & window.holds()
    visits = (
        scheduler_intervals(trace)
        .group_by("cpu")
        .agg(
            scheduler_entries=passes.sum(),
            scheduler_cycles=pl.col("cycles").filter(passes).sum(),
            idle_loop_ns=window.duration().filter(pl.col("what") == "idle").sum(),
        )
    )
    cpus = pl.DataFrame({"cpu": pl.Series(range(trace.header.cpus), dtype=pl.UInt16)})
    for table in (times, visits, _switches(trace, window)):
        cpus = cpus.join(table, on="cpu", how="left", maintain_order="left")
    measured = bool(len(trace.rows(Kind.SCHEDULER_EXIT)))
    return _with_overhead(cpus.fill_null(0), trace, window, measured)


def _switches(trace: Trace, window: Window) -> pl.DataFrame:
    to, left = pl.col("process"), pl.col("first")
    events = trace.events[window.begin_row : window.end_row + 1]
    return (
        events.filter(pl.col("kind") == Kind.SWITCH)
        .group_by("cpu")
        .agg(
            context_switches=((to != 0) & (left != 0)).sum(),
            switches_to_idle=(to == 0).sum(),
            switches_from_idle=(left == 0).sum(),
        )
    )


def _with_overhead(
    cpus: pl.DataFrame, trace: Trace, window: Window, measured: bool
) -> pl.DataFrame:
    elapsed = window.elapsed_ns
    if elapsed <= 0 or not measured:
        nothing = pl.lit(None, pl.Float64)
        return cpus.with_columns(overhead_share=nothing, overhead_with_idle_share=nothing)
    scheduler = pl.col("scheduler_cycles") / _elapsed_cycles(trace, window)
    return cpus.with_columns(
        overhead_share=scheduler,
        overhead_with_idle_share=scheduler + pl.col("idle_loop_ns") / elapsed,
    )


def _elapsed_cycles(trace: Trace, window: Window) -> float:
    """Cycles that one CPU could do in the window; its counter may stand still when it idles."""
    return window.elapsed_ns * trace.header.cycles_per_second / _SECOND_NS


# --- all together

_WHAT = {
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
"""What was measured. Spelt out, so that the tables of all runs have the same types."""


def _what(trace: Trace, window: Window) -> dict[str, Any]:
    return {
        "policy": _policy(trace, window),
        "cpus": trace.header.cpus,
        "seed": trace.header.seed,
        "tick_ns": trace.header.tick_ns,
        "clock_step_ns": trace.clock_step_ns,
        "truncated": trace.truncated,
        "lost_records": trace.lost,
        "root_pid": window.root_pid,
        "begin_ns": window.begin_ns,
        "end_ns": window.end_ns,
        "elapsed_ns": window.elapsed_ns,
        "elapsed_cycles": _elapsed_cycles(trace, window),
    }


def _summary(
    trace: Trace, window: Window, processes: pl.DataFrame, cpus: pl.DataFrame, waits: pl.DataFrame
) -> pl.DataFrame:
    workload = processes.filter(pl.col("role") == "workload")
    running = {
        f"{role}_running_ns": processes.filter(pl.col("role") == role)["running_ns"].sum()
        for role in ("root", "other")
    }
    relative = workload.filter((pl.col("ideal_share") > 0) & pl.col("share").is_not_null())
    machine = cpus.select(
        pl.col("idle_ns", "scheduler_entries", "scheduler_cycles").sum(),
        pl.col("overhead_share", "overhead_with_idle_share").mean(),
        pl.col("context_switches", "switches_to_idle", "switches_from_idle").sum(),
    )
    return pl.concat(
        [
            pl.DataFrame([_what(trace, window)], schema=_WHAT),
            workload.select(_population()),
            workload.select(_completion()),
            waits.select(_latency_statistics()),
            pl.DataFrame(running),
            machine,
            pl.DataFrame(
                {
                    "fairness_turnaround": _fairness(workload["turnaround_ns"].drop_nulls()),
                    "fairness_share": _fairness(relative["share"] / relative["ideal_share"]),
                },
                schema={"fairness_turnaround": pl.Float64, "fairness_share": pl.Float64},
            ),
        ],
        how="horizontal",
    ).with_columns(
        throughput_per_second=_rate(pl.col("finished"), window.elapsed_ns / _SECOND_NS),
        throughput_per_million_cycles=_rate(
            pl.col("finished"), _elapsed_cycles(trace, window) / 1_000_000
        ),
    )


def _fairness(values: pl.Series) -> list[float | None]:
    return [jain_index(values.to_numpy())]

# SPDX-License-Identifier: MIT
"""Why study 3's figures and ours are as they are, as far as runs and traces tell."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from schedlab.metrics import state_intervals
from schedlab.report.studies.six_metrics import (
    BATCH,
    OVERHEAD,
    RESPONSE,
    SCHEDULERS,
    SPREAD,
    THROUGHPUT,
    WORKLOADS,
    Findings,
    mean_of,
    part_of_time,
    published_cell,
)
from schedlab.report.studies.texts import if_known, number, traces
from schedlab.report.studies.ticks import waiting_by_level
from schedlab.report.study_tables import Measured
from schedlab.report.wording import listed


def _for_all(found: Findings, workload: str, value: pl.Expr, what: str) -> dict[str, Measured]:
    """A number of each scheduler's runs, as `RR: what`."""
    return {
        f"{name}: {what}": found.of_processes(workload, policy, value)
        for name, policy in SCHEDULERS.items()
    }


def _each(known: dict[str, float], what: str, decimals: int = 1) -> str:
    """`20.4 (RR), 16.1 (Lottery) and 14.4 (MLFQ)`."""
    return listed([f"{known[f'{name}: {what}']:.{decimals}f} ({name})" for name in SCHEDULERS])


def _about_turnaround(found: Findings) -> str:
    needed = {
        **_for_all(found, "CPU-bound", SPREAD, "last fork"),
        **{
            f"{name}: parent waits": found.of_parent("CPU-bound", policy, mean_of("waiting_ns"))
            for name, policy in SCHEDULERS.items()
        },
    }
    cpu_bound = "**CPU-bound.** " + if_known(
        needed,
        lambda n: (
            f"The last process is forked {_each(n, 'last fork')} ticks after the first: the "
            "parent that forks them competes for the CPUs with those that it has forked, and waits "
            f"for {_each(n, 'parent waits')} ticks in all. The later they come, the fewer are "
            "there at a time, and the shorter each takes: a short turnaround is no merit of a "
            "scheduler that lets the parent wait, and the ideal beside it, which has the same "
            "arrivals, falls with it. The study tells neither when its processes came nor how long "
            "they computed."
        ),
    )
    return f"{cpu_bound}\n\n{_about_files(found)}\n\n{_about_groups(found)}"


def _about_files(found: Findings) -> str:
    """Why the three schedulers do not differ in the IO-bound workload."""
    needed = {
        **_for_all(found, "IO-bound", mean_of("blocked_ns"), "blocked"),
        **_for_all(found, "IO-bound", mean_of("waiting_ns"), "waiting"),
        **_for_all(found, "IO-bound", mean_of("running_ns"), "running"),
    }
    told = "**IO-bound.** " + if_known(
        needed,
        lambda n: (
            f"A process is blocked for {_each(n, 'blocked')} ticks, waits for a CPU for "
            f"{_each(n, 'waiting')} and runs for {_each(n, 'running', 2)}."
        ),
    )
    return f"{told} {_why_blocked(found)}".strip()


def _why_blocked(found: Findings) -> str:
    """Of one run under round-robin: what its processes are blocked on."""
    kept = traces(found.setup("IO-bound", SCHEDULERS["RR"]), most=1)
    if not kept:
        return ""
    run, trace = kept[0]
    pids = run.metrics().processes.filter(pl.col("group") == "io")["pid"].implode()
    blocked = (
        state_intervals(trace)
        .filter((pl.col("state") == "blocked") & pl.col("pid").is_in(pids))
        .group_by(pl.col("cause").cast(pl.String))
        .agg((pl.col("end_ns") - pl.col("begin_ns")).sum().alias("time"))
        .with_columns(part=100 * pl.col("time") / pl.col("time").sum())
        .sort("time", descending=True)
    )
    if blocked.is_empty():
        return ""
    first = blocked.row(0, named=True)
    reason = str(first["cause"]).removeprefix("blocked: ")
    return (
        f"Of the time blocked, {first['part']:.0f} % are spent waiting for the {reason} "
        f"(round-robin, seed {run.seed}). That is what takes long, whatever the scheduler."
    )


def _about_groups(found: Findings) -> str:
    needed = {
        **_for_all(found, "Mixed", mean_of("turnaround_ns", "cpu"), "computing"),
        **_for_all(found, "Mixed", mean_of("turnaround_ns", "io"), "writing"),
    }
    return (
        "**Mixed.** "
        + if_known(
            needed,
            lambda n: (
                f"Those that compute take {_each(n, 'computing')} ticks, those that write "
                f"{_each(n, 'writing')}. {_where_they_wait(found)}"
            ),
        ).strip()
    )


def _where_they_wait(found: Findings) -> str:
    """Of one run under MLFQ: on which level those that compute spend their time waiting."""
    kept = traces(found.setup("Mixed", SCHEDULERS["MLFQ"]), most=1)
    if not kept:
        return ""
    run, trace = kept[0]
    rows = run.metrics().processes.filter(pl.col("group") == "cpu")
    waits = waiting_by_level(trace, rows["pid"].to_list())
    if waits.is_empty():
        return ""
    below = waits.filter(pl.col("level") < _TOP_LEVEL)["waiting_ns"]
    part = number(below.sum()) / number(waits["waiting_ns"].sum())
    return (
        f"Under MLFQ those that compute spend {100 * part:.0f} % of "
        f"the time that they wait for a CPU below the highest level (seed {run.seed}): their first "
        "quantum is used up, and whoever is new, or comes back from the disk, goes first."
    )


_TOP_LEVEL = 3


def _about_response(found: Findings) -> str:
    needed = {
        name: found.of("IO-bound", policy, part_of_time("idle_ns"))
        for name, policy in SCHEDULERS.items()
    }
    responses = {
        f"{name}: response": found.metric(RESPONSE, "IO-bound", name) for name in SCHEDULERS
    }
    told = if_known(
        {**needed, **responses},
        lambda n: (
            "**IO-bound.** The CPUs are idle for "
            f"{listed([f'{n[name]:.0f} % ({name})' for name in SCHEDULERS])} of the time, so a "
            "new process mostly finds one at once, whatever the policy: "
            + _each({name: 1000 * value for name, value in n.items()}, "response", 0)
            + " thousandths of a tick."
        ),
    )
    there = {name: published_cell(RESPONSE, name, "IO-bound").value for name in SCHEDULERS}
    return (
        "**CPU-bound and mixed.** Under MLFQ a new process begins on the highest level, before all "
        "that have run for a tick; under the other two it waits among them."
        f"\n\n{told} That the lottery's was {there['Lottery'] / there['RR']:.0f} times "
        "round-robin's in the study does not come out here; why it was so there is not known."
    )


def _about_throughput(found: Findings) -> str:
    needed = {
        name: found.of("CPU-bound", policy, part_of_time("running_ns"))
        for name, policy in SCHEDULERS.items()
    }
    of_ideal = {
        f"throughput, {name}": found.metric(THROUGHPUT, "CPU-bound", name) for name in SCHEDULERS
    }
    cpu_bound = if_known(
        {**needed, **of_ideal},
        lambda n: (
            "**CPU-bound.** "
            + listed(
                [
                    f"{100 * n[f'throughput, {name}'] / BATCH.throughput:.1f} % of the ideal "
                    f"({name})"
                    for name in SCHEDULERS
                ]
            )
            + ". What is missing is the parent's time and the idle time (the table above), and "
            "what a process takes beyond its work, to begin and to end. The study's figure of "
            "round-robin is lower by what its CPUs schedule and idle: the processes' work was "
            "derived from just that."
        ),
    )
    parent = {
        f"{name}: waits": found.of_parent("Mixed", policy, mean_of("waiting_ns"))
        for name, policy in SCHEDULERS.items()
    }
    spread = _for_all(found, "Mixed", SPREAD, "last fork")
    mixed = if_known(
        {**parent, **spread},
        lambda n: (
            "**Mixed.** The throughput counts until the last process has ended, so it depends on "
            "when that one is forked. The parent waits for a CPU for "
            f"{_each(n, 'waits')} ticks in all, and forks its last child "
            f"{_each(n, 'last fork')} ticks after the first. It sleeps again and again and has "
            "a new quantum each time, so that under MLFQ it stays on a high level: what ends the "
            "run sooner is that this one process goes first."
        ),
    )
    return f"{cpu_bound}\n\n{mixed}"


def _about_overhead(found: Findings) -> str:
    needed = {
        workload: found.of(workload, SCHEDULERS["RR"], pl.col("overhead_share").first() * 100)
        for workload in WORKLOADS
    }
    counted = {
        f"counted, {workload}": found.metric(OVERHEAD, workload, "RR") for workload in WORKLOADS
    }
    return if_known(
        {**needed, **counted},
        lambda n: (
            "What the study calls overhead is all time between two processes, idle time included. "
            "The scheduler's own part of it, under round-robin: "
            + listed(
                [
                    f"{n[workload]:.2f} of {n[f'counted, {workload}']:.1f} % ({workload})"
                    for workload in WORKLOADS
                ]
            )
            + ". The rest is that there was nothing to run. So the table orders workloads and "
            "schedulers by how idle they leave the CPUs; the table of the CPUs' time above has "
            "both apart. How much of the study's figures is idle time is not known."
        ),
    )


def _about_fairness(found: Findings) -> str:
    needed = {
        **_for_all(found, "Mixed", mean_of("turnaround_ns", "cpu"), "computing"),
        **_for_all(found, "Mixed", mean_of("turnaround_ns", "io"), "writing"),
    }
    return (
        "Jain's index of turnaround is 1 if all processes take equally long, whatever they ask "
        "for. "
        + if_known(
            needed,
            lambda n: (
                "In the mixed workload those that compute take "
                f"{_each(n, 'computing')} ticks and those that write {_each(n, 'writing')}: where "
                "the first are made to wait until they take as long as the second, the index is "
                "high. It does not say that the CPU was shared more evenly."
            ),
        )
    )


EXPLANATIONS: dict[str, Callable[[Findings], str]] = {
    "turnaround": _about_turnaround,
    "response": _about_response,
    "throughput": _about_throughput,
    "overhead": _about_overhead,
    "fairness": _about_fairness,
}

# SPDX-License-Identifier: MIT
"""Why processes of study 4's mixed benchmark take so long, from the traces."""

from __future__ import annotations

import polars as pl

from schedlab.metrics import state_intervals
from schedlab.report.studies.mixed_runs import (
    CPUS,
    KINDS,
    SCHEDULERS,
    Benchmark,
    experiment,
    published,
)
from schedlab.report.studies.texts import if_known, number, of_rows, traces
from schedlab.report.studies.ticks import at_ticks, boosts, usual
from schedlab.report.study_tables import measure
from schedlab.runs.collection import Collection, Kept
from schedlab.studies.experiments import MIXED_SIZES
from schedlab.studies.ideal import STUDY_4_WORK
from schedlab.trace import Trace


def why(collection: Collection) -> str:
    """From the traces beside the most CPU-bound processes that were run."""
    found = Benchmark(collection)
    told = []
    for scheduler, tell in (("RR", _why_round_robin), ("MLFQ", _why_feedback)):
        policy = SCHEDULERS[scheduler]
        sizes = found.sizes(policy)
        setup = collection.one(experiment(sizes[-1]), policy, CPUS) if sizes else None
        kept = traces(setup, most=1)
        if kept:
            told.append(f"- **{scheduler}**, {tell(sizes[-1], *kept[0])}")
    told.append(_about_computing(found))
    if len(told) < 2:
        return "*Why it is so is read from traces; there is none of this benchmark.*"
    return "Why it is so, from the traces:\n\n" + "\n".join(told)


def _about_computing(found: Benchmark) -> str:
    """Why the mean of those that compute is a little below the ideal."""
    size = max(MIXED_SIZES)
    policy = SCHEDULERS["RR"]
    rows = found.collection.processes
    if len(rows):
        rows = rows.filter(pl.col("group") == KINDS["CPU-bound"])
    spread = (pl.col("fork_ns").max() - pl.col("fork_ns").min()) / pl.col("tick_ns").first()
    setup = found.collection.one(experiment(size), policy, CPUS)
    there = published(size, "RR", "CPU-bound", "authors")
    needed = {
        "spread": measure(setup, of_rows(found.collection, rows, spread)),
        "mean": found.mean(size, policy, "CPU-bound"),
    }
    told = "- **CPU-bound**: " + if_known(
        needed,
        lambda n: (
            f"{size} of them take {n['mean']:,.0f} ticks under RR, the ideal is "
            f"{size * STUDY_4_WORK:,.0f}. It has all begin together; here the last is forked "
            f"{n['spread']:.0f} ticks after the first, and each one's time counts from its own "
            "fork."
        ),
    )
    if there is None:
        return told
    return told + (
        f" The authors' {there.text} are still less; how far apart their forks were is not known."
    )


def _pids(run: Kept, kind: str) -> list[int]:
    rows = run.metrics().processes.filter(pl.col("group") == KINDS[kind])
    return [int(pid) for pid in rows["pid"]]


def _why_round_robin(size: int, run: Kept, trace: Trace) -> str:
    processes, tick_ns = run.metrics().processes, trace.header.tick_ns
    pids = _pids(run, "interactive")
    if not pids:
        return f"{size} CPU-bound (seed {run.seed}): no interactive process is in the trace."
    ends = {kind: processes.filter(pl.col("group") == group) for kind, group in KINDS.items()}
    alone_ns = number(ends["CPU-bound"]["exit_ns"].max())
    last_ns = number(ends["interactive"]["exit_ns"].max())
    away = _times_away(trace, pids).filter(pl.col("again_ns") < alone_ns)
    usual_ns = number((away["again_ns"] - away["begin_ns"]).median())
    sleeps = _sleeps(trace, pids)
    before = len(sleeps.filter(pl.col("begin_ns") < alone_ns)) / len(pids)
    told = f"{size} CPU-bound (seed {run.seed}): "
    if usual_ns:
        told += (
            "each time that an interactive process gives up the CPU to sleep or to wait for the "
            f"disk, it is back after a turn of all others, {usual_ns / tick_ns:.1f} ticks (median). "
        )
    return told + (
        f"So it has begun {before:.1f} of its {len(sleeps) / len(pids):.0f} sleeps when the last "
        f"CPU-bound process ends, and ends itself {(last_ns - alone_ns) / tick_ns:.0f} ticks "
        "later: interactive processes outlast those that compute, and each of these more adds all "
        f"of its work to their time. {_outlasting()}"
    )


def _outlasting() -> str:
    """Is it so in the authors' output, too?"""
    pairs = [
        [published(size, "RR", kind, "authors") for kind in ("interactive", "CPU-bound")]
        for size in MIXED_SIZES
    ]
    longer = sum(bool(one and other and one.value > other.value) for one, other in pairs)
    return (
        f"In {longer} of the authors' {len(pairs)} rows, too, the interactive ones take longer "
        "than the CPU-bound."
    )


def _sleeps(trace: Trace, pids: list[int]) -> pl.DataFrame:
    return state_intervals(trace).filter(
        pl.col("pid").is_in(pids) & (pl.col("cause") == "blocked: sleep")
    )


def _times_away(trace: Trace, pids: list[int]) -> pl.DataFrame:
    """When one of them begins to sleep or to wait for the disk, and when it runs again."""
    intervals = state_intervals(trace).filter(pl.col("pid").is_in(pids)).sort("pid", "begin_ns")
    runs = pl.when(pl.col("state") == "running").then(pl.col("begin_ns"))
    return (
        intervals.with_columns(again=runs.backward_fill().over("pid"))
        .filter(pl.col("cause").cast(pl.String).is_in(["blocked: sleep", "blocked: disk"]))
        .select("begin_ns", pl.col("again").alias("again_ns"))
    )


def _why_feedback(size: int, run: Kept, trace: Trace) -> str:
    ticks = at_ticks(trace, _pids(run, "CPU-bound"))
    raised = boosts(ticks)
    until = raised[0] if raised else number(ticks["machine_tick"].max()) + 1
    top = ticks.filter(
        (pl.col("level") == pl.col("level").max()) & (pl.col("machine_tick") < until)
    )
    if top.is_empty():
        return f"{size} CPU-bound: no level was told."
    sunk_ns = (number(top["machine_tick"].max()) + 1) * trace.header.tick_ns
    pids = _pids(run, "interactive")
    sleeps = _sleeps(trace, pids)
    before = len(sleeps.filter(pl.col("begin_ns") < sunk_ns)) / len(pids)
    after = len(sleeps) / len(pids) - before
    ends = run.metrics().processes.filter(pl.col("pid").is_in(pids))["exit_ns"].mean()
    each = (number(ends) - sunk_ns) / trace.header.tick_ns / after if after else 0.0
    begin = number(ticks["machine_tick"].min()) * trace.header.tick_ns
    lasted = (sunk_ns - begin) / trace.header.tick_ns
    allotment, _ = usual(top.group_by("pid").len()["len"])
    return (
        f"{size} CPU-bound (seed {run.seed}): the CPU-bound ones stay on the highest level until "
        f"each has used its allotment of {allotment} ticks there, for "
        f"{lasted:.0f} ticks in all; the interactive ones share it with them, and have begun "
        f"{before:.1f} of their {before + after:.0f} sleeps by then. From there on they go first, and a "
        f"round of writing and sleeping takes {each:.1f} ticks. So their time grows by the "
        f"{allotment} ticks of each CPU-bound process more."
    )

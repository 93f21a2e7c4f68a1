# SPDX-License-Identifier: MIT
"""Tests the invariants of the kernel's scheduler in traces of real runs on Spike."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from guest_machine import ROUND_NS, TICK_NS, run_guest, traced
from schedlab import metrics, trace
from schedlab.base.toolchain.policies import read_catalogue

pytestmark = pytest.mark.spike


def greatest(times: pl.Series) -> int:
    """Returns the greatest time in ns, or 0 if there is none."""
    return int(times.to_numpy().max(initial=0))


MIXED = "mixed -n 8 -g 40"
LOADS = [
    [(2, MIXED), (16, "sleepers -n 40")],
    [(3, "sleepers -n 8"), (4, MIXED)],
    [(5, "sleepers -n 12"), (8, MIXED)],
    [(2, "sleepers -n 5"), (16, MIXED)],
]
"""Loads (CPUs, command); each policy has one list, and together they cover all CPU counts."""


def idleness_cases() -> list[tuple[str, int, str]]:
    """Returns (policy, CPUs, command) for each built-in policy, and for the shared-queue preset."""
    policies = [*read_catalogue(), "rr:table-scan"]
    return [
        (policy, cpus, command)
        for index, policy in enumerate(policies)
        for cpus, command in LOADS[index % len(LOADS)]
    ]


@pytest.mark.parametrize(("policy", "cpus", "command"), idleness_cases())
def test_no_cpu_idles_while_a_process_waits(
    tmp_path: Path, policy: str, cpus: int, command: str
) -> None:
    """A CPU never idles longer than a tick while a process waits; all state changes are checked."""
    events = traced(tmp_path, command, cpus, f"policy={policy}")
    assert idle_beside_waiting(events) <= TICK_NS + 2 * ROUND_NS


def idle_beside_waiting(events: trace.Trace) -> int:
    """Returns the longest time in ns during which some CPU is idle while some process waits."""
    window = metrics.measured_window(events)
    idle = metrics.cpu_intervals(events).filter(pl.col("pid") == 0)
    waiting = metrics.state_intervals(events).filter(pl.col("state") == "runnable")
    changes = pl.concat(
        [
            idle.select(time="begin_ns", idle=pl.lit(1), waiting=pl.lit(0)),
            idle.select(time="end_ns", idle=pl.lit(-1), waiting=pl.lit(0)),
            waiting.select(time="begin_ns", idle=pl.lit(0), waiting=pl.lit(1)),
            waiting.select(time="end_ns", idle=pl.lit(0), waiting=pl.lit(-1)),
        ]
    )
    state = (
        changes.group_by("time")
        .agg(pl.col("idle").sum(), pl.col("waiting").sum())
        .sort("time")
        .with_columns(pl.col("idle").cum_sum(), pl.col("waiting").cum_sum())
        .with_columns(bad=(pl.col("idle") > 0) & (pl.col("waiting") > 0))
        .with_columns(run=pl.col("bad").rle_id())
        .with_columns(length=pl.col("time").shift(-1) - pl.col("time"))
        .filter(pl.col("bad") & (pl.col("time") < window.end_ns))
        .group_by("run")
        .agg(pl.col("length").sum())
    )
    return greatest(state["length"])


def switch_delays(events: trace.Trace) -> npt.NDArray[np.int64]:
    """Returns the times in ns from each policy switch until each busy CPU next enters the
    scheduler."""
    kind, cpu = events.column("kind"), events.column("cpu")
    time, process = events.column("time_ns"), events.column("process")
    switches = np.flatnonzero((kind == trace.Kind.POLICY) | (kind == trace.Kind.TUNABLE))
    delays = []
    for number in range(events.header.cpus):
        visits = np.flatnonzero(
            (cpu == number)
            & ((kind == trace.Kind.SCHEDULER_ENTER) | (kind == trace.Kind.SCHEDULER_EXIT))
        )
        after = np.searchsorted(visits, switches)
        followed = (after > 0) & (after < len(visits))
        before, after = visits[after[followed] - 1], visits[after[followed]]
        runs = (kind[before] == trace.Kind.SCHEDULER_EXIT) & (process[before] != 0)
        assert (kind[after][runs] == trace.Kind.SCHEDULER_ENTER).all()
        delays.append((time[after] - time[switches[followed]])[runs])
    return np.concatenate(delays)


@pytest.mark.parametrize("cpus", [1, 8])
def test_switching_policies_under_load(tmp_path: Path, cpus: int) -> None:
    """After more than 1,000 switches, the trace is valid, and each switch applies within a tick.

    By then, each process that the old policy picked has left its CPU, or the new policy has
    picked it.
    """
    events = traced(tmp_path, "test-switching", cpus)
    policies = events.texts.filter(pl.col("row").is_in(events.rows(trace.Kind.POLICY).tolist()))
    listed = run_guest(tmp_path, "cat /proc/sched_policies").console
    names = set(re.findall(r"^ +\d+ ([a-z0-9:_-]+) ", listed, re.MULTILINE))
    assert len(policies) >= 1000
    assert set(policies["text"]) == names
    delays = switch_delays(events)
    assert len(delays) >= 1000
    assert delays.max() <= TICK_NS + ROUND_NS


def test_shares_are_traced(tmp_path: Path) -> None:
    """POLICY and TUNABLE records name the attribute that sets the shares, starting at boot."""
    events = traced(tmp_path, "sh -c 'tunable slice 2; policy rr:table-scan'", 1)
    kind = events.column("kind")
    rows = np.flatnonzero((kind == trace.Kind.POLICY) | (kind == trace.Kind.TUNABLE))
    assert events.texts.filter(pl.col("row").is_in(rows.tolist()))["text"].to_list() == [
        "rr",
        "slice",
        "rr:table-scan",
    ]
    assert events.column("process")[rows].tolist() == [0, 0, 0]


def test_a_policy_ends_a_process_at_the_tick(tmp_path: Path) -> None:
    """A process that tick() condemns runs at most until that tick, regardless of what it does."""
    limit = 20 * TICK_NS
    events = traced(tmp_path, "test-scheduler policies_may_end_processes", 1)
    ended = events.events.filter(
        (pl.col("kind") == trace.Kind.EXIT) & (pl.col("first") == 0xFFFF_FFFF)
    )
    running = metrics.state_intervals(events).filter(pl.col("state") == "running")
    run_ns = running.group_by("pid").agg(ns=(pl.col("end_ns") - pl.col("begin_ns")).sum())
    condemned = ended.join(run_ns, left_on="process", right_on="pid").filter(pl.col("ns") > limit)
    assert len(condemned) == 2
    assert greatest(condemned["ns"]) <= limit + TICK_NS + 2 * ROUND_NS


def test_who_wakes_whom_is_traced(tmp_path: Path) -> None:
    """A timer's wake-up has no waker; the wake-up for a pipe's byte names the writer.

    The reader sleeps, requests a byte and waits for it, while a hog computes.
    """
    events = traced(tmp_path, "study3 inversion -r 3 -c 1 -t 3000", cpus=1)
    groups = dict(metrics.compute(events).processes.select("pid", "group").iter_rows())
    table = events.events.filter(pl.col("kind") == trace.Kind.WAKEUP)
    wakers = [
        groups.get(by, "nobody")
        for woken, by in table.select("process", "first").iter_rows()
        if groups.get(woken) == "reader"
    ]
    assert wakers[-6:] == ["nobody", "writer"] * 3

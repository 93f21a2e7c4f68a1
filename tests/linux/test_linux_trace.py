# SPDX-License-Identifier: MIT
"""Traces of a Linux kernel: two recordings of tests/linux/observed.c, under the fair class.

To make one anew, after a change of the observer that shows in it: build observed.c (static, -I.), and
in a guest of one or two CPUs, repeatable, let `schedlab-linux serve --policy fair --trace FILE
--trace-memory` run around it; then `xz` the file into tests/linux/traces/CPUS.bin.xz.
"""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from schedlab import metrics, trace
from schedlab.metrics.lives import lives
from schedlab.runs.replay.acts import first_waits
from schedlab.trace import BlockReason, Kind, ProcessState, Step

RECORDINGS = Path(__file__).parent / "traces"


@pytest.fixture(scope="module", params=[1, 2], ids=["1 CPU", "2 CPUs"])
def recording(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> trace.Trace:
    """One of the recordings."""
    path = tmp_path_factory.mktemp("linux") / "trace.bin"
    path.write_bytes(lzma.decompress((RECORDINGS / f"{request.param}.bin.xz").read_bytes()))
    return trace.read(path)


@pytest.fixture(scope="module")
def measured(recording: trace.Trace) -> metrics.Metrics:
    """Its metrics."""
    return metrics.compute(recording)


def rows_of(measured: metrics.Metrics, group: str) -> pl.DataFrame:
    """The threads of a group."""
    rows = measured.processes.filter(pl.col("group") == group)
    assert len(rows), group
    return rows


def test_nothing_in_it_is_impossible_or_lost(recording: trace.Trace) -> None:
    """All laws of a trace hold; what a tick is, is told."""
    trace.validate(recording)
    assert recording.lost == 0
    assert not recording.truncated
    assert recording.header.tick_ns == 4_000_000
    assert recording.header.cycles_per_second == 1_000_000_000


def test_initial_threads_are_detected(recording: trace.Trace) -> None:
    """Once each, with names; one runs on a CPU at most, and kernel threads have brackets."""
    existing_threads = trace.event_table(recording).filter(pl.col("kind") == "FOUND")
    assert existing_threads["process"].is_unique().all()
    assert {"init", "[kthreadd]"} <= set(existing_threads["text"])
    assert (existing_threads["text"].str.len_chars() > 0).all()
    running = existing_threads.filter(pl.col("detail") == "running")
    assert running["cpu"].is_unique().all()
    assert len(running) >= 1


def test_all_that_the_program_does_is_seen(measured: metrics.Metrics) -> None:
    """Statuses, parents and children, a death by signal, threads, a PID that goes on in exec()."""
    assert rows_of(measured, "short")["status"].to_list() == [0, 1, 2, 3]
    workload = measured.processes.filter(pl.col("role") == "workload")
    assert workload["exit_ns"].null_count() == 0
    assert workload.filter(pl.col("status") == -9).height == 1
    threads = rows_of(measured, "threads").sort("pid")
    assert threads["parent"].to_list() == [threads["parent"][0]] + [threads["pid"][0]] * 3
    first, thread, second = rows_of(measured, "exec").sort("fork_ns").iter_rows(named=True)
    assert (thread["parent"], second["parent"]) == (first["pid"], thread["pid"])
    assert (second["pid"], second["status"]) == (first["pid"], 7)
    assert second["fork_ns"] <= thread["exit_ns"] <= second["first_run_ns"]


def test_why_they_stop(recording: trace.Trace, measured: metrics.Metrics) -> None:
    """Pipes, sleeps, children, yields are told apart."""
    blocked = recording.events.filter(pl.col("kind") == Kind.BLOCK)

    def reasons(group: str) -> set[int]:
        pids = rows_of(measured, group)["pid"].to_list()
        return set(blocked.filter(pl.col("process").is_in(pids))["first"])

    assert BlockReason.PIPE in reasons("ball")
    assert reasons("ball") <= {BlockReason.PIPE, BlockReason.LOCK}
    assert BlockReason.SLEEP in reasons("sleep")
    assert BlockReason.CHILD in reasons("observed")
    assert BlockReason.LOCK in reasons("threads")  # joins are futexes
    assert rows_of(measured, "yield")["yields"].to_list() == [20, 20]
    slices = recording.events.filter((pl.col("kind") == Kind.PREEMPT) & (pl.col("first") == 1))
    assert set(rows_of(measured, "cpu")["pid"]) <= set(slices["process"])


def test_wakeup_is_from_an_interrupt_or_the_running_thread(recording: trace.Trace) -> None:
    """Sleepers are woken by timers, players by each other."""
    current = [0] * recording.header.cpus
    wakers: set[int] = set()
    for kind, cpu, process, first in recording.events.select(
        "kind", "cpu", "process", "first"
    ).iter_rows():
        if kind == Kind.SWITCH or (kind == Kind.FOUND and first == ProcessState.RUNNING):
            current[cpu] = process
        elif kind == Kind.WAKEUP:
            wakers.add(first)
            # What is told late, where the sleeper comes to, still names the process that woke it.
            assert first in (0, current[cpu]) or recording.header.cpus > 1
    assert 0 in wakers
    assert len(wakers) > 2


# --- against Linux's own account


def account(recording: trace.Trace, measured: metrics.Metrics) -> pl.DataFrame:
    """A row for each thread that told: what Linux says, and what the trace says up to there."""
    reported = measured.values.pivot("name", index="pid", values="value")
    when = measured.values.filter(pl.col("name") == "run").select("pid", told_ns="time_ns")
    states = metrics.state_intervals(recording).join(when, on="pid")
    earlier_states = states.filter(pl.col("begin_ns") < pl.col("told_ns"))
    length = pl.min_horizontal("end_ns", "told_ns") - pl.col("begin_ns")
    of_state = {state: pl.col("state") == state for state in ("running", "runnable")}
    seen = earlier_states.group_by("pid").agg(
        running=length.filter(of_state["running"]).sum(),
        waiting=length.filter(of_state["runnable"]).sum(),
        picked=of_state["running"].sum(),
        lives=pl.col("life").n_unique(),
        was_found=(pl.col("cause") == "found").any(),
    )
    return reported.join(seen, on="pid").filter(~pl.col("was_found") & (pl.col("lives") == 1))


def test_turns_are_those_of_linux(recording: trace.Trace, measured: metrics.Metrics) -> None:
    """How often each got a CPU."""
    rows = account(recording, measured)
    assert len(rows) > 12
    assert rows["picked"].to_list() == rows["turns"].to_list()


def test_times_are_those_of_linux(recording: trace.Trace, measured: metrics.Metrics) -> None:
    """Running and waiting, except what lies between two places where clocks are read.

    That is some thousand instructions of 4 ns a turn. With two CPUs, which the emulator runs in
    turns, either may stand still between two readings while the other has its turn: a thread may be
    off by as long as that is, but not most of them.
    """
    rows = account(recording, measured)
    for ours, theirs in (("running", "run"), ("waiting", "wait")):
        deviations = (rows[ours] - rows[theirs]).abs()
        assert (deviations / rows["turns"]).median() < 12_000, rows
        assert deviations.max() < 1_000_000, rows
        if recording.header.cpus == 1:
            assert (deviations / rows["turns"]).max() < 20_000, rows


# --- what is made of it


def test_initially_waiting_threads_wait_first_in_a_replay(recording: trace.Trace) -> None:
    """Taken for a workload, they sleep until their timer, or until another process wakes them."""
    who = lives(recording)
    steps = who.steps
    expected = [
        life
        for life, at in enumerate(steps.first.tolist())
        if steps.step[at] == Step.FOUND
        and (steps.life[at + 1 : at + 2] == life).all()
        and (steps.step[at + 1 : at + 2] == Step.WOKEN).any()
    ]
    assert len(expected) > 2
    assert list(first_waits(recording, who, np.empty(0, np.int64))) == expected

# SPDX-License-Identifier: MIT
"""Tests traces of a Linux kernel: two recordings of tests/linux/observed.c, under the fair class.

To make a recording again after a visible change of the observer, build observed.c (static, -I.). In
a repeatable guest of one or two CPUs, run it under `schedlab-linux serve --policy fair --trace FILE
--trace-memory`. Then `xz` the file into tests/linux/traces/CPUS.bin.xz.
"""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from schedlab import metrics, trace
from schedlab.metrics.lives import lives
from schedlab.runs.replay.actions import first_waits
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
    """Metrics of the recording."""
    return metrics.compute(recording)


def rows_of(measured: metrics.Metrics, group: str) -> pl.DataFrame:
    """Returns the threads of a group."""
    rows = measured.processes.filter(pl.col("group") == group)
    assert len(rows), group
    return rows


def test_nothing_in_it_is_impossible_or_lost(recording: trace.Trace) -> None:
    """All invariants of a trace hold, and the tick's length is recorded."""
    trace.validate(recording)
    assert recording.lost == 0
    assert not recording.truncated
    assert recording.header.tick_ns == 4_000_000
    assert recording.header.cycles_per_second == 1_000_000_000


def test_initial_threads_are_detected(recording: trace.Trace) -> None:
    """Each thread is found once, with a name; each CPU runs at most one; kernel threads have
    brackets."""
    existing_threads = trace.event_table(recording).filter(pl.col("kind") == "FOUND")
    assert existing_threads["process"].is_unique().all()
    assert {"init", "[kthreadd]"} <= set(existing_threads["text"])
    assert (existing_threads["text"].str.len_chars() > 0).all()
    running = existing_threads.filter(pl.col("detail") == "running")
    assert running["cpu"].is_unique().all()
    assert len(running) >= 1


def test_all_that_the_program_does_is_seen(measured: metrics.Metrics) -> None:
    """Checks statuses, families, a death by signal, threads, and a PID that continues in exec()."""
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
    """The trace distinguishes pipes, sleeps, waits for children, and yields."""
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
    """Timers wake sleepers, and players wake each other."""
    current = [0] * recording.header.cpus
    wakers: set[int] = set()
    for kind, cpu, process, first in recording.events.select(
        "kind", "cpu", "process", "first"
    ).iter_rows():
        if kind == Kind.SWITCH or (kind == Kind.FOUND and first == ProcessState.RUNNING):
            current[cpu] = process
        elif kind == Kind.WAKEUP:
            wakers.add(first)
            # A wake-up that is recorded late, on the sleeper's CPU, still names the waking process.
            assert first in (0, current[cpu]) or recording.header.cpus > 1
    assert 0 in wakers
    assert len(wakers) > 2


# --- comparison with Linux's statistics


def account(recording: trace.Trace, measured: metrics.Metrics) -> pl.DataFrame:
    """Returns a row per reporting thread: Linux's statistics, and the trace's until that time."""
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
    """The number of times that each thread got a CPU is equal."""
    rows = account(recording, measured)
    assert len(rows) > 12
    assert rows["picked"].to_list() == rows["turns"].to_list()


def test_times_are_those_of_linux(recording: trace.Trace, measured: metrics.Metrics) -> None:
    """Running and waiting times are equal, except for the time between two clock readings.

    A time slice has some thousand instructions of 4 ns between the readings. The emulator runs two
    CPUs alternately, so that either may pause between two readings. A thread may be off by the
    length of such a pause, but most threads are not.
    """
    rows = account(recording, measured)
    for ours, theirs in (("running", "run"), ("waiting", "wait")):
        deviations = (rows[ours] - rows[theirs]).abs()
        assert (deviations / rows["turns"]).median() < 12_000, rows
        assert deviations.max() < 1_000_000, rows
        if recording.header.cpus == 1:
            assert (deviations / rows["turns"]).max() < 20_000, rows


# --- derived workloads


def test_initially_waiting_threads_wait_first_in_a_replay(recording: trace.Trace) -> None:
    """As a workload, these threads sleep until their timer or until another process wakes them."""
    life_table = lives(recording)
    steps = life_table.steps
    expected = [
        life
        for life, at in enumerate(steps.first.tolist())
        if steps.step[at] == Step.FOUND
        and (steps.life[at + 1 : at + 2] == life).all()
        and (steps.step[at + 1 : at + 2] == Step.WOKEN).any()
    ]
    assert len(expected) > 2
    assert list(first_waits(recording, life_table, np.empty(0, np.int64))) == expected

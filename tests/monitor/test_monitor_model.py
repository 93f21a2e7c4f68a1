# SPDX-License-Identifier: MIT
"""Tests the live model against schedlab.metrics, and against slow recomputations from the
whole trace.
"""

from __future__ import annotations

import gc
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import ROOT
from naive_model import Sliding, idle_while_queued
from perf_recordings import imported
from schedlab.metrics import compute, cpu_intervals, jain_index
from schedlab.metrics.processes import NEVER_RAN
from schedlab.monitor.frames import ModelFrame
from schedlab.monitor.model import Model
from schedlab.monitor.system import Status, StatusRow
from schedlab.trace import (
    AttributeKind,
    Header,
    Kind,
    ProcessState,
    Trace,
    read,
)
from schedlab.trace.follow import Records
from schedlab.trace.format import RECORD, is_kind
from schedlab.workload import workload_files
from schedlab.workload.text import format_workload
from schedlab_simulator import Simulator
from trace_simulator import PATIENT, RANDOMS, Record, Script, load, simulate

FOREVER_NS = 1 << 60

SCRIPTS = st.builds(
    Script,
    cpus=st.integers(1, 4),
    steps=st.integers(0, 120),
    cycles_per_second=st.sampled_from([1_000_000_000, 10_000_000]),
    marks=st.just(False),
    drain=st.booleans(),
    pids=st.sampled_from([0, 4]),
    initial_tasks=st.sampled_from([0, 0, 3, 7]),
)


def happened(source: random.Random, script: Script) -> list[Record]:
    """Returns a random trace without migrations and attributes of processes that have ended."""
    alive: set[int] = set()
    records: list[Record] = []
    for record in simulate(source, script):
        if record.kind == Kind.FORK:
            alive.add(record.first)
        elif record.kind == Kind.FOUND:
            alive.add(record.process)
        elif record.kind == Kind.SWITCH and record.second == ProcessState.ZOMBIE:
            alive.discard(record.first)
        if record.process in alive or record.kind not in (Kind.MIGRATE, Kind.ATTRIBUTE):
            records.append(record._replace(sequence=len(records)))
    return records


def array_of(records: list[Record]) -> Records:
    """Returns records as a follower delivers them."""
    return np.frombuffer(b"".join(record.pack() for record in records), RECORD)


def records_of(trace: Trace) -> Records:
    """Returns the records of a loaded trace in order."""
    records = np.zeros(len(trace.events), RECORD)
    for field, column in (
        ("time", "time_ns"), ("sequence", "sequence"), ("process", "process"), ("kind", "kind"),
        ("cpu", "cpu"), ("first", "first"), ("second", "second"),
    ):  # fmt: skip
        records[field] = trace.column(column).astype(RECORD[field])
    return records


def fed(trace: Trace, records: Records, parts: int = 1, window_ns: int = FOREVER_NS) -> Model:
    """Returns a model that received the records in some parts, with a frame after each."""
    model = Model(trace.header, "", "equal", window_ns)
    for part in np.array_split(records, parts):
        model.feed(part)
        model.frame()
    return model


def assert_same_metrics(frame: ModelFrame, trace: Trace) -> None:
    """For a whole trace without marks, all figures of schedlab.metrics are equal to the bit."""
    full_metrics = compute(trace)
    summary = full_metrics.summary.row(0, named=True)
    actual = frame["metrics"]
    seconds = summary["elapsed_ns"] / 1e9
    expected: dict[str, Any] = {
        "window_ns": summary["elapsed_ns"],
        "turnaround_ns": summary["turnaround_mean_ns"],
        "response_ns": summary["response_mean_ns"],
        "waiting_ns": summary["waiting_mean_ns"],
        "wakeup_median_ns": summary["wakeup_latency_median_ns"],
        "wakeup_p99_ns": summary["wakeup_latency_p99_ns"],
        "wakeup_maximum_ns": summary["wakeup_latency_max_ns"],
        "wakeups": summary["wakeups"],
        "finished": summary["finished"],
        "fairness": summary["fairness_share"],
        "fairness_turnaround": summary["fairness_turnaround"],
        "overhead": summary["overhead_share"],
    }
    if seconds:
        expected["throughput_per_s"] = summary["throughput_per_second"]
        expected["utilisation"] = full_metrics.cpus["running_ns"].sum() / (
            trace.header.cpus * summary["elapsed_ns"]
        )
        expected["switches_per_s"] = summary["context_switches"] / seconds
        expected["migrations_per_s"] = summary["migrations"] / seconds
    for name, value in expected.items():
        assert actual[name] == value, name  # type: ignore[literal-required]


def assert_same_processes(frame: ModelFrame, trace: Trace) -> None:
    """Compares each live process: times, selections, share and ideal share."""
    processes = compute(trace).processes
    last = {row["pid"]: row for row in processes.to_dicts()}
    columns = frame["processes"]
    for index, pid in enumerate(columns["pid"]):
        row = last[pid]
        if row["exit_ns"] is not None:
            continue
        assert columns["name"][index] == row["name"]
        # The monitor does not know the end: a process that has not run yet is in the group that it
        # would inherit.
        assert row["group"] in (columns["group"][index], NEVER_RAN)
        assert columns["run_ns"][index] == row["running_ns"]
        assert columns["waiting_ns"][index] == row["waiting_ns"]
        assert columns["selections"][index] == row["selections"]
        if row["share"] is not None:
            assert columns["share"][index] == row["share"]
        if row["ideal_share"] is not None:
            assert columns["ideal"][index] == row["ideal_share"]


@settings(PATIENT, max_examples=20)
@given(script=SCRIPTS, source=RANDOMS, parts=st.integers(1, 5))
def test_metrics_of_a_full_trace_equal_the_library(
    script: Script, source: random.Random, parts: int
) -> None:
    """Random machines, fed in any number of parts."""
    records = happened(source, script)
    trace = load(records, script)
    frame = fed(trace, array_of(records), parts).frame()
    assert_same_metrics(frame, trace)
    assert_same_processes(frame, trace)


@settings(PATIENT, max_examples=30)
@given(
    script=SCRIPTS,
    source=RANDOMS,
    parts=st.integers(1, 8),
    window_ns=st.sampled_from([1, 300, 2_000, 10_000, 40_000]),
)
def test_a_sliding_window_is_what_all_records_so_far_give(
    script: Script, source: random.Random, parts: int, window_ns: int
) -> None:
    """After each part of the trace, recomputes each figure from the beginning."""
    check_sliding(script, source, parts, window_ns)


@pytest.mark.xfail(strict=True, reason="the fairness of a short window differs; not explained")
def test_fairness_of_a_short_window() -> None:
    """The model and the oracle differ, 0.339 and 0.288: found by a random search."""
    script = Script(1, 83, cycles_per_second=1_000_000_000, marks=False, drain=False, pids=0)
    check_sliding(replace(script, initial_tasks=0), random.Random(5), 1, 300)


def check_sliding(script: Script, source: random.Random, parts: int, window_ns: int) -> None:
    records = happened(source, script)
    trace = load(records, script)
    model = Model(trace.header, "", "equal", window_ns)
    fed_until = 0
    for part in np.array_split(array_of(records), parts):
        if len(part) == 0:
            continue
        model.feed(part)
        fed_until += len(part)
        naive = Sliding(records[:fed_until], script.cpus, script.cycles_per_second, window_ns)
        frame = model.frame()
        assert_sliding(frame, naive)
        assert frame["metrics"]["idle_while_queued_ns"] == idle_while_queued(
            records[:fed_until], script.cpus, naive.begin
        )


def assert_sliding(frame: ModelFrame, naive: Sliding) -> None:
    """Compares metrics, processes and CPUs."""
    rows = naive.processes()
    workload = [row for row in rows if row["role"] == "workload"]
    latencies = [span for row in workload for span in naive.latencies(row["life"])]
    turnarounds = [row["turnaround_ns"] for row in workload if row["turnaround_ns"] is not None]
    cpu_rows = naive.cpu_rows()
    seconds = naive.elapsed / 1e9
    relative = [
        row["share"] / row["ideal_share"]
        for row in workload
        if row["ideal_share"] and row["share"] is not None
    ]
    expected: dict[str, Any] = {
        "window_ns": naive.elapsed,
        "turnaround_ns": mean(turnarounds),
        "response_ns": mean(naive.responses()),
        "waiting_ns": mean([row["waiting_ns"] for row in workload]),
        "wakeup_median_ns": np.quantile(latencies, 0.5) if latencies else None,
        "wakeup_p99_ns": np.quantile(latencies, 0.99) if latencies else None,
        "wakeup_maximum_ns": max(latencies, default=None),
        "wakeups": sum(row["wakeups"] for row in workload),
        "finished": sum(row["exit_ns"] is not None for row in workload),
        "fairness": jain_index(relative),
        "fairness_turnaround": jain_index(turnarounds),
    }
    if seconds:
        running = sum(row["running_ns"] for row in cpu_rows)
        expected["utilisation"] = running / (naive.cpus * naive.elapsed)
        expected["throughput_per_s"] = expected["finished"] / seconds
        expected["switches_per_s"] = sum(row["context_switches"] for row in cpu_rows) / seconds
        expected["migrations_per_s"] = sum(row["migrations"] for row in workload) / seconds
        overheads = [row["overhead_share"] for row in cpu_rows]
        expected["overhead"] = None if None in overheads else sum(overheads) / naive.cpus
    for name, value in expected.items():
        assert frame["metrics"][name] == pytest.approx(value, rel=1e-9, abs=1e-9), name  # type: ignore[literal-required]
    shown = {pid: index for index, pid in enumerate(frame["processes"]["pid"])}
    for row in rows:
        if row["exit_ns"] is None:
            place = shown[row["pid"]]
            if row.get("share") is not None:
                assert frame["processes"]["share"][place] == pytest.approx(row["share"])
            if row.get("ideal_share") is not None:
                assert frame["processes"]["ideal"][place] == pytest.approx(row["ideal_share"])
    if naive.elapsed:
        for cpu, row in zip(frame["cpus"], cpu_rows, strict=True):
            assert cpu["busy"] == pytest.approx(row["running_ns"] / naive.elapsed)


def mean(values: list[int]) -> float | None:
    """Returns the mean, or None for no values."""
    return sum(values) / len(values) if values else None


WORKLOAD = """
program root
  loop 4
    fork hog
    fork talker
    sleep 3ms
  end
  sleep 60ms
program hog
  tickets 3
  weight 8
  priority 6
  run 20ms
  loop
    run 3ms
    sleep 1ms
  end
program talker
  tickets 2
  loop
    run 40us
    sleep 900us
    yield
    run 10us
  end
"""

POLICIES = (
    "rr", "rr:table-scan", "lottery", "lottery:equal-lfsr", "mlfq", "priority", "stride", "wrr",
    "hybrid",
)  # fmt: skip


def simulated(folder: Path, policy: str, cpus: int, queues: bool = True) -> Trace:
    """Returns a run of 60 ms that contains every kind of event visible to a policy."""
    path = folder / f"{policy}-{cpus}-{queues}.bin"
    with Simulator(
        WORKLOAD, policy=policy, cpus=cpus, tick_ns=500_000, trace=path, trace_queues=queues
    ) as machine:
        machine.run(60_000_000)
    return read(path)


@pytest.mark.parametrize("cpus", [1, 3])
@pytest.mark.parametrize("policy", POLICIES)
def test_simulated_runs_are_measured_as_by_the_house(
    tmp_path: Path, policy: str, cpus: int
) -> None:
    """All policies, with queue records."""
    trace = simulated(tmp_path, policy, cpus)
    frame = fed(trace, records_of(trace), 7).frame()
    assert_same_metrics(frame, trace)
    assert_same_processes(frame, trace)
    assert frame["policy"] == policy
    assert frame["shared_queue"] == (policy in ("rr:table-scan", "lottery:equal-lfsr"))
    assert frame["levels"] == (policy in ("mlfq", "priority", "hybrid"))


@pytest.mark.parametrize("policy", ["rr:table-scan", "lottery", "mlfq"])
def test_queues_are_the_same_without_queue_events(tmp_path: Path, policy: str) -> None:
    """The exception is a forked process that has neither run nor woken: only QUEUED names its
    queue.
    """
    trace = simulated(tmp_path, policy, 3)
    records = records_of(trace)
    explicit, derived = (Model(trace.header, policy, "equal") for _ in range(2))
    compared = 0
    placed: set[int] = set()
    for part in np.array_split(records, 60):
        placement_mask = is_kind(part["kind"], Kind.SWITCH, Kind.WAKEUP, Kind.MIGRATE)
        placed.update(part["process"][placement_mask].tolist())
        explicit.feed(part)
        derived.feed(part[part["kind"] != Kind.QUEUED])
        for cpu, guessed in zip(explicit.frame()["cpus"], derived.frame()["cpus"], strict=True):
            queue = {pid for pid, *_ in cpu["queue"]} & placed
            assert queue == {pid for pid, *_ in guessed["queue"]} & placed
            compared += len(queue)
    assert compared > 50


def test_the_time_line_has_every_run_once(tmp_path: Path) -> None:
    """The frames' runs, merged by CPU and start, cover each CPU's running time; so does the
    past.
    """
    trace = simulated(tmp_path, "mlfq", 2)
    model = Model(trace.header, "mlfq", "tickets")
    drawn: dict[tuple[int, int], tuple[int, ...]] = {}
    for part in np.array_split(records_of(trace), 20):
        model.feed(part)
        drawn.update({(run[0], run[2]): run for run in model.frame()["timeline"]["runs"]})
    past = model.history()["timeline"]
    assert set(past["runs"]) == set(drawn.values()) and past["thinned"] == 0
    intervals = cpu_intervals(trace).filter(pl.col("pid") != 0)
    for cpu in range(2):
        runs = sorted(run[2:4] for run in drawn.values() if run[0] == cpu)
        assert all(one[1] <= other[0] for one, other in pairwise(runs))
        of_cpu = intervals.filter(pl.col("cpu") == cpu)
        ran = (of_cpu["end_ns"] - of_cpu["begin_ns"]).sum()
        assert sum(end - begin for begin, end in runs) == ran
    assert {run[5] for run in drawn.values()} >= {1, 2, 3}


def test_history_has_what_the_frames_showed(tmp_path: Path) -> None:
    """Otherwise a page would show it twice as soon as the next frame reports it."""
    trace = simulated(tmp_path, "mlfq", 2)
    model = Model(trace.header, "mlfq", "tickets")
    first, then = np.array_split(records_of(trace), 2)
    model.feed(first)
    model.frame()
    before = model.history()
    model.feed(then)
    assert model.history() == before
    new = model.frame()
    assert not {decision["number"] for decision in new["decisions"]} & {
        decision["number"] for decision in before["decisions"]
    }
    assert all(mark not in before["marks"] for mark in new["marks"])


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("mlfq", "level "),
        ("hybrid", " at level "),
        ("lottery:linux", " of "),
        ("stride", "pass"),
        ("wrr", "next in turn"),
    ],
)
def test_decisions_say_why_in_words(tmp_path: Path, policy: str, words: str) -> None:
    """The words match the meaning of the annotation in the policy's source."""
    trace = simulated(tmp_path, policy, 1)
    model = fed(trace, records_of(trace))
    decisions = model.history()["decisions"]
    assert decisions and all(words in one["text"] for one in decisions if one["waited"])
    numbers = [one["number"] for one in decisions]
    assert numbers == sorted(set(numbers))
    assert all(len(one["candidates"]) == min(one["waited"], 16) for one in decisions)


@pytest.mark.long
def test_memory_stays_the_same_however_long_it_goes_on() -> None:
    """Forks, runs and ends continue endlessly: memory stays at the window's needs."""
    header = Header(1, 1_000_000, 1_000_000_000, 1)
    model = Model(header, "rr", "equal", window_ns=5_000_000)
    life = np.zeros(7, RECORD)
    life["kind"] = [
        Kind.FORK, Kind.SCHEDULER_ENTER, Kind.SWITCH, Kind.SCHEDULER_EXIT, Kind.EXIT,
        Kind.SCHEDULER_ENTER, Kind.SWITCH,
    ]  # fmt: skip
    lives, turns = 1_000, 6
    memory = []
    for turn in range(turns):
        records = np.tile(life, lives)
        number = np.repeat(np.arange(lives), 7)
        pid = 2 + (number + turn * lives) % 1_500
        place = np.tile(np.arange(7), lives)
        records["time"] = (turn * lives + number) * 7_000 + place * 1_000
        records["first"] = np.where(np.isin(place, (0, 6)), pid, 0)
        records["process"] = np.where(np.isin(place, (2, 3, 4, 5)), pid, 0)
        records["second"] = np.where(place == 6, ProcessState.ZOMBIE, 0)
        for part in np.array_split(records, 10):
            model.feed(part)
            frame = model.frame(max_runs=20)
        gc.collect()
        memory.append(psutil.Process().memory_info().rss)
    assert max(memory[2:]) - memory[1] < 1_000_000
    assert frame["events"] == turns * 7 * lives


@pytest.mark.parametrize("name", ["perf-7.3.txt", "ftrace.txt"])
def test_recordings_of_linux_are_measured_as_by_the_house(name: str, tmp_path: Path) -> None:
    """They begin in the middle of activity, contain neither queues nor scheduler entries, and
    their clocks differ.
    """
    trace = read(imported(name, tmp_path).folder / "trace.bin")
    frame = fed(trace, records_of(trace), 7).frame()
    assert_same_metrics(frame, trace)
    assert_same_processes(frame, trace)
    assert frame["metrics"]["overhead"] is None


def test_records_that_were_lost_are_no_end_of_it(tmp_path: Path) -> None:
    """The gaps have any size: nothing fails, and the remaining data is consistent."""
    trace = simulated(tmp_path, "mlfq", 3)
    records = records_of(trace)
    source = random.Random(3)
    for _ in range(20):
        retained = np.array([source.random() < 0.8 for _ in records])
        retained[source.randrange(len(records)) :][:200] = False
        frame = fed(trace, records[retained], 5).frame()
        running = [cpu["running"] for cpu in frame["cpus"] if cpu["running"]]
        assert set(running) <= set(frame["processes"]["pid"])
        assert 0 <= frame["metrics"]["utilisation"] <= 1
        assert np.min(frame["processes"]["run_ns"], initial=0) >= 0


def test_status_is_shown_until_the_trace_has_more() -> None:
    """Only the status reports slices; they count down while the process runs."""
    model = Model(Header(1, 1_000_000, 1_000_000_000, 1), "rr", "equal")
    model.feed(
        array_of(
            [
                Record(0, 0, 0, Kind.START, 0, 0, 0),
                Record(0, 1, 0, Kind.FORK, 0, 1, 0),
                Record(1000, 2, 1, Kind.SWITCH, 0, 0, 0),
            ]
        )
    )
    rows = (
        StatusRow("init", 1, "running", 3, 10_000, 7),
        StatusRow("x", 9, "sleeping", 1, None, 1),
    )
    model.apply_status(Status("rr", {}, rows))
    columns = model.frame()["processes"]
    assert (columns["priority"], columns["tickets"]) == ([3], [7])
    assert columns["slice_left_ns"] == [10_000]
    model.reach(5_000)
    assert model.frame()["processes"]["slice_left_ns"] == [6_000]
    model.feed(array_of([Record(5_000, 3, 1, Kind.ATTRIBUTE, 0, AttributeKind.TICKETS, 4)]))
    frame = model.frame()
    assert frame["processes"]["tickets"] == [4]
    assert [mark["kind"] for mark in frame["marks"]] == ["attribute"]
    model.reach(90_000)
    assert model.frame()["processes"]["slice_left_ns"] == [0]


@pytest.mark.parametrize(
    ("policy", "tunable", "ticks"), [("mlfq", "boost", 50), ("priority", "aging_interval", 20)]
)
def test_what_lifts_tasks_that_wait_lifts_them_in_the_picture_too(
    tmp_path: Path, policy: str, tunable: str, ticks: int
) -> None:
    """The level shown for a waiting task equals its level at the next pick. The pick must
    precede any other record of the task, and the next boost or raise.
    """
    path = tmp_path / "trace.bin"
    tick_ns = 1_000_000
    with Simulator(
        format_workload(
            workload_files.read_workload_file(ROOT / "workloads" / "files" / "study4-trace.json"),
            1,
            tick_ns,
        ),
        policy=policy,
        tunables={tunable: ticks},
        costs="none",
        trace=path,
        trace_queues=True,
    ) as simulator:
        simulator.run(1_000_000_000)
    trace = read(path)
    records = records_of(trace)
    model = Model(trace.header, policy, "equal", FOREVER_NS)
    shown = lifted = 0
    for index in range(0, len(records), 31):
        model.feed(records[index : index + 31])
        frame = model.frame()
        columns = frame["processes"]
        epoch = frame["now_ns"] // (ticks * tick_ns)
        for pid, state, level in zip(
            columns["pid"], columns["state"], columns["level"], strict=True
        ):
            next_record = next_word(records[index + 31 :], pid)
            if (
                state != 0
                or next_record is None
                or next_record["time"] // (ticks * tick_ns) != epoch
            ):
                continue
            if next_record["kind"] == Kind.DECISION:
                assert int(next_record["second"]) == level
                shown += 1
                queued = records[: index + 31]
                last = queued[(queued["process"] == pid) & (queued["kind"] == Kind.QUEUED)][-1]
                lifted += int(last["second"]) != level
    assert shown > 20
    assert lifted > 0


def next_word(records: Records, pid: int) -> Any:
    """Returns the next record that reports a process's level."""
    matches = records[
        (records["process"] == pid)
        & ((records["kind"] == Kind.DECISION) | (records["kind"] == Kind.QUEUED))
    ]
    return matches[0] if len(matches) else None

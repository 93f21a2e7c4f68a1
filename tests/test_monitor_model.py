# SPDX-License-Identifier: MIT
"""The live model against schedlab.metrics, and against slow recomputations from the whole trace."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive_model import Queues, Sliding, idle_while_queued
from schedlab.metrics import compute, jain_index
from schedlab.monitor.model import Model, ModelFrame
from schedlab.trace import Header, Kind, ProcessState, Trace
from schedlab.trace.follow import Records
from schedlab.trace.format import RECORD
from trace_simulator import PATIENT, Record, Script, load, simulate

FOREVER_NS = 1 << 60

SCRIPTS = st.builds(
    Script,
    cpus=st.integers(1, 4),
    steps=st.integers(0, 120),
    cycles_per_second=st.sampled_from([1_000_000_000, 10_000_000]),
    marks=st.just(False),
    drain=st.booleans(),
    pids=st.sampled_from([0, 4]),
    found=st.sampled_from([0, 0, 3, 7]),
)


def happened(source: random.Random, script: Script) -> list[Record]:
    """A random trace, in which nothing is said of those that have ended."""
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
    """As a follower gives them."""
    return np.frombuffer(b"".join(record.pack() for record in records), RECORD)


def records_of(trace: Trace) -> Records:
    """The records of a trace that was read, in their order."""
    records = np.zeros(len(trace.events), RECORD)
    for field, column in (
        ("time", "time_ns"), ("sequence", "sequence"), ("process", "process"), ("kind", "kind"),
        ("cpu", "cpu"), ("first", "first"), ("second", "second"),
    ):  # fmt: skip
        records[field] = trace.column(column).astype(RECORD[field])
    return records


def fed(trace: Trace, records: Records, parts: int = 1, window_ns: int = FOREVER_NS) -> Model:
    """A model that got the records in some parts, with a frame after each."""
    model = Model(trace.header, "", "equal", window_ns)
    for part in np.array_split(records, parts):
        model.feed(part)
        model.frame()
    return model


def assert_same_metrics(frame: ModelFrame, trace: Trace) -> None:
    """Over the whole of a trace without marks, all figures that schedlab.metrics has, too."""
    whole = compute(trace)
    summary = whole.summary.row(0, named=True)
    found = frame["metrics"]
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
        expected["utilisation"] = whole.cpus["running_ns"].sum() / (
            trace.header.cpus * summary["elapsed_ns"]
        )
        expected["switches_per_s"] = summary["context_switches"] / seconds
        expected["migrations_per_s"] = summary["migrations"] / seconds
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-9), name  # type: ignore[literal-required]


def assert_same_processes(frame: ModelFrame, trace: Trace) -> None:
    """Each that lives: its times, selections, share and ideal share."""
    whole = compute(trace).processes
    last = {row["pid"]: row for row in whole.to_dicts()}
    columns = frame["processes"]
    for place, pid in enumerate(columns["pid"]):
        row = last[pid]
        if row["exit_ns"] is not None:
            continue
        assert columns["name"][place] == row["name"]
        assert columns["group"][place] == row["group"]
        assert columns["run_ns"][place] == row["running_ns"]
        assert columns["waiting_ns"][place] == row["waiting_ns"]
        assert columns["selections"][place] == row["selections"]
        if row["share"] is not None:
            assert columns["share"][place] == pytest.approx(row["share"], abs=1e-12)
        if row["ideal_share"] is not None:
            assert columns["ideal"][place] == pytest.approx(row["ideal_share"], abs=1e-12)


@settings(PATIENT, max_examples=30)
@given(script=SCRIPTS, source=st.randoms(use_true_random=False), parts=st.integers(1, 5))
def test_over_a_whole_trace_metrics_are_those_of_the_house(
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
    source=st.randoms(use_true_random=False),
    parts=st.integers(1, 8),
    window_ns=st.sampled_from([1, 300, 2_000, 10_000, 40_000]),
)
def test_a_sliding_window_is_what_all_records_so_far_give(
    script: Script, source: random.Random, parts: int, window_ns: int
) -> None:
    """After each part, each figure is computed anew from the beginning."""
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
    """Metrics, processes and CPUs."""
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
    shown = {pid: place for place, pid in enumerate(frame["processes"]["pid"])}
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
    """None of nothing."""
    return sum(values) / len(values) if values else None


@settings(PATIENT, max_examples=30)
@given(
    script=SCRIPTS,
    source=st.randoms(use_true_random=False),
    parts=st.integers(1, 4),
    window_ns=st.sampled_from([2_000, 20_000, FOREVER_NS]),
)
def test_waits_are_explained_to_the_nanosecond(
    script: Script, source: random.Random, parts: int, window_ns: int
) -> None:
    """Who ran meanwhile, on which CPU; all of it adds up."""
    records = happened(source, script)
    cut = source.randrange(1, len(records) + 1)
    trace = load(records, script)
    model = fed(trace, array_of(records[:cut]), parts, window_ns)
    naive = Queues(records[:cut], script.cpus)
    begin = max(records[0].time, model.now_ns - window_ns)
    living = model.frame()["processes"]["pid"]
    for pid in living[:3]:
        found, should = model.explain(pid), naive.explain(pid, begin)
        assert found["total_ns"] == should["total_ns"]
        parts_found: Counter[tuple[int, int]] = Counter()
        for one in found["parts"]:  # A PID that is used again is another process.
            parts_found[one["cpu"], one["pid"]] += one["ran_ns"]
        assert parts_found == should["parts"]
        assert found["idle_elsewhere_ns"] == should["idle_elsewhere_ns"]
        assert found["parts"] == sorted(found["parts"], key=lambda one: -one["ran_ns"])
        for wait in found["waits"]:
            assert wait["end_ns"] >= wait["begin_ns"] >= begin
        if len(found["waits"]) < 50:
            assert (
                sum(one["end_ns"] - one["begin_ns"] for one in found["waits"])
                == (found["total_ns"])
            )


def test_nobody_is_not_explained() -> None:
    """KeyError, as a dictionary."""
    model = Model(Header(1, 1_000_000, 1_000_000_000, 1), "rr", "equal")
    with pytest.raises(KeyError):
        model.explain(7)
    frame = model.frame()
    assert frame["cpus"][0]["running"] == 0 and len(frame["processes"]["pid"]) == 0

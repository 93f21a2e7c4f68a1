# SPDX-License-Identifier: MIT
"""The live model against schedlab.metrics, and against slow recomputations from the whole trace."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedlab.metrics import compute
from schedlab.monitor.model import Model, ModelFrame
from schedlab.trace import Trace
from schedlab.trace.follow import Records
from schedlab.trace.format import RECORD
from trace_simulator import PATIENT, Record, Script, load, simulate

FOREVER_NS = 1 << 60

SCRIPTS = st.builds(
    Script,
    cpus=st.integers(1, 4),
    steps=st.integers(0, 300),
    cycles_per_second=st.sampled_from([1_000_000_000, 10_000_000]),
    marks=st.just(False),
    drain=st.booleans(),
    pids=st.sampled_from([0, 4]),
    found=st.sampled_from([0, 0, 3, 7]),
)


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


@settings(PATIENT, max_examples=100)
@given(script=SCRIPTS, source=st.randoms(use_true_random=False), parts=st.integers(1, 5))
def test_over_a_whole_trace_metrics_are_those_of_the_house(
    script: Script, source: random.Random, parts: int
) -> None:
    """Random machines, fed in any number of parts."""
    records = simulate(source, script)
    trace = load(records, script)
    frame = fed(trace, array_of(records), parts).frame()
    assert_same_metrics(frame, trace)
    assert_same_processes(frame, trace)

# SPDX-License-Identifier: MIT
"""Tests lag against a slow, obvious computation, and against a case computed by hand."""

from __future__ import annotations

import random
from collections import defaultdict
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedlab.metrics import Weights, ideal_shares, lags, measured_window, state_intervals
from schedlab.metrics.lives import attribute_at, lives
from schedlab.metrics.processes import process_table
from schedlab.metrics.shares import ATTRIBUTE_DEFAULTS, KINDS, NICE_WEIGHTS, weight_of
from schedlab.paths import ROOT
from schedlab.trace import AttributeKind, Kind, MarkKind, ProcessState, Trace
from trace_simulator import PATIENT, RANDOMS, Record, Script, load, simulate


def naive_lags(trace: Trace, choice: Weights) -> dict[int, float]:
    """Returns the lag of each life at the window's end, computed interval by interval."""
    who, window = lives(trace), measured_window(trace)
    workload = set(process_table(trace, who, window).filter(pl.col("role") == "workload")["life"])
    stays = []
    for row in state_intervals(trace, who).to_dicts():
        begin = max(row["begin_ns"], window.begin_ns)
        end = min(row["end_ns"], window.end_ns)
        if row["life"] in workload and row["state"] != "blocked" and begin < end:
            stays.append((row["life"], row["state"] == "running", begin, end, row["begin_row"]))
    times = trace.column("time_ns")
    changed = set(times[trace.column("kind") == Kind.ATTRIBUTE].tolist())
    moments = sorted({time for stay in stays for time in stay[2:4]} | changed)
    lag_by_life: dict[int, float] = defaultdict(float)
    for begin, end in pairwise(moments):
        active_stays = [stay for stay in stays if stay[2] <= begin and end <= stay[3]]
        if not active_stays:
            continue
        set_by_then = int(np.searchsorted(times, begin, side="right")) - 1
        weights = [
            weight(trace, choice, stay[0], max(stay[4], set_by_then)) for stay in active_stays
        ]
        cpus = sum(stay[1] for stay in active_stays)
        due = (
            ideal_shares(weights, [1.0] * len(active_stays), cpus)
            if cpus
            else [0.0] * len(active_stays)
        )
        for stay, share in zip(active_stays, due, strict=True):
            lag_by_life[stay[0]] += (end - begin) * (float(share) - stay[1])
    return lag_by_life


def weight(trace: Trace, choice: Weights, life: int, row: int) -> int:
    if choice == "equal":
        return 1
    kind, who = KINDS[choice], lives(trace)
    ids, rows = pl.Series([life]).to_numpy(), pl.Series([row]).to_numpy()
    value = attribute_at(trace, who, kind, ids, rows, ATTRIBUTE_DEFAULTS[kind])
    return int(weight_of(kind, value)[0])


@settings(PATIENT, max_examples=25)
@given(
    script=st.builds(Script, cpus=st.integers(1, 4), steps=st.integers(20, 120)),
    source=RANDOMS,
    choice=st.sampled_from(("equal", "tickets", "weight")),
)
def test_lag_is_that_of_a_slow_computation(
    script: Script, source: random.Random, choice: Weights
) -> None:
    trace = load(simulate(source, script), script)
    lag_table = lags(trace, choice)
    last = dict(lag_table.group_by("life").agg(pl.col("lag_ns").last()).iter_rows())
    expected = naive_lags(trace, choice)
    assert set(last) == set(expected)
    for life, lag in expected.items():
        assert last[life] == pytest.approx(lag, abs=1e-3)
    assert sum(last.values()) == pytest.approx(0, abs=1e-2)


def test_what_is_owed_by_hand() -> None:
    """Nice 0 competes with nice 5, and is entitled to 1024 ÷ 1359 of the CPU."""
    story = [
        (0, Kind.START, 0, 0, 0),
        (0, Kind.POLICY, int(AttributeKind.NICE), 0, 0),
        (0, Kind.FORK, 0, 1, 0),
        (0, Kind.MARK, 1, int(MarkKind.BEGIN), 0),
        (0, Kind.FORK, 1, 2, 0),
        (0, Kind.FORK, 1, 3, 0),
        (0, Kind.ATTRIBUTE, 3, int(AttributeKind.NICE), 5),
        (0, Kind.SWITCH, 2, 0, 0),
        (1359, Kind.SWITCH, 3, 2, ProcessState.RUNNABLE),
        (2718, Kind.SWITCH, 2, 3, ProcessState.RUNNABLE),
        (4077, Kind.END, 0, 0, 0),
    ]
    records = [
        Record(time, index, process, kind, 0, first, second)
        for index, (time, kind, process, first, second) in enumerate(story)
    ]
    lag_table = lags(load(records, Script(cpus=1))).join(
        pl.DataFrame({"life": [1, 2], "pid": [2, 3]}), on="life"
    )
    of = {
        (pid, time): lag
        for pid, time, lag in lag_table.select("pid", "time_ns", "lag_ns").iter_rows()
    }
    assert of[2, 1359] == pytest.approx(1024 - 1359)
    assert of[2, 2718] == pytest.approx(2 * 1024 - 1359)
    assert of[3, 4077] == pytest.approx(3 * 335 - 1359)


def test_weights_of_nice_values_are_those_of_policies() -> None:
    header = (ROOT / "policies" / "nice_weights.h").read_text()
    table = header.split("= {")[1].split("};")[0]
    lines = [line.split("/*")[0] for line in table.splitlines()]
    assert [int(number) for number in ",".join(lines).split(",") if number.strip()] == list(
        NICE_WEIGHTS
    )

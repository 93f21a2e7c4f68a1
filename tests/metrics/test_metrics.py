# SPDX-License-Identifier: MIT
"""Tests metrics against a slow, obvious implementation, and against cases computed by hand."""

from __future__ import annotations

import io
import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from rich.console import Console

from naive_metrics import Naive
from schedlab import metrics
from schedlab.commands.metric_tables import tables
from schedlab.errors import FileRefused
from schedlab.metrics import (
    NoResult,
    compute,
    ideal_shares,
    jain_index,
    measure,
)
from schedlab.metrics.model import TABLES
from schedlab.metrics.tails import PROCESSES_NEEDED, QUANTILES, processes_needed, tails
from schedlab.trace import AttributeKind, Kind, MarkKind, read, validate
from trace_simulator import PATIENT, RANDOMS, Record, Script, load, simulate, write

SCRIPTS = st.builds(
    Script,
    cpus=st.integers(1, 5),
    steps=st.integers(0, 300),
    first_sequence=st.sampled_from([0, 2**32 - 100]),
    cycles_per_second=st.sampled_from([1_000_000_000, 10_000_000]),
    marks=st.booleans(),
    drain=st.booleans(),
    pids=st.sampled_from([0, 4]),
    initial_tasks=st.sampled_from([0, 0, 3, 7]),
    queues=st.booleans(),
)


def assert_same(actual: Any, expected: Any, location: str) -> None:
    """Checks equality, up to floating-point error."""
    if isinstance(expected, float) and actual is not None:
        assert math.isclose(actual, expected, rel_tol=1e-9, abs_tol=1e-9), location
    else:
        assert actual == expected, location


def assert_table(table: pl.DataFrame, expected: list[dict[str, Any]], skipped: set[str]) -> None:
    """Compares all rows, and all columns except the skipped ones."""
    rows = table.to_dicts()
    assert len(rows) == len(expected)
    for number, (row, should) in enumerate(zip(rows, expected, strict=True)):
        assert set(row) - skipped == set(should) - {"life"}
        for column, value in row.items():
            if column not in skipped:
                assert_same(value, should[column], f"row {number}, {column}")


SHARES = ("weight", "demand_cpus", "share", "ideal_share", "share_error_points")
OF_THE_HEADER = {
    "cpus",
    "seed",
    "tick_ns",
    "clock_step_ns",
    "truncated",
    "lost_records",
    "elapsed_cycles",
}


@settings(PATIENT, max_examples=40)
@given(script=SCRIPTS, source=RANDOMS)
def test_all_metrics_equal_the_naive_oracle(script: Script, source: random.Random) -> None:
    """Every table, every row, every column."""
    records = simulate(source, script)
    trace = load(records, script)
    run_metrics = compute(trace)
    naive = Naive(records, script.cpus, script.cycles_per_second)
    processes = naive.processes()
    for row in processes:
        for column in SHARES:
            row.setdefault(column, None)
    assert_table(run_metrics.processes, processes, set())
    assert_table(run_metrics.groups, naive.groups(processes), set())
    assert_table(run_metrics.cpus, naive.cpu_rows(), set())
    assert_table(run_metrics.values, naive.values(), set())
    assert_table(run_metrics.said, naive.said(), set())
    assert_table(run_metrics.summary, [naive.summary(processes)], OF_THE_HEADER)
    json.dumps(run_metrics.to_dict())


@settings(PATIENT, max_examples=25)
@given(script=SCRIPTS, source=RANDOMS)
def test_intervals_cover_all_cpus_and_lives(script: Script, source: random.Random) -> None:
    """No CPU and no process is ever in two states, or in none."""
    trace = load(simulate(source, script), script)
    cpus = metrics.cpu_intervals(trace)
    for part in (*cpus.partition_by("cpu"), *metrics.state_intervals(trace).partition_by("life")):
        assert (part["begin_ns"][1:] == part["end_ns"][:-1]).all()
    running = metrics.state_intervals(trace).filter(pl.col("state") == "running")
    same = ["cpu", "pid", "begin_ns", "end_ns"]
    busy = cpus.filter(pl.col("pid") != 0)
    assert sorted(running.select(same).rows()) == sorted(busy.select(same).rows())


def test_interval_causes() -> None:
    """Intervals name why processes stop and continue."""
    script = Script(cpus=3, steps=5000)
    states = metrics.state_intervals(load(simulate(random.Random(5), script), script))
    causes = {
        state: set(states.filter(pl.col("state") == state)["cause"])
        for state in ("runnable", "running", "blocked")
    }
    assert causes["running"] == {"picked"}
    assert {"forked", "woken", "yielded", "preempted: slice"} <= causes["runnable"]
    assert {"blocked: disk", "blocked: sleep", "blocked: child"} <= causes["blocked"]
    assert "blocked" not in causes["blocked"]
    woken = states.filter(pl.col("cause").is_in(["woken", "forked"]))
    assert woken["by"].null_count() == 0
    assert states.filter(pl.col("cause") == "picked")["by"].null_count() > 0


# --- the ideal share


@st.composite
def demands(draw: st.DrawFn) -> tuple[list[int], list[float], int]:
    """Returns weights, demands and CPUs."""
    size = draw(st.integers(1, 12))
    weights = draw(st.lists(st.integers(1, 100), min_size=size, max_size=size))
    wishes = draw(st.lists(st.floats(0, 1.5), min_size=size, max_size=size))
    return weights, wishes, draw(st.integers(1, 8))


@PATIENT
@given(demands())
def test_ideal_share_is_max_min(case: tuple[list[int], list[float], int]) -> None:
    """Checks the defining property of a weighted max-min allocation, without an algorithm."""
    weights, wishes, cpus = case
    got = ideal_shares(weights, wishes, cpus)
    most = np.minimum(wishes, 1)
    assert (got >= 0).all()
    assert (got <= most + 1e-12).all()
    assert got.sum() == pytest.approx(min(cpus, most.sum()))
    level = got / np.array(weights)
    for who in range(len(got)):
        if got[who] < most[who] - 1e-9:
            # If a process gets less than its demand, no process has a higher level that it could
            # gain from.
            assert (level <= level[who] + 1e-9).all()


@settings(PATIENT, max_examples=30)
@given(
    weights=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    data=st.data(),
    cpus=st.integers(1, 2),
)
def test_ideal_share_by_trying_all(weights: list[int], data: st.DataObject, cpus: int) -> None:
    """Of all allocations in small steps, none has a higher lowest level, then second lowest,
    and so on.
    """
    steps = 12
    size = len(weights)
    wishes = data.draw(st.lists(st.integers(0, steps), min_size=size, max_size=size))
    best: tuple[float, ...] = ()

    def extend(chosen: list[int]) -> None:
        nonlocal best
        if sum(chosen) > cpus * steps:
            return
        if len(chosen) == size:
            best = max(
                best, tuple(sorted(a / steps / w for a, w in zip(chosen, weights, strict=True)))
            )
            return
        for amount in range(wishes[len(chosen)] + 1):
            extend([*chosen, amount])

    extend([])
    got = ideal_shares(weights, [demand / steps for demand in wishes], cpus)
    levels = tuple(sorted(got / np.array(weights)))
    # Small steps can only be worse.
    for mine, other in zip(levels, best, strict=True):
        if not math.isclose(mine, other, abs_tol=1e-9):
            assert mine > other
            break


def test_ideal_shares_of_the_studies() -> None:
    """Cases described in the studies."""
    # One of three equal processes on two CPUs: a third of them, 2/3 of one CPU.
    assert ideal_shares([1, 1, 1], [1, 1, 1], 2) == pytest.approx([2 / 3] * 3)
    # Weights 2:1:1 on two CPUs: the first gets one whole CPU, half of the machine.
    assert ideal_shares([2, 1, 1], [1, 1, 1], 2) == pytest.approx([1, 0.5, 0.5])
    # Two processes on five CPUs: one CPU each, regardless of weights.
    assert ideal_shares([81, 19], [1, 1], 5) == pytest.approx([1, 1])
    # A sleeper's unused time goes to the others, by weight.
    assert ideal_shares([1, 1, 2], [0.1, 1, 1], 1) == pytest.approx([0.1, 0.3, 0.6])
    assert ideal_shares([], [], 1).tolist() == []


# --- fairness


@PATIENT
@given(st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=20))
def test_jain_index_lies_between_one_nth_and_one(values: list[float]) -> None:
    """This holds for any values, large and small."""
    index = jain_index(values)
    assert index is not None
    assert 1 / len(values) - 1e-9 <= index <= 1 + 1e-9


# --- one small trace, computed by hand

Happening = tuple[int, Kind, int, int, int]
"""The fields of a record: time, kind, PID, first, second."""

FIRST_PROCESS: list[Happening] = [
    (0, Kind.START, 0, 0, 0),
    (0, Kind.FORK, 0, 1, 0),
    (10, Kind.SCHEDULER_ENTER, 0, 0, 10),
    (10, Kind.SWITCH, 1, 0, 0),
    (10, Kind.SCHEDULER_EXIT, 1, 0, 20),
]
"""CPU 0 starts and runs the root."""


def recorded(story: list[Happening]) -> list[Record]:
    """Returns a trace of CPU 0, in order of time."""
    return [
        Record(time, index, process, kind, 0, first, second)
        for index, (time, kind, process, first, second) in enumerate(
            sorted(story, key=lambda happening: happening[0])
        )
    ]


def by_hand(end_ns: int = 1100) -> tuple[list[Record], Script]:
    """One CPU: a root forks A and B; A runs 300, is preempted; B blocks and is woken.

    Measured until `end_ns`; both have ended by 900.
    """
    story = [
        *FIRST_PROCESS,
        (100, Kind.MARK, 1, MarkKind.BEGIN, 0),
        (100, Kind.FORK, 1, 2, 0),
        (110, Kind.FORK, 1, 3, 0),
        (120, Kind.BLOCK, 1, 2, 0),
        (120, Kind.SCHEDULER_ENTER, 1, 0, 120),
        (125, Kind.SWITCH, 2, 1, 3),
        (130, Kind.SCHEDULER_EXIT, 2, 0, 130),
        (130, Kind.MARK, 2, MarkKind.GROUP, int.from_bytes(b"A", "little")),
        (420, Kind.SCHEDULER_ENTER, 2, 0, 420),
        (420, Kind.PREEMPT, 2, 1, 0),
        (425, Kind.SWITCH, 3, 2, 1),
        (430, Kind.SCHEDULER_EXIT, 3, 0, 430),
        (430, Kind.MARK, 3, MarkKind.GROUP, int.from_bytes(b"B", "little")),
        (500, Kind.BLOCK, 3, 5, 0),
        (500, Kind.SCHEDULER_ENTER, 3, 0, 500),
        (505, Kind.SWITCH, 2, 3, 3),
        (510, Kind.SCHEDULER_EXIT, 2, 0, 510),
        (600, Kind.WAKEUP, 3, 0, 0),
        (700, Kind.EXIT, 2, 0, 0),
        (700, Kind.SCHEDULER_ENTER, 2, 0, 700),
        (705, Kind.SWITCH, 3, 2, 4),
        (710, Kind.SCHEDULER_EXIT, 3, 0, 710),
        (800, Kind.WAKEUP, 1, 3, 0),
        (900, Kind.EXIT, 3, 7, 0),
        (900, Kind.SCHEDULER_ENTER, 3, 0, 900),
        (905, Kind.SWITCH, 1, 3, 4),
        (910, Kind.SCHEDULER_EXIT, 1, 0, 910),
        (end_ns, Kind.MARK, 1, MarkKind.END, 0),
        (1200, Kind.END, 0, 0, 34),
    ]
    return recorded(story), Script(cpus=1)


def test_a_child_may_open_the_window_of_the_root() -> None:
    """Process 2 opens the window at 131 and names 1 as the root: figures are those of the
    root's children.
    """
    records, script = by_hand()
    shifted_records = [
        record._replace(process=2, second=1, time=131)
        if (record.kind, record.first) == (Kind.MARK, MarkKind.BEGIN)
        else record
        for record in records
    ]
    shifted_records.sort(key=lambda record: record.time)
    again = recorded(
        [(r.time, Kind(r.kind), r.process, r.first, r.second) for r in shifted_records]
    )
    run_metrics = compute(load(again, script))
    assert run_metrics.summary["root_pid"].to_list() == [1]
    assert run_metrics.summary["elapsed_ns"].to_list() == [969]
    assert run_metrics.processes.filter(role="workload")["pid"].to_list() == [2, 3]


@pytest.mark.parametrize(
    ("requested_ns", "lasted"), [(1000, None), (960, None), (900, "0.001 ms instead of 0.0009 ms")]
)
def test_a_window_of_another_length_is_no_result(
    tmp_path: Path, requested_ns: int, lasted: str | None
) -> None:
    """The window lasts 1,000 ns."""
    records, script = by_hand()
    *before, end = [(r.time, Kind(r.kind), r.process, r.first, r.second) for r in records]
    name = int.from_bytes(b"window", "little")
    marks: list[Happening] = [
        (99, Kind.MARK, 1, MarkKind.NAME, name),
        (99, Kind.MARK, 1, MarkKind.VALUE, requested_ns),
    ]
    path = tmp_path / "trace.bin"
    write(path, recorded([*marks, *before, (*end[:4], end[4] + len(marks))]), script)
    if lasted is None:
        assert measure(path).summary["elapsed_ns"].to_list() == [1000]
        return
    with pytest.raises(NoResult, match=f"^the measured window lasted {lasted}$"):
        measure(path)


def test_those_who_go_on_ask_for_more() -> None:
    """The same trace, but measured until both still want the CPU."""
    run_metrics = compute(load(*by_hand(end_ns=650)))
    a, b = run_metrics.processes.filter(pl.col("role") == "workload").to_dicts()
    assert (a["running_ns"], a["waiting_ns"], a["blocked_ns"]) == (300 + 145, 25 + 80, 0)
    assert (b["running_ns"], b["waiting_ns"], b["blocked_ns"]) == (80, 315 + 50, 95)
    assert a["demand_cpus"] == pytest.approx(1)
    assert b["demand_cpus"] == pytest.approx((80 + 365 * 80 / 175) / 550)
    assert run_metrics.summary["completion_ns"].to_list() == [None]
    # B demands 0.45, less than half: A is entitled to the remainder.
    assert b["ideal_share"] == pytest.approx(b["demand_cpus"])
    assert b["share_error_points"] == pytest.approx(100 * (80 / 525 - b["demand_cpus"]))


def test_those_who_line_up_before_the_window_count() -> None:
    """The same trace, but the window begins after the forks."""
    records, script = by_hand()
    mark = next(
        candidate
        for candidate in records
        if (candidate.kind, candidate.first) == (Kind.MARK, MarkKind.BEGIN)
    )
    order = sorted(
        (record._replace(time=115) if record is mark else record for record in records),
        key=lambda record: record.time,
    )
    trace = load([record._replace(sequence=index) for index, record in enumerate(order)], script)
    validate(trace)
    run_metrics = compute(trace)
    a, b = run_metrics.processes.filter(pl.col("role") == "workload").to_dicts()
    assert (a["group"], a["turnaround_ns"], a["waiting_ns"]) == ("A", 600, 10 + 80)
    assert (b["group"], b["turnaround_ns"], b["response_ns"]) == ("B", 790, 315)
    assert run_metrics.summary["elapsed_ns"].to_list() == [985]


def test_a_window_that_is_cut_is_one_that_begins_later() -> None:
    """Earlier events are excluded, as if the mark were at the cut."""
    records, script = by_hand()
    full_trace = load(records, script)
    mark = next(
        candidate
        for candidate in records
        if (candidate.kind, candidate.first) == (Kind.MARK, MarkKind.BEGIN)
    )
    for cut in (115, 300, 650):
        order = sorted(
            (record._replace(time=cut) if record is mark else record for record in records),
            key=lambda record: record.time,
        )
        later = load(
            [record._replace(sequence=index) for index, record in enumerate(order)], script
        )
        expected, actual = compute(later), compute(full_trace, since_ns=cut)
        assert actual.processes.equals(expected.processes)
        assert actual.groups.equals(expected.groups)
        assert actual.cpus.equals(expected.cpus)
    assert compute(full_trace, since_ns=1).summary.equals(compute(full_trace).summary)


def test_who_never_runs_asks_for_all_its_time() -> None:
    """A process woken in the window but not picked does not count as a sleeper."""
    story = [
        *FIRST_PROCESS,
        (50, Kind.FORK, 1, 2, 0),
        (60, Kind.BLOCK, 1, 1, 0),
        (60, Kind.SCHEDULER_ENTER, 1, 0, 60),
        (60, Kind.SWITCH, 2, 1, 3),
        (60, Kind.SCHEDULER_EXIT, 2, 0, 70),
        (90, Kind.WAKEUP, 1, 0, 0),
        (100, Kind.BLOCK, 2, 3, 0),
        (100, Kind.SCHEDULER_ENTER, 2, 0, 100),
        (100, Kind.SWITCH, 1, 2, 3),
        (100, Kind.SCHEDULER_EXIT, 1, 0, 110),
        (200, Kind.MARK, 1, MarkKind.BEGIN, 0),
        (210, Kind.WAKEUP, 2, 1, 0),
        (300, Kind.MARK, 1, MarkKind.END, 0),
        (310, Kind.END, 0, 0, 19),
    ]
    trace = load(recorded(story), Script(cpus=1))
    validate(trace)
    (row,) = compute(trace).processes.filter(pl.col("role") == "workload").to_dicts()
    assert (row["running_ns"], row["waiting_ns"], row["blocked_ns"]) == (0, 90, 10)
    assert row["demand_cpus"] == pytest.approx(0.9)


def test_by_hand() -> None:
    """Each number follows directly from the trace."""
    trace = load(*by_hand())
    validate(trace)
    run_metrics = compute(trace)
    a, b = run_metrics.processes.filter(pl.col("role") == "workload").to_dicts()
    assert (a["group"], a["turnaround_ns"], a["response_ns"]) == ("A", 600, 25)
    assert (a["running_ns"], a["waiting_ns"], a["blocked_ns"]) == (300 + 200, 25 + 80, 0)
    assert (b["group"], b["turnaround_ns"], b["response_ns"]) == ("B", 790, 315)
    assert (b["running_ns"], b["waiting_ns"], b["blocked_ns"]) == (80 + 200, 315 + 105, 95)
    assert (b["status"], b["wakeups"], b["wakeup_latency_max_ns"]) == (7, 1, 105)
    assert (a["selections"], a["preemptions"], b["selections"], b["blocks"]) == (2, 1, 2, 1)
    assert a["share"] == pytest.approx(500 / 780)
    # Both ended: their demand equals their CPU time.
    assert a["demand_cpus"] == pytest.approx(500 / 1000)
    assert b["demand_cpus"] == pytest.approx(280 / 1000)
    assert a["ideal_share"] == pytest.approx(500 / 780)
    assert a["share_error_points"] == pytest.approx(0)
    summary = run_metrics.summary.row(0, named=True)
    assert summary["throughput_per_second"] == pytest.approx(2 / 1e-6)
    assert summary["throughput_per_million_cycles"] == pytest.approx(2000)
    assert summary["overhead_share"] == pytest.approx(50 / 1000)
    assert summary["context_switches"] == 5
    assert summary["root_running_ns"] == 25 + 195
    assert summary["completion_ns"] == 900 - 100
    assert summary["fairness_turnaround"] == pytest.approx(1390**2 / (2 * (600**2 + 790**2)))


# --- edge cases and output


def test_trace_without_a_process() -> None:
    """An idle machine has empty metrics."""
    records = [Record(0, 0, 0, Kind.START, 0, 0, 0), Record(9, 1, 0, Kind.END, 0, 0, 2)]
    trace = load(records, Script(cpus=1))
    validate(trace)
    run_metrics = compute(trace)
    summary = run_metrics.summary.row(0, named=True)
    assert (summary["processes"], summary["idle_ns"], summary["root_pid"]) == (0, 9, None)
    assert summary["turnaround_mean_ns"] is None
    assert summary["overhead_share"] is None
    assert "Overhead is unknown for 1 CPU: " in shown(tables([("1 CPU", run_metrics)]))


def test_all_runs_have_the_same_columns() -> None:
    """Tables of short, long and empty runs can be concatenated."""
    script = Script(cpus=2, steps=500)
    records = simulate(random.Random(2), script)
    later = [record._replace(time=record.time + 10**12) for record in records]
    for name in ("summary", "processes", "groups", "cpus", "values"):
        schemas = [
            getattr(compute(load(record_list, script)), name).schema
            for record_list in (records, later, [])
        ]
        assert schemas[0] == schemas[1] == schemas[2]


def test_empty_trace(tmp_path: Path) -> None:
    """The machine was cut off before its first block."""
    trace = read(write(tmp_path / "trace.bin", [], Script(cpus=2)))
    run_metrics = compute(trace)
    assert run_metrics.summary["truncated"].to_list() == [True]
    assert len(run_metrics.cpus) == 2


@settings(PATIENT, max_examples=40)
@given(script=SCRIPTS, source=RANDOMS)
def test_truncated_traces_have_metrics(script: Script, source: random.Random) -> None:
    """Any prefix of a trace has metrics."""
    records = simulate(source, script)
    trace = load(records, script, cut=source.randrange(64, 64 + 32 * len(records)))
    assert trace.truncated
    validate(trace)
    run_metrics = compute(trace)
    assert (run_metrics.processes["running_ns"] >= 0).all()
    shown(tables([("cut", run_metrics)]))


def test_metrics_survive_being_written(tmp_path: Path) -> None:
    """A round trip changes nothing: no value, no type."""
    script = Script(cpus=2, steps=500)
    run_metrics = compute(load(simulate(random.Random(2), script), script))
    run_metrics.write(tmp_path / "metrics")
    again = metrics.load(tmp_path / "metrics")
    many = metrics.load_many({7: tmp_path / "metrics", 9: tmp_path / "metrics"})
    for name in TABLES:
        table = getattr(run_metrics, name)
        assert_frame_equal(getattr(again, name), table, check_exact=True)
        runs = [table.select(pl.lit(run, pl.Int64).alias("run"), pl.all()) for run in (7, 9)]
        assert_frame_equal(many[name], pl.concat(runs), check_exact=True)
    assert len(again.values) > 0


def test_large_tables_are_parquet_files(tmp_path: Path) -> None:
    """The other tables are in the same directory, and all are read together."""
    script = Script(cpus=2, steps=500)
    run_metrics = compute(load(simulate(random.Random(2), script), script))
    small = replace(run_metrics, values=run_metrics.values.head(3))
    many_values = pl.concat([run_metrics.values] * (1000 // len(run_metrics.values) + 1))
    large = replace(run_metrics, values=many_values)
    for name, written in (("small", small), ("large", large)):
        written.write(tmp_path / name)
        assert metrics.load(tmp_path / name).to_dict() == written.to_dict()
    names = {path.name for path in (tmp_path / "large").iterdir()}
    assert names == {"tables.json", "values.parquet"}
    values = metrics.load_many({1: tmp_path / "large", 2: tmp_path / "small"})["values"]
    assert values["run"].to_list() == [1] * len(many_values) + [2] * len(small.values)


@pytest.mark.parametrize(
    "damage",
    [
        {"summary": {"policy": "rr"}},
        {"summary": {"policy": [1]}},
        {"summary": {"elapsed_ns": [1e999]}},
        {"summary": {"policy": ["rr", "rr"], "cpus": [1]}},
        {"processes": {"role": ["nobody"]}},
        {"cpus": []},
    ],
)
def test_damaged_tables_are_refused(tmp_path: Path, damage: dict[str, Any]) -> None:
    """Whether one run or many are read, the message names the file."""
    script = Script(cpus=2, steps=50)
    run_metrics = compute(load(simulate(random.Random(2), script), script))
    run_metrics.write(tmp_path / "sound")
    run_metrics.write(tmp_path / "damaged")
    path = tmp_path / "damaged" / "tables.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **damage}))
    with pytest.raises(FileRefused, match=r"damaged/tables\.json"):
        metrics.load(path.parent)
    with pytest.raises(FileRefused, match=r"damaged/tables\.json"):
        metrics.load_many({0: tmp_path / "sound", 1: path.parent})


def test_metrics_before_printed_values_can_be_read(tmp_path: Path) -> None:
    """Metrics from before printed values lack them."""
    script = Script(cpus=2, steps=500)
    run_metrics = compute(load(simulate(random.Random(2), script), script))
    for name in ("summary", "processes", "groups", "cpus"):
        getattr(run_metrics, name).write_parquet(tmp_path / f"{name}.parquet")
    again = metrics.load(tmp_path)
    assert again.values.schema == run_metrics.values.schema
    assert again.to_dict() == {**run_metrics.to_dict(), "values": [], "said": []}


@pytest.mark.parametrize(
    ("shares_by", "expected"),
    [(0, "weight"), (AttributeKind.TICKETS, "tickets"), (AttributeKind.WEIGHT, "weight")],
)
def test_weights_are_those_of_the_policy(shares_by: int, expected: metrics.Weights) -> None:
    """Weights come from the named attribute, else from the attribute that the policy shares
    by, else from weight.
    """
    script = Script(cpus=2, steps=3000, drain=True, shares_by=shares_by)
    trace = load(simulate(random.Random(4), script), script)
    by_tickets = compute(trace, "tickets").processes["weight"].drop_nulls()
    by_weight = compute(trace, "weight").processes["weight"].drop_nulls()
    assert by_tickets.to_list() != by_weight.to_list()
    assert set(compute(trace, "equal").processes["weight"].drop_nulls()) == {1}
    chosen = compute(trace).processes["weight"].drop_nulls().to_list()
    assert chosen == compute(trace, expected).processes["weight"].drop_nulls().to_list()


@pytest.mark.parametrize(
    ("policy_events", "set_by", "expected"),
    [
        ([(Kind.POLICY, 0)], [], [1, 1]),
        ([(Kind.POLICY, 0)], [(AttributeKind.TICKETS, 7)], [7, 1]),
        ([(Kind.POLICY, 0)], [(AttributeKind.TICKETS, 7), (AttributeKind.WEIGHT, 9)], [9, 5]),
        ([(Kind.POLICY, 2)], [], [1, 1]),
        ([(Kind.POLICY, 2)], [(AttributeKind.WEIGHT, 9)], [1, 1]),
        ([(Kind.POLICY, 3)], [(AttributeKind.TICKETS, 7)], [5, 5]),
        ([(Kind.POLICY, 3)], [(AttributeKind.WEIGHT, 9)], [9, 5]),
        ([(Kind.POLICY, 2), (Kind.TUNABLE, 3)], [(AttributeKind.WEIGHT, 9)], [9, 5]),
        ([(Kind.POLICY, 2), (Kind.TUNABLE, 3), (Kind.POLICY, 0)], [], [1, 1]),
        ([], [(AttributeKind.TICKETS, 7)], [7, 1]),
    ],
)
def test_policy_annotations_of_shares_decide(
    policy_events: list[tuple[Kind, int]],
    set_by: list[tuple[AttributeKind, int]],
    expected: list[int],
) -> None:
    """The window's last POLICY or TUNABLE record decides; the workload's attributes count
    only without one.
    """
    story: list[tuple[int, int, int, int, int]] = [
        (Kind.START, 0, 0, 0, 0),
        (Kind.FORK, 0, 0, 1, 0),
        (Kind.SCHEDULER_ENTER, 0, 0, 0, 1),
        (Kind.SWITCH, 0, 1, 0, 0),
        (Kind.SCHEDULER_EXIT, 0, 1, 0, 2),
        *((kind, 0, by, 0, 0) for kind, by in policy_events),
        (Kind.MARK, 0, 1, MarkKind.BEGIN, 0),
        (Kind.FORK, 0, 1, 2, 0),
        (Kind.FORK, 0, 1, 3, 0),
        *((Kind.ATTRIBUTE, 0, 2, kind, value) for kind, value in set_by),
        (Kind.MARK, 0, 1, MarkKind.END, 0),
        (Kind.POLICY, 0, AttributeKind.TICKETS, 0, 0),
    ]
    story.append((Kind.END, 0, 0, 0, len(story) + 1))
    records = [
        Record(1000 + number, number, process, kind, cpu, first, second)
        for number, (kind, cpu, process, first, second) in enumerate(story)
    ]
    table = compute(load(records, Script(cpus=1))).processes.filter(pl.col("role") == "workload")
    assert table.sort("pid")["weight"].to_list() == expected


def shown(tables: list[Any], width: int = 200) -> str:
    """Returns a terminal's output."""
    console = Console(width=width, record=True, file=io.StringIO())
    for table in tables:
        console.print(table)
    return console.export_text()


def test_tables_have_a_column_per_run() -> None:
    """They have the names of all groups, all headings, and a dash for values that a run lacks."""
    script = Script(cpus=2, steps=3000, drain=True)
    runs = [
        (f"run {seed}", compute(load(simulate(random.Random(seed), script), script)))
        for seed in (1, 2, 3)
    ]
    text = shown(tables(runs))
    for heading, run_metrics in runs:
        assert heading in text
        for group in run_metrics.groups["group"].head(3):
            assert group in text
    for word in ("turnaround", "wake-up latency", "99th percentile", "idle counted in", "–"):
        assert word in text
    assert tables([]) == []


def test_tables_show_the_groups_that_ran_most() -> None:
    """They show at most twelve, and the number of omitted groups."""
    script = Script(cpus=1, steps=4000, drain=True)
    runs = [
        (f"run {seed}", compute(load(simulate(random.Random(seed), script), script)))
        for seed in range(8)
    ]
    groups = {group for _, run_metrics in runs for group in run_metrics.groups["group"]}
    assert len(groups) > 12
    text = shown(tables(runs))
    assert f"{len(groups) - 12} groups that ran less are not shown" in text


def test_tables_say_what_one_should_know() -> None:
    """They report a truncated trace and a coarse clock."""
    records, script = by_hand()
    coarse = [record._replace(time=record.time * 1000) for record in records]
    run_metrics = compute(load(coarse[:-1], script))
    assert run_metrics.summary["clock_step_ns"].item() == 5000
    text = shown(tables([("cut", run_metrics)]))
    assert "The trace was cut off: cut." in text
    assert "clock is 5.00 µs" in text
    full_text = shown(tables([("whole", compute(load(records, script)))]))
    assert "clock" not in full_text
    assert "Overhead is unknown" not in full_text
    assert "Waiting is unknown" not in full_text


# --- tails


@PATIENT
@given(SCRIPTS, RANDOMS)
def test_tails_are_quantiles_of_processes(script: Script, chance: random.Random) -> None:
    processes = compute(load(simulate(chance, script), script)).processes
    table = tails(processes, ("role",))
    workload = [row for row in processes.to_dicts() if row["role"] == "workload"]
    assert len(table) == bool(workload)
    for row in table.to_dicts():
        for name in ("turnaround", "response"):
            values = [
                process[f"{name}_ns"] for process in workload if process[f"{name}_ns"] is not None
            ]
            for part, quantile in QUANTILES.items():
                enough = len(values) >= PROCESSES_NEEDED[part]
                expected = float(np.quantile(values, quantile)) if enough else None
                assert_same(row[f"{name}_{part}_ns"], expected, name)
        slow = [
            process["turnaround_ns"] / (process["running_ns"] + process["blocked_ns"])
            for process in workload
            if process["turnaround_ns"] is not None
            and process["running_ns"] + process["blocked_ns"] > 0
        ]
        assert_same(row["slowdown_mean"], sum(slow) / len(slow) if slow else None, "slowdown")


def test_percentile_needs_enough_processes() -> None:
    """With fewer processes it would be the longest value, or between the two longest."""
    for count, reported_parts in (
        (19, []),
        (20, ["p95"]),
        (100, ["p95", "p99"]),
        (1000, [*QUANTILES]),
    ):
        times = list(range(1, count + 1))
        table = pl.DataFrame({"role": "workload", "turnaround_ns": times, "response_ns": times,
                              "running_ns": 1, "blocked_ns": 0})  # fmt: skip
        (row,) = tails(table, ("role",)).to_dicts()
        for of, unit in (("turnaround", "_ns"), ("response", "_ns"), ("slowdown", "")):
            for part, quantile in QUANTILES.items():
                expected = float(np.quantile(times, quantile)) if part in reported_parts else None
                assert_same(row[f"{of}_{part}{unit}"], expected, part)
                assert processes_needed(f"{of}_{part}{unit}") == PROCESSES_NEEDED[part]
    assert processes_needed("slowdown_mean") == processes_needed("turnaround_mean_ns") == 1

# SPDX-License-Identifier: MIT
"""Tests charts: the data behind each against another computation, the drawing, and its
appearance.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
import vl_convert
from hypothesis import given, settings
from hypothesis import strategies as st

from feedback_reference import ALLOTMENT_BOOST, FOUR_QUANTA, Rules, schedule
from schedlab.metrics import compute, state_intervals
from schedlab.report import charts
from schedlab.report.charts import theme
from schedlab.report.charts.levels import find_boosts, find_stays
from schedlab.report.charts.processes import chart_processes
from schedlab.report.model import Chart
from schedlab.report.specifications import VEGA_LITE, page_specification, paper_specification
from schedlab.trace import Kind, MarkKind, ProcessState, Trace
from trace_simulator import PATIENT, Record, Script, load, simulate

WORDS: dict[str, Any] = {"title": "A title", "caption": "How it was measured."}
SIZE_MOST = 300_000
"""Maximum bytes of a chart's specification, including its data."""

TRACES = st.builds(
    lambda script, seed: load(simulate(random.Random(seed), script), script),
    st.builds(
        Script,
        cpus=st.integers(1, 4),
        steps=st.integers(100, 400),
        queues=st.booleans(),
    ),
    st.integers(0, 2**32),
)


@cache
def simulated(cpus: int = 2, steps: int = 3000, seed: int = 3) -> Trace:
    script = Script(cpus=cpus, steps=steps, marks=False)
    return load(simulate(random.Random(seed), script), script)


def runs(policies: tuple[str, ...] = ("rr", "lottery:thesis"), seeds: int = 3) -> pl.DataFrame:
    """A row per run: policy, CPUs, group, ticks."""
    source = random.Random(4)
    return pl.DataFrame(
        [
            {"policy": policy, "cpus": cpus, "group": group, "ticks": source.uniform(10, 90)}
            for policy in policies
            for cpus in (1, 2, 4)
            for group in ("A", "B")
            for _ in range(seeds)
        ]
    )


def processes() -> pl.DataFrame:
    """A row per process, including far outliers."""
    source = random.Random(5)
    return pl.DataFrame(
        [
            {
                "policy": policy,
                "workload": workload,
                "seed": number % 2,
                "ms": source.lognormvariate(1, 1),
            }
            for policy in ("rr", "mlfq", "mlfq:four-quanta")
            for workload in ("cpu", "io")
            for number in range(80)
        ]
    )


def delays() -> pl.DataFrame:
    """The breakdown of waits, in the form of schedlab.analysis.explanation.delays."""
    source = random.Random(6)
    return pl.DataFrame(
        [
            {
                "setup": setup,
                "waiting": waiting,
                "because_of": cause,
                "duration_ns": source.randrange(1, 10**8),
            }
            for setup in ("rr", "mlfq")
            for waiting in "ABC"
            for cause in (*"ABCDEFG", "(scheduler)")
        ]
    )


def a_wait(trace: Trace) -> Chart:
    """The longest wait, with its process and five others."""
    waits = state_intervals(trace).filter(pl.col("state") == "runnable")
    wait = waits.sort(pl.col("end_ns") - pl.col("begin_ns"))[-1].row(0, named=True)
    others = [life for life in waits["life"].unique(maintain_order=True) if life != wait["life"]]
    return charts.one_wait(
        "one-wait",
        trace,
        lives=[wait["life"], *others[:5]],
        begin_ns=wait["begin_ns"],
        end_ns=wait["end_ns"],
        **WORDS,
    )


def schedule_rows() -> pl.DataFrame:
    """Two processes that alternate on two levels; measured turns are twice as long."""
    rows = [
        (kind, f"level {turn % 4 // 2}", "AB"[turn % 2], length * turn, length * (turn + 1))
        for kind, length in (("published", 1), ("measured", 2))
        for turn in range(8)
    ]
    return pl.DataFrame(rows, schema=["kind", "row", "series", "begin", "end"], orient="row")


def published() -> pl.DataFrame:
    return runs(("rr",), 1).with_columns(pl.col("ticks") * 1.5)


MAKERS: dict[str, Callable[[], Chart]] = {
    "gantt": lambda: charts.gantt("gantt", simulated(), colour="group", **WORDS),
    "lanes": lambda: charts.lanes("lanes", simulated(), **WORDS),
    "lanes-levels": lambda: charts.lanes(
        "lanes-levels", feedback_trace(ALLOTMENT_BOOST, 600)[0], **WORDS
    ),
    "levels": lambda: charts.levels("levels", feedback_trace(ALLOTMENT_BOOST, 1000)[0], **WORDS),
    "shares": lambda: charts.shares_over_time("shares", simulated(), **WORDS),
    "lag": lambda: charts.lag_over_time("lag", simulated(), **WORDS),
    "latencies": lambda: charts.latencies(
        "latencies", {"rr": [simulated(), simulated(seed=6)], "mlfq": [simulated(seed=8)]}, **WORDS
    ),
    "ecdf": lambda: charts.ecdf(
        "ecdf", processes(), value="ms", x_title="response (ms)", y_title="processes (%)", **WORDS
    ),
    "ecdf-panels": lambda: charts.ecdf(
        "ecdf-panels", processes().with_columns(pl.col("ms") ** 5), value="ms", x_title="response (ms)",
        y_title="processes (%)", panel="workload", run="seed", **WORDS,
    ),
    "lines": lambda: charts.lines(
        "lines", runs().filter(pl.col("group") == "A"), x="cpus", y="ticks", x_title="CPUs",
        y_title="turnaround (ticks)", published=published().filter(pl.col("group") == "A"),
        ideal=pl.DataFrame({"cpus": [1, 2, 4], "ticks": [40.0, 20.0, 10.0]}), **WORDS,
    ),
    "dots": lambda: charts.dots(
        "dots", runs(), category="group", value="ticks", x_title="turnaround (ticks)",
        published=published().head(2), **WORDS,
    ),
    "schedules": lambda: charts.schedules("schedules", schedule_rows(), **WORDS),
    "boxes": lambda: charts.boxes(
        "boxes", processes(), series="policy", value="ms", x_title="response (ms)",
        published={"rr": "varies most"}, **WORDS,
    ),
    "causes": lambda: charts.causes("causes", delays(), **WORDS),
    "one-wait": lambda: a_wait(simulated()),
    "dots-one": lambda: charts.dots(
        "dots-one", runs(("rr",), 1), category="group", value="ticks", x_title="ticks", **WORDS
    ),
}  # fmt: skip


@cache
def made(name: str) -> Chart:
    return MAKERS[name]()


def embedded(chart: Chart) -> list[list[dict[str, Any]]]:
    """Returns all tables in a specification as rows, after its transforms."""
    specification = page_specification(chart)
    tables = []
    for part in parts_of(specification):
        if "name" in part.get("data", {}) and "transform" in part:
            (columns,) = specification["datasets"][part["data"]["name"]]
            for transform in part["transform"]:
                name, words = transform.get("as"), transform.get("calculate", "")
                if words == f"{words.rpartition('[')[0]}[datum.{name}]":
                    known = json.loads(words.rpartition("[")[0])
                    columns = {**columns, name: [known[code] for code in columns[name]]}
            rows = [
                dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
            ]
            tables.append(rows)
    return [table for table in tables if table]


def parts_of(specification: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Returns a specification with its layers and panels."""
    yield specification
    for name in ("layer", "vconcat"):
        for part in specification.get(name, []):
            yield from parts_of(part)


# --- all of them


@pytest.mark.parametrize("name", MAKERS)
def test_a_chart_is_drawn(name: str) -> None:
    """It compiles for a page and for paper, has marks, and has a description."""
    chart = made(name)
    assert chart.name == name and chart.title == WORDS["title"]
    assert chart.caption.startswith(WORDS["caption"])
    assert len(chart.description) > 40 and "None" not in chart.description
    assert len(chart.data) > 0
    for specification in (page_specification(chart), paper_specification(chart)):
        vl_convert.vegalite_to_vega(specification, vl_version=VEGA_LITE)
    svg = vl_convert.vegalite_to_svg(paper_specification(chart), vl_version=VEGA_LITE)
    assert svg.count("<path") >= 10
    assert "NaN" not in svg and "undefined" not in svg and "Infinity" not in svg
    sizes = {float(part.partition("px")[0]) for part in svg.split('font-size="')[1:]}
    assert min(sizes) >= 11, "text can be read"
    text = json.dumps(page_specification(chart))
    assert len(text) <= SIZE_MOST
    assert text == json.dumps(page_specification(MAKERS[name]())), "it is always the same"
    config = json.dumps(page_specification(chart)["config"])
    assert '"currentColor"' in config and "white" not in config and "black" not in config


# --- colours


def linear(colour: str) -> Any:
    parts = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


COLOURS = sorted({*theme.PALETTE, *theme.POLICY_COLOURS.values(), *theme.USER_POLICY_COLOURS})

SIGHT = {
    "all cones": np.eye(3),
    "no red": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "no green": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "no blue": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
"""Colours as seen without one kind of cones (Machado, Oliveira and Fernandes, 2009)."""


def oklab(rgb: Any) -> Any:
    """Returns a colour in a space with perceptual distances (Ottosson, 2020)."""
    cones = rgb @ np.array(
        [
            [0.4122214708, 0.2119034982, 0.0883024619],
            [0.5363325363, 0.6806995451, 0.2817188376],
            [0.0514459929, 0.1073969566, 0.6299787005],
        ]
    )
    return np.cbrt(cones) @ np.array(
        [
            [0.2104542553, 1.9779984951, 0.0259040371],
            [0.7936177850, -2.4285922050, 0.7827717662],
            [-0.0040720468, 0.4505937099, -0.8086757660],
        ]
    )


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_differ_for_everybody(sight: str) -> None:
    """They differ by three times the just noticeable difference, about 0.02 in OKLab."""
    seen = {colour: oklab(np.clip(linear(colour) @ SIGHT[sight].T, 0, 1)) for colour in COLOURS}
    for one, other in itertools.combinations(COLOURS, 2):
        assert np.linalg.norm(seen[one] - seen[other]) >= 0.06, (one, other)


# --- Gantt charts

NOTHING = r"no process of the workload|nothing can be drawn"


def sums(frame: pl.DataFrame, *keys: str) -> dict[Any, int]:
    """Returns times by key, without zeros."""
    length = (pl.col("end_ns") - pl.col("begin_ns")).sum()
    rows = frame.group_by(*keys).agg(length).rows()
    return {row[:-1] if len(keys) > 1 else row[0]: row[-1] for row in rows if row[-1]}


@settings(PATIENT, max_examples=12)
@given(trace=TRACES)
def test_a_gantt_chart_shows_all_time_of_the_window(trace: Trace) -> None:
    """Per process it shows the running time of the metrics, per CPU the idle time."""
    metrics = compute(trace)
    window = metrics.summary.row(0, named=True)
    if window["elapsed_ns"] == 0:
        return
    module = import_module("schedlab.report.charts.gantt")
    with patch.object(module, "READABLE_PER_CPU", len(trace)):
        chart = charts.gantt("g", trace, colour="process", **WORDS)
    idle = chart.data.filter(pl.col("pid") == 0)
    running = chart.data.filter(pl.col("pid") != 0)
    should = metrics.processes.group_by("pid").agg(pl.col("running_ns").sum())
    # A process that ended before the window may still have been on its CPU in the window. The
    # metrics attribute this time to the CPU only.
    ran = sums(running.filter(pl.col("pid").is_in(should["pid"].implode())), "pid")
    assert ran == {pid: time for pid, time in should.rows() if time}
    for frame, column in ((idle, "idle_ns"), (running, "running_ns")):
        cpus = dict(metrics.cpus.select("cpu", column).rows())
        assert sums(frame, "cpu") == {cpu: time for cpu, time in cpus.items() if time}


# --- levels


def feedback_trace(rules: Rules, ticks: int) -> tuple[Trace, list[tuple[int, int, int]]]:
    """Three processes on one CPU under the rules; and tick, PID and level of each tick."""
    begin = 20
    rows = schedule(rules, [2, 3, 4], begin, begin + ticks)
    records: list[Record] = []

    def emit(tick: int, kind: Kind, process: int = 0, first: int = 0, second: int = 0) -> None:
        time = tick * 1_000_000
        records.append(Record(time, len(records), process, kind, 0, first, second))

    emit(0, Kind.START)
    emit(0, Kind.POLICY, 0, 0, int.from_bytes(b"mlfq", "little"))
    emit(0, Kind.FORK, 0, 1)
    running = 0
    for pid in (2, 3, 4):
        emit(0, Kind.FORK, 1, pid)

    def switch(tick: int, pid: int, level: int) -> None:
        nonlocal running
        emit(tick, Kind.SCHEDULER_ENTER, running)
        if level:
            emit(tick, Kind.DECISION, pid, 2, level)
        if pid != running:
            if running:
                emit(tick, Kind.PREEMPT, running, 1)
            left = int(ProcessState.RUNNABLE) if running else 0
            emit(tick, Kind.SWITCH, pid, running, left)
        emit(tick, Kind.SCHEDULER_EXIT, pid)
        running = pid

    switch(begin - 1, 1, 3)
    emit(begin - 1, Kind.MARK, 1, int(MarkKind.BEGIN))
    for tick, pid, level in rows:
        switch(tick, pid, level)
    emit(begin + ticks, Kind.MARK, 1, int(MarkKind.END))
    emit(begin + ticks, Kind.END, 0, 0, len(records) + 1)
    return load(records, Script(cpus=1)), rows


def test_boosts_are_detected() -> None:
    """Boosts occur at each multiple of 480 ticks, and nowhere without boosts."""
    trace, _ = feedback_trace(ALLOTMENT_BOOST, 1500)
    boost_times = find_boosts(find_stays(chart_processes(trace)))["time_ns"].to_list()
    assert boost_times == [480_000_000, 960_000_000, 1_440_000_000]
    assert "3 boosts" in charts.levels("levels", trace, **WORDS).description
    trace, _ = feedback_trace(FOUR_QUANTA, 1500)
    assert find_boosts(find_stays(chart_processes(trace))).is_empty()


@settings(PATIENT, max_examples=15)
@given(trace=TRACES)
def test_stays_are_what_a_loop_over_the_records_finds(trace: Trace) -> None:
    """There are no levels, because the policy of these traces has none."""
    since: dict[int, tuple[int, int]] = {}
    should = []
    columns = ("kind", "cpu", "process", "time_ns")
    for kind, cpu, process, time in trace.events.select(columns).iter_rows():
        if kind == Kind.SCHEDULER_EXIT:
            since[cpu] = (process, time)
        elif kind == Kind.SCHEDULER_ENTER and cpu in since:
            pid, begin = since.pop(cpu)
            should.append((cpu, pid, begin, time))
    should += [(cpu, pid, begin, trace.end_ns) for cpu, (pid, begin) in since.items()]
    stays = find_stays(chart_processes(trace))
    assert stays["level"].null_count() == len(stays)
    actual = stays.select("cpu", "pid", "begin_ns", "end_ns").rows()
    assert sorted(actual) == sorted(row for row in should if row[1])


# --- shares


@settings(PATIENT, max_examples=12)
@given(trace=TRACES)
def test_final_shares_equal_the_metrics(trace: Trace) -> None:
    groups = compute(trace).groups
    should = {
        group: (share, ideal)
        for group, share, ideal in groups.select("group", "share", "ideal_share").rows()
        if share
    }
    if not should:
        with pytest.raises(ValueError, match=NOTHING):
            charts.shares_over_time("s", trace, **WORDS)
        return
    data = charts.shares_over_time("s", trace, **WORDS).data
    last = data.filter(pl.col("time_ns") == data["time_ns"].max())
    assert set(last["group"]) == set(should)
    for row in last.to_dicts():
        assert (row["share"], row["ideal_share"]) == pytest.approx(should[row["group"]])


# --- latencies, distributions


def test_latencies_are_those_of_the_metrics() -> None:
    for seed in (3, 6, 8):
        trace = simulated(seed=seed)
        summary = compute(trace).summary.row(0, named=True)
        values = charts.latencies("l", {"rr": [trace]}, **WORDS).data["latency_ns"]
        assert len(values) > 100
        assert values.median() == summary["wakeup_latency_median_ns"]
        assert values.max() == summary["wakeup_latency_max_ns"]
        assert np.quantile(values, 0.99) == pytest.approx(summary["wakeup_latency_p99_ns"])


# --- lines, dots


def test_lines_are_means_of_runs() -> None:
    data = made("lines").data
    for row in data.filter(pl.col("kind") == "measured").to_dicts():
        values = runs().filter(
            (pl.col("policy") == row["series"])
            & (pl.col("cpus") == row["x"])
            & (pl.col("group") == "A")
        )["ticks"]
        assert row["mean"] == pytest.approx(values.mean())
        assert (row["runs"], row["failed"]) == (3, 0)
        assert row["low"] < row["mean"] < row["high"] and row["low"] >= 0
        assert (row["least"], row["most"]) == (values.min(), values.max())
    assert set(data["kind"]) == {"measured", "published", "ideal"}


def failed_runs() -> pl.DataFrame:
    """One run of three failed under the lottery, on two CPUs."""
    wrong = (pl.col("policy") == "lottery:thesis") & (pl.col("cpus") == 2)
    first = pl.int_range(pl.len()).over("policy", "cpus", "group") == 0
    return runs().with_columns(ticks=pl.when(wrong & first).then(None).otherwise("ticks"))


def test_a_failed_run_is_no_part_of_a_mean_but_shown() -> None:
    data = failed_runs().filter(pl.col("group") == "A")
    line = charts.lines("f", data, x="cpus", y="ticks", x_title="CPUs", y_title="ticks", **WORDS)
    lottery = data.filter(pl.col("policy") == "lottery:thesis")
    dot = charts.dots("f", lottery, category="cpus", value="ticks", x_title="ticks", **WORDS)
    for chart in (line, dot):
        failed = chart.data.filter(pl.col("failed") > 0)
        assert failed.select("mean", "runs", "failed").rows() == [(None, 3, 1)]
        assert "a run failed or has no such value, so there is no mean" in chart.caption
        crosses = next(
            table for table in embedded(chart) if "failed" in table[0] and table[0]["failed"]
        )
        assert len(crosses) == 1

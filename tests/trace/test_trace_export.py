# SPDX-License-Identifier: MIT
"""Tests exported files with the libraries of their formats."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from perfetto.protos.perfetto.trace import (  # type: ignore[import-untyped]
    perfetto_trace_pb2 as protobuf,
)

from schedlab.trace import Kind, MarkKind, ProcessState, Trace, export, read
from trace_simulator import Record, Script, simulate, write

SCRIPT = Script(cpus=3, steps=4000, drain=True, queues=True)


@pytest.fixture(scope="module")
def records() -> list[Record]:
    """Returns the records."""
    return simulate(random.Random(6), SCRIPT)


@pytest.fixture(scope="module")
def trace(records: list[Record], tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Returns their trace."""
    return read(write(tmp_path_factory.mktemp("trace") / "trace.bin", records, SCRIPT))


@pytest.fixture(scope="module")
def perfetto(trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Returns the decoded Perfetto file."""
    path = tmp_path_factory.mktemp("perfetto") / "trace.perfetto"
    export(trace, path, "perfetto")
    decoded = protobuf.Trace()
    decoded.ParseFromString(path.read_bytes())
    return decoded


def test_parquet(trace: Trace, records: list[Record], tmp_path: Path) -> None:
    """It has a row per record, with words for numbers."""
    export(trace, tmp_path / "trace.parquet", "parquet")
    table = pl.read_parquet(tmp_path / "trace.parquet")
    assert len(table) == len(records)
    numbers = table.select("time_ns", "sequence", "process", "cpu", "first", "second")
    assert numbers.rows() == [record[:3] + record[4:] for record in records]
    assert table["kind"].to_list() == [Kind(record.kind).name for record in records]
    switches = table.filter((pl.col("kind") == "SWITCH") & (pl.col("first") != 0))
    assert set(switches["detail"]) == {"runnable", "blocked", "zombie"}
    assert set(table.filter(pl.col("kind") == "PREEMPT")["detail"]) == {"slice", "wakeup", "policy"}
    assert table.filter(pl.col("kind") == "POLICY")["text"].to_list() == [
        "lottery:thesis-long-name"
    ]
    assert "bürste" in table.filter(pl.col("kind") == "EXEC")["text"].to_list()


def test_csv_agrees(trace: Trace, tmp_path: Path) -> None:
    """It has text instead of typed columns."""
    export(trace, tmp_path / "trace.csv", "csv")
    export(trace, tmp_path / "trace.parquet", "parquet")
    table = pl.read_parquet(tmp_path / "trace.parquet").with_columns(pl.col("kind").cast(pl.String))
    again = pl.read_csv(tmp_path / "trace.csv", schema=table.schema)
    assert again.equals(table)


def events(perfetto: Any, kind: str) -> list[tuple[int, Any, Any]]:
    """Returns all ftrace events of a kind: CPU, event, its part; in order of time."""
    matching_events = [
        (packet.ftrace_events.cpu, event, getattr(event, kind))
        for packet in perfetto.packet
        for event in packet.ftrace_events.event
        if event.HasField(kind)
    ]
    return sorted(matching_events, key=lambda one: one[1].timestamp)


def of_kind(records: list[Record], kind: Kind) -> list[Record]:
    """Returns records of a kind, in order of time."""
    return sorted((record for record in records if record.kind == kind), key=lambda r: r.time)


def test_perfetto_has_all_switches(perfetto: Any, records: list[Record]) -> None:
    """Each has its CPU, its time, both processes, and the state of the previous one."""
    exported_switches = {
        (cpu, event.timestamp, switch.prev_pid, switch.next_pid)
        for cpu, event, switch in events(perfetto, "sched_switch")
    }
    expected = of_kind(records, Kind.SWITCH)
    assert exported_switches == {(one.cpu, one.time, one.first, one.process) for one in expected}
    assert len(events(perfetto, "sched_switch")) == len(expected)


def test_perfetto_distinguishes_states(perfetto: Any, records: list[Record]) -> None:
    """R, R+, S, D and Z, as Linux 5.10 numbers them."""
    state = {
        (event.timestamp, switch.prev_pid, switch.next_pid): switch.prev_state
        for _, event, switch in events(perfetto, "sched_switch")
    }
    allowed = {
        ProcessState.RUNNABLE: {0x000, 0x100},
        ProcessState.BLOCKED: {0x01, 0x02},
        ProcessState.ZOMBIE: {0x20},
    }
    seen = set()
    for record in of_kind(records, Kind.SWITCH):
        number = state[record.time, record.first, record.process]
        assert number in (allowed[ProcessState(record.second)] if record.first else {0})
        seen.add(number)
    assert seen == {0x000, 0x100, 0x01, 0x02, 0x20}


def test_perfetto_knows_who_woke_whom(perfetto: Any, records: list[Record]) -> None:
    """The event belongs to the waking process; an interrupt is marked as one."""
    exported_wakeups = sorted(
        (event.timestamp, cpu, event.pid, waking.pid, waking.target_cpu, event.common_flags)
        for cpu, event, waking in events(perfetto, "sched_waking")
    )
    assert exported_wakeups == sorted(
        (one.time, one.cpu, one.first, one.process, one.second, 0 if one.first else 8)
        for one in of_kind(records, Kind.WAKEUP)
    )


def test_perfetto_knows_processes(perfetto: Any, records: list[Record]) -> None:
    """It has their parents, names and ends."""
    new = [(event.pid, task.pid) for _, event, task in events(perfetto, "task_newtask")]
    forks = of_kind(records, Kind.FORK)
    assert sorted(new) == sorted((one.process, one.first) for one in forks)
    ends = [task.pid for _, _, task in events(perfetto, "sched_process_exit")]
    assert sorted(ends) == sorted(one.process for one in of_kind(records, Kind.EXIT))
    renamed = [task.newcomm for _, _, task in events(perfetto, "task_rename")]
    assert "bürste" in renamed
    parents = {
        process.pid: process.ppid
        for packet in perfetto.packet
        for process in packet.process_tree.processes
        if process.ppid
    }
    assert parents == {one.first: one.process for one in forks if one.process}


def test_perfetto_shows_marks(perfetto: Any, records: list[Record]) -> None:
    """Marks have a separate track, with the measured window as a slice."""
    tracks = {
        packet.track_descriptor.uuid: packet.track_descriptor.name
        for packet in perfetto.packet
        if packet.HasField("track_descriptor")
    }
    shown = [packet for packet in perfetto.packet if packet.HasField("track_event")]
    assert {tracks[packet.track_event.track_uuid] for packet in shown} == {"schedlab"}
    names = [packet.track_event.name for packet in shown]
    assert "policy lottery:thesis-long-name" in names
    assert any(name.startswith("boost_ticks = ") for name in names)
    assert any(
        re.fullmatch(r"\d+ is more than -2, which is told \(.* \d+\)", name) for name in names
    )
    window = [packet.timestamp for packet in shown if packet.track_event.name == "measured window"]
    marks = [
        one.time
        for one in of_kind(records, Kind.MARK)
        if one.first in (MarkKind.BEGIN, MarkKind.END)
    ]
    assert window == marks
    printed_values = [name.rpartition(" tells ")[2] for name in names if " tells " in name]
    values = [one.second for one in of_kind(records, Kind.MARK) if one.first == MarkKind.VALUE]
    assert [int(text.partition(" = ")[2]) % 2**64 for text in printed_values] == values
    assert "eight888" in {text.partition(" = ")[0] for text in printed_values}

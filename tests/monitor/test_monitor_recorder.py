# SPDX-License-Identifier: MIT
"""Tests traces cut from others: their records are consistent wherever the cut is."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from monitor_stand_ins import recorded, setup
from schedlab import metrics, trace
from schedlab.machines.folder import CONSOLE_FILE
from schedlab.machines.outcome import Outcome
from schedlab.monitor.recorder import Recorder, manifest_facts
from schedlab.monitor.system import Records
from schedlab.monitor.trace_file import RecentRecords, TraceFile
from schedlab.monitor.trace_state import TraceState
from schedlab.runs import results
from schedlab.trace.format import RECORD, Kind
from schedlab.trace.model import Header
from trace_simulator import Record, Script, simulate

SCRIPTS = {
    "plain": Script(cpus=2, steps=300),
    "reused": Script(cpus=3, steps=600, pids=6),
    "found": Script(cpus=2, steps=300, initial_tasks=5),
    "queues": Script(cpus=4, steps=400, queues=True),
    "wrapping": Script(cpus=2, steps=300, first_sequence=2**32 - 100),
}


def as_array(records: list[Record]) -> Records:
    rows = [
        (
            record.time,
            record.sequence & 0xFFFF_FFFF,
            record.process,
            record.kind,
            record.cpu,
            record.first,
            record.second,
        )
        for record in records
    ]
    return np.array(rows, RECORD)


def pieces(records: Records, sizes: random.Random, most: int = 400) -> list[Records]:
    """Returns records in batches that cut no text."""
    parts, at = [], 0
    while at < len(records):
        end = min(at + sizes.randint(1, most), len(records))
        while end < len(records) and not is_complete(records[at:end], records[end:]):
            end += 1
        parts.append(records[at:end])
        at = end
    return parts


def is_complete(before: Records, after: Records) -> bool:
    """Returns True if no CPU continues a text after this point."""
    for cpu in np.unique(before["cpu"]):
        later = after[after["cpu"] == cpu]
        if len(later) and later["kind"][0] == Kind.TEXT:
            return False
    return True


def pending_groups(path: Path, snapshot: TraceState) -> set[int]:
    """Returns processes that have not run since the trace begins, so their labels are unknown."""
    ran = set(trace.read(path).events.filter(kind=Kind.SWITCH)["process"].to_list())
    return set(snapshot.processes) - ran


def state_facts(snapshot: TraceState, without_groups: set[int]) -> dict[str, object]:
    """Returns the complete content, for comparison."""
    processes = {
        pid: replace(person, group=0) if pid in without_groups else person
        for pid, person in snapshot.processes.items()
    }
    waiting = {
        pid: place[1:]
        for pid, place in snapshot.queued.items()
        if snapshot.process_states[pid] == 1
    }
    return {
        "people": {
            pid: (p.name, p.thread_of, p.group, p.attributes) for pid, p in processes.items()
        },
        "state": snapshot.process_states,
        "running": snapshot.running.tolist(),
        "deciding": snapshot.is_deciding.tolist(),
        "policy": (snapshot.policy, snapshot.shares_by, snapshot.tunables),
        "waiting": waiting,
    }


def cut(path: Path, header: Header, before: TraceState, after: list[Records]) -> None:
    with TraceFile(path, header, before.opening()) as file:
        for part in after:
            file.add(part)


def read_back(path: Path) -> Iterator[Records]:
    data = path.read_bytes()[64:]
    yield np.frombuffer(data, RECORD)


@pytest.mark.parametrize("name", SCRIPTS)
def test_truncated_trace_is_consistent(name: str, tmp_path: Path) -> None:
    script = SCRIPTS[name]
    path = tmp_path / "cut.bin"
    for number in range(12):
        source = random.Random(f"{name} {number}")
        header = Header(script.cpus, 1_000_000, 1_000_000_000, 1)
        parts = pieces(as_array(simulate(source, script)), source, 40)
        at = source.randrange(1, len(parts))
        snapshot = TraceState(script.cpus)
        for part in parts[:at]:
            snapshot.apply(part)
        cut(path, header, snapshot, parts[at:])
        trace.validate(trace.read(path))
        for part in parts[at:]:
            snapshot.apply(part)
        again = TraceState(script.cpus)
        for part in read_back(path):
            again.apply(part)
        groups = pending_groups(path, again)
        assert state_facts(again, groups) == state_facts(snapshot, groups)


def test_a_trace_from_its_beginning_is_the_same_trace(tmp_path: Path) -> None:
    header, records = recorded()
    path = tmp_path / "trace.bin"
    with TraceFile(path, header) as file:
        for part in pieces(records, random.Random(2), 5000):
            file.add(part)
    assert path.read_bytes()[64:] == records.tobytes()


def test_monitor_processes_are_not_in_the_workload(tmp_path: Path) -> None:
    header, records = recorded()
    snapshot = TraceState(header.cpus)
    snapshot.apply(records[: len(records) // 2])
    monitor_pid = max(snapshot.processes)
    path = tmp_path / "trace.bin"
    with TraceFile(path, header, snapshot.opening({monitor_pid})) as file:
        file.add(records[len(records) // 2 :])
    roles = dict(metrics.compute(trace.read(path)).processes.select("pid", "role").iter_rows())
    assert roles.pop(monitor_pid) == "other"
    assert "workload" in roles.values()
    again = TraceState(header.cpus)
    again.apply(snapshot.opening({monitor_pid}).records)
    name = snapshot.processes[monitor_pid].name
    assert again.processes[monitor_pid].name == f"[{name}]"
    # Recorded again, it has no additional brackets.
    once_more = TraceState(header.cpus)
    once_more.apply(again.opening({monitor_pid}).records)
    assert once_more.processes[monitor_pid].name == f"[{name}]"


def everything(recent: RecentRecords) -> Iterator[Records]:
    """Yields all records kept, in pieces of any length."""
    at = recent.begin
    while at < recent.end:
        piece = recent.since(at, 777)
        yield piece
        at += len(piece)
    assert len(recent.since(at, 777)) == 0


def test_last_records_are_buffered(tmp_path: Path) -> None:
    header, records = recorded()
    recent = RecentRecords(header, records_max=2000)
    for part in pieces(records, random.Random(3), 300):
        recent.add(part)
        assert recent.end - recent.begin <= 2000
        assert (
            np.concatenate(list(everything(recent))).tolist()
            == records[recent.begin : recent.end].tolist()
        )
    recent.write(tmp_path / "recent.bin", frozenset())
    read = trace.read(tmp_path / "recent.bin")
    trace.validate(read)
    assert 1500 < len(read.events) < 2500
    assert read.end_ns == int(records["time"].max())
    with pytest.raises(ValueError, match="is no longer stored"):
        recent.since(0, 1)
    short = RecentRecords(header)
    for part in pieces(records, random.Random(3), 300):
        short.add(part)
    short.write(tmp_path / "short.bin", frozenset(), span_ns=5_000_000)
    assert trace.read(tmp_path / "short.bin").begin_ns > read.end_ns - 20_000_000


def test_a_recording_is_a_run_as_every_other(tmp_path: Path) -> None:
    header, records = recorded()
    snapshot = TraceState(header.cpus)
    snapshot.apply(records[:4000])
    place = tmp_path / "runs" / "mine"

    async def record() -> Path:
        facts = manifest_facts(
            setup(), "two-hogs", "", snapshot, {"commit": None, "machine_version": "1"}
        )
        recorder = Recorder(place, header, facts, snapshot, {1})
        assert not place.exists()
        recorder.add(records[4000:])
        recorder.add_log(["a line"])
        return await recorder.stop(Outcome("success"), {"repeatable": False})

    assert asyncio.run(record()) == place
    manifest = json.loads((place / results.MANIFEST_FILE).read_text())
    assert (manifest["status"], manifest["message"]) == ("success", "")
    assert manifest["kind"] == "monitor"
    assert manifest["cpus"] == 2
    assert (place / CONSOLE_FILE).read_text() == "a line\n"
    trace.validate(trace.read(place / "trace.bin"))
    stored_metrics = metrics.load(place / results.METRICS_FOLDER)
    assert stored_metrics.summary.equals(metrics.compute(trace.read(place / "trace.bin")).summary)
    assert [path.name for path in place.parent.iterdir()] == ["mine"]

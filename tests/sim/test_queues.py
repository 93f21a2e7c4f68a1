# SPDX-License-Identifier: MIT
"""Tests the queue records of a trace against the picks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from guest_machine import traced
from schedlab import trace
from schedlab.trace import Kind
from schedlab.trace.ordered import read_records
from schedlab.trace.reader import Records
from schedlab_simulator import Attribute, Simulator
from simulator_command import built, simulate

WORKLOAD = """
channel lock 1
program root
  loop 6
    fork worker
    run 150us
  end
  fork sleeper
  priority 1 sleeper
  sleep 30ms
  policy OTHER
  loop 7
    wait
  end
program worker
  loop 20
    run 2700us
    take lock
    run 200us
    give lock
    yield
  end
program sleeper
  tickets 5
  loop 30
    run 100us
    sleep 1ms
  end
"""
POLICIES = (("mlfq", "rr:table-scan"), ("rr:table-scan", "lottery"), ("hybrid", "wrr"))


def records(folder: Path, policies: tuple[str, str], cpus: int, *options: str) -> Records:
    """Returns the records of a run with a sound trace."""
    path = folder / "trace.bin"
    text = WORKLOAD.replace("OTHER", policies[1])
    arguments = ("--policy", policies[0], "--cpus", str(cpus), "--trace", str(path), *options)
    result = simulate(folder, text, *arguments)
    assert result.returncode == 0, result.stderr
    trace.validate(trace.read(path))
    ordered = read_records(path)
    return ordered.piece(0, len(ordered))


@pytest.fixture(autouse=True, scope="module")
def _library() -> None:
    built("sim/libschedlab-sim.so")


def wrong_picks(all_records: Records) -> list[str]:
    """Returns the picks of processes that are queued elsewhere, or nowhere, by the queue
    records.
    """
    queue: dict[int, int] = {}
    shared = False
    wrong: list[str] = []
    for record in all_records:
        kind, pid, cpu = int(record["kind"]), int(record["process"]), int(record["cpu"])
        if kind == Kind.QUEUED:
            queue[pid] = int(record["first"])
        elif kind == Kind.POLICY:
            shared = "table-scan" in text_of(record, all_records)
        elif kind == Kind.SWITCH and pid:
            if queue.pop(pid, None) != (0 if shared else cpu):
                wrong.append(f"pid {pid} is picked by CPU {cpu} at {record['time']}")
        elif kind in (Kind.SCHEDULER_EXIT, Kind.EXIT):
            queue.pop(pid, None)  # picked again, with no switch
    return wrong


def text_of(record: np.void, all_records: Records) -> str:
    """Returns a POLICY's text, and the TEXT right after it."""
    place = int(np.flatnonzero(all_records["sequence"] == record["sequence"])[0])
    text = b""
    for text_record in all_records[place : place + 3]:
        if text_record["kind"] in (Kind.POLICY, Kind.TEXT):
            text += int(text_record["second"]).to_bytes(8, "little")
            text += int(text_record["first"]).to_bytes(4, "little")
    return text.partition(b"\0")[0].decode()


@pytest.mark.parametrize("policies", POLICIES, ids="-".join)
@pytest.mark.parametrize("cpus", [1, 3])
def test_who_is_picked_waited_in_that_queue(
    tmp_path: Path, policies: tuple[str, str], cpus: int
) -> None:
    queue_records = records(tmp_path, policies, cpus, "--trace-queues")
    assert wrong_picks(queue_records) == []
    assert np.count_nonzero(queue_records["kind"] == Kind.QUEUED) > 150


@pytest.mark.spike
def test_so_did_who_is_picked_on_the_kernel(tmp_path: Path) -> None:
    policies = ("mlfq", "rr:table-scan", "lottery", "priority", "stride")
    command = "; ".join(f"policy {name}; mixed -n 3 -g 20 -i 600000" for name in policies)
    events = traced(tmp_path, f"sh -c '{command}; true'", 3, "trace-queues=1 trace-delay=3ms")
    ordered = read_records(events.path)
    queue_records = ordered.piece(0, len(ordered))
    assert wrong_picks(queue_records) == []
    assert np.count_nonzero(queue_records["kind"] == Kind.QUEUED) > 1000


@pytest.mark.parametrize("policies", POLICIES[:1], ids="-".join)
def test_nothing_else_changes(tmp_path: Path, policies: tuple[str, str]) -> None:
    """Only sequence numbers and each CPU's record count differ."""
    without = records(tmp_path, policies, 2)
    with_queues = records(tmp_path, policies, 2, "--trace-queues")
    assert not (without["kind"] == Kind.QUEUED).any()
    left = with_queues[with_queues["kind"] != Kind.QUEUED].copy()
    left["sequence"] = np.arange(len(left))
    ends = left["kind"] == Kind.END
    left["second"][ends] = without["second"][without["kind"] == Kind.END]
    assert left.tobytes() == without.tobytes()


def test_external_acts_are_reported(tmp_path: Path) -> None:
    """A fork, a move, an attribute and a policy switch queue processes."""
    path = tmp_path / "trace.bin"
    text = "program root\n loop\n  sleep 1s\n end\nprogram a\n run 1s\n"
    with Simulator(text, cpus=2, costs="none", trace=path, trace_queues=True) as machine:
        machine.run(0)
        pids = [machine.fork("a") for _ in range(6)]
        machine.run(3_500_000)
        rows = machine.processes()
        waiting = rows["pid"][rows["place"] == 1].tolist()
        machine.set_attribute(waiting[0], Attribute.TICKETS, 3)
        moved = waiting[1]
        target_cpu = 1 - int(rows["cpu"][rows["pid"] == moved][0])
        machine.migrate(moved, target_cpu)
        before = machine.counts().records
        machine.set_policy("mlfq")
        machine.run(20_000_000)
    trace.validate(trace.read(path))
    trace_records = read_records(path).piece(0, 1_000_000)
    assert wrong_picks(trace_records) == []
    after = trace_records[before:]
    assert after["kind"][0] == Kind.POLICY  # tasks queued under it come after it
    adopted = after[1 : 1 + len(waiting)]
    assert (adopted["kind"] == Kind.QUEUED).all()
    assert set(adopted["process"].tolist()) == set(waiting) <= set(pids)
    queued = trace_records[:before][trace_records[:before]["kind"] == Kind.QUEUED]
    assert (int(queued[-1]["process"]), int(queued[-1]["first"])) == (moved, target_cpu)
    assert int(queued[-2]["process"]) == waiting[0]

# SPDX-License-Identifier: MIT
"""Tests Perfetto's traces as runs: event by event, in the compact form, packed, lossy and
damaged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace import (  # type: ignore[import-untyped]
    perfetto_trace_pb2 as protobuf,
)

from perf_recordings import TICK_NS, unpacked
from schedlab import metrics, trace
from schedlab.errors import WrongUsage
from schedlab.recordings.convert import Imported, convert
from schedlab.recordings.events import Event, Loss, Switch, Wakeup, WakeupEnd
from schedlab.recordings.perfetto import read_perfetto
from schedlab.recordings.text import parse
from schedlab.trace import Kind, Trace

_STATES = {"R": 0, "S": 1, "D": 2, "I": 0x80, "R+": 0x100, "X": 0x10, "Z": 0x20}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Imported]:
    """Returns a recording as text, and its run."""
    folder = tmp_path_factory.mktemp("recorded")
    path = unpacked("raw.txt", folder)
    return path, convert(path, folder / "run", "fair", TICK_NS)


def trace_of(made: Imported) -> Trace:
    return trace.read(made.folder / "trace.bin")


def converted(perfetto_trace: protobuf.Trace, folder: Path) -> Imported:
    path = folder / "trace.perfetto-trace"
    path.write_bytes(perfetto_trace.SerializeToString())
    return convert(path, folder / "run", "fair", TICK_NS)


def test_exported_trace_round_trips(recorded: tuple[Path, Imported], tmp_path: Path) -> None:
    before = trace_of(recorded[1])
    trace.export(before, tmp_path / "x.perfetto-trace", "perfetto")
    made = convert(tmp_path / "x.perfetto-trace", tmp_path / "run", "fair", TICK_NS)
    after = trace_of(made)
    assert made.notes == ()
    assert made.manifest["machine_version"] == "5.10.0"
    assert made.manifest["machine_origin"].startswith("x.perfetto-trace, read by perfetto ")
    for intervals in (metrics.cpu_intervals, metrics.state_intervals):
        columns = ("pid", "begin_ns", "end_ns", "cpu")
        tables = [
            intervals(trace_data).select(columns).sort(columns) for trace_data in (before, after)
        ]
        assert tables[0].equals(tables[1])
    forks = [
        trace_data.events[trace_data.rows(Kind.FORK)].select("process", "first")
        for trace_data in (before, after)
    ]
    assert forks[0].equals(forks[1])


def compact(path: Path) -> protobuf.Trace:
    """Returns a text's switches and wake-ups in columns, a bundle per CPU; idle threads
    belong to the kernel.
    """
    perfetto_trace = protobuf.Trace()
    events = parse(path.read_text()).events
    perfetto_trace.packet.add().system_info.num_cpus = 3
    tree = perfetto_trace.packet.add().process_tree
    tree.processes.add(pid=15, ppid=2, is_kthread=True)
    tree.threads.add(tid=167, tgid=166)
    names: dict[int, list[str]] = defaultdict(list)
    last: dict[tuple[int, type], int] = defaultdict(int)
    columns = {cpu: perfetto_trace.packet.add().ftrace_events for cpu in (0, 1)}
    for event in events:
        if not isinstance(event, (Switch, Wakeup)):
            continue
        bundle = columns[event.cpu]
        bundle.cpu = event.cpu
        into = bundle.compact_sched
        key = (event.cpu, type(event))
        step, last[key] = event.time_ns - last[key], event.time_ns
        name = event.next_name if isinstance(event, Switch) else event.name
        if name not in names[event.cpu]:
            names[event.cpu].append(name)
            into.intern_table.append(name)
        if isinstance(event, Switch):
            into.switch_timestamp.append(step)
            into.switch_prev_state.append(_STATES[event.state])
            into.switch_next_pid.append(event.next)
            into.switch_next_prio.append(event.next_priority)
            into.switch_next_comm_index.append(names[event.cpu].index(name))
        else:
            into.waking_timestamp.append(step)
            into.waking_pid.append(event.process)
            into.waking_target_cpu.append(event.target_cpu)
            into.waking_comm_index.append(names[event.cpu].index(name))
    return perfetto_trace


def test_compact_form_agrees(recorded: tuple[Path, Imported], tmp_path: Path) -> None:
    """The compact form lacks the thread before each CPU's first switch, and the initial names
    and priorities of later threads.
    """
    made = converted(compact(recorded[0]), tmp_path)
    assert made.manifest["cpus"] == 3
    assert made.manifest["recording"]["events"] == {"sched_waking": 98, "sched_switch": 201}
    columns = ("pid", "cpu", "begin_ns", "end_ns")
    before, after = (
        metrics.cpu_intervals(trace_of(conversion)).select(columns)
        for conversion in (recorded[1], made)
    )
    known = before.filter(~((before["begin_ns"] == 0) | (before["pid"] == 0)))
    after_rows = set(after.rows())
    assert len(known) > 150
    assert all(row in after_rows for row in known.rows())


def test_losses_wakeups_and_interrupts(tmp_path: Path) -> None:
    perfetto_trace = protobuf.Trace()
    bundle = perfetto_trace.packet.add().ftrace_events
    bundle.cpu, bundle.lost_events = 1, True
    for time, what in ((5, "sched_waking"), (6, "sched_wakeup")):
        event = bundle.event.add(timestamp=time, pid=9, common_flags=0x10)
        details = getattr(event, what)
        details.pid, details.comm, details.target_cpu = 7, "x", 2
    path = tmp_path / "trace"
    ended: list[Event] = [WakeupEnd(6, 1, 7)]
    for time in (5, 6):
        path.write_bytes(perfetto_trace.SerializeToString())
        assert read_perfetto(path)[0].events == [
            Wakeup(time, 1, 7, "x", 2, True),
            Loss(time, 1, 1),
            *ended,
        ]
        ended = []
        del bundle.event[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[: len(data) // 2], "damaged or incomplete"),
        (lambda data: b"\n\x06\xa2\x03\x03abc" + data, "damaged or incomplete"),
    ],
)
def test_what_cannot_be_read_is_refused(
    recorded: tuple[Path, Imported],
    tmp_path: Path,
    change: Callable[[bytes], bytes],
    message: str,
) -> None:
    path = tmp_path / "trace"
    path.write_bytes(change(compact(recorded[0]).SerializeToString()))
    with pytest.raises(WrongUsage, match=message):
        convert(path, tmp_path / "run", "fair", TICK_NS)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("field", ["zstd_compressed_packets", ""])
def test_what_has_no_scheduling_is_refused(field: str, tmp_path: Path) -> None:
    perfetto_trace = protobuf.Trace()
    perfetto_trace.packet.add(timestamp=256).system_info.num_cpus = 0
    if field:
        setattr(perfetto_trace.packet.add(), field, b"\0")
    with pytest.raises(WrongUsage, match="zstd" if field else "no sched_switch events"):
        converted(perfetto_trace, tmp_path)


def test_numbers_that_no_thread_has_are_refused(tmp_path: Path) -> None:
    perfetto_trace = protobuf.Trace()
    bundle = perfetto_trace.packet.add().ftrace_events
    bundle.cpu = 0
    event = bundle.event.add(timestamp=1, pid=1)
    event.sched_switch.next_pid = -5
    with pytest.raises(WrongUsage, match="that no thread or CPU"):
        converted(perfetto_trace, tmp_path)
    bundle.cpu = 1 << 20
    with pytest.raises(WrongUsage, match="of CPU 1048576"):
        converted(perfetto_trace, tmp_path)

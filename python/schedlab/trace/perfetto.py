# SPDX-License-Identifier: MIT
"""Exports a trace for ui.perfetto.dev, as if Linux's ftrace had recorded it.

Perfetto draws CPUs and thread states from ftrace's sched_switch, sched_waking and task events,
which come in one bundle per CPU. Events without a Linux counterpart (policies, tunables,
attributes, marks) go to a separate track.
"""

from pathlib import Path
from typing import Any

from perfetto.protos.perfetto.trace import (  # type: ignore[import-untyped]
    perfetto_trace_pb2 as protobuf,
)

from schedlab.base.display.names import visible_line
from schedlab.trace.bounds import TIME_MAX, has_impossible_field
from schedlab.trace.format import (
    AttributeKind,
    BlockReason,
    Kind,
    MarkKind,
    ProcessState,
    annotation_text,
    mark_text,
    signed,
)
from schedlab.trace.model import Trace

_EVENTS_PER_BUNDLE = 8192
_PRIORITY = 120
"""Linux's default priority. Priorities in the trace depend on the policy, so they are not exported."""
_THREAD = 0x10000
"""A bit of clone_flags: the new task is a thread of its creator's process."""
_FROM_INTERRUPT = 0x08
"""A bit of an event's common_flags: the event happened in a hardware interrupt."""
_RELEASE = "5.10.0"
"""The Linux release by whose numbering Perfetto interprets the states below."""
_RUNNABLE, _PREEMPTED, _SLEEPING, _SLEEPING_IN_KERNEL, _ZOMBIE = 0x00, 0x100, 0x01, 0x02, 0x20
_IN_KERNEL = {BlockReason.DISK, BlockReason.LOCK, BlockReason.JOURNAL}
_BOOT_CLOCK = 6
_PACKET_SEQUENCE = 1
_MARKS_TRACK = 1


def write_perfetto(trace: Trace, path: Path) -> None:
    """Writes a trace in Perfetto's format. Omits records whose numbers are too large for the format."""
    path.write_bytes(_Converter(trace).convert())


class _Converter:
    """Converts events one by one, and tracks the state that Linux's events repeat."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.texts: dict[int, str] = {
            row: visible_line(text) for row, text in trace.texts.iter_rows()
        }
        self.names: dict[int, str] = {}
        self.value_names: dict[int, str] = {}
        """The name of the values that each process reports."""
        self.groups: dict[int, int] = {}
        """The process of each thread."""
        self.stops_as: dict[int, int] = {}
        """The state of a process that is about to leave its CPU, unless it is simply runnable."""
        self.out = protobuf.Trace()
        self.room = [0] * trace.header.cpus
        """Remaining capacity of each CPU's bundle, in events."""
        self.bundle: list[Any] = [None] * trace.header.cpus

    def convert(self) -> bytes:
        handlers = {
            Kind.SWITCH: self.switch,
            Kind.WAKEUP: self.wakeup,
            Kind.FORK: self.fork,
            Kind.FOUND: self.found,
            Kind.EXEC: self.exec,
            Kind.EXIT: self.exit,
            Kind.BLOCK: self.block,
            Kind.PREEMPT: self.preempt,
            Kind.MARK: self.mark,
            Kind.POLICY: self.policy,
            Kind.TUNABLE: self.tunable,
            Kind.SAID: self.said,
            Kind.ATTRIBUTE: self.attribute,
        }
        rows = self.trace.rows(*handlers)
        rows = rows[~has_impossible_field(self.trace.records(rows), self.trace.header.cpus)]
        columns = ("time_ns", "cpu", "kind", "process", "first", "second")
        values = (self.trace.column(name)[rows].tolist() for name in columns)
        times = self.trace.column("time_ns")[rows]
        self.begin(int(times.min(initial=TIME_MAX)) if len(rows) else 0)
        for row, time, cpu, kind, process, first, second in zip(
            rows.tolist(), *values, strict=True
        ):
            handlers[kind](row, time, cpu, process, first, second)
        data: bytes = self.out.SerializeToString()
        return data

    def begin(self, time: int) -> None:
        """Adds the packets before the events: the machine, and a track for marks."""
        system = self.packet(time).system_info
        system.num_cpus = self.trace.header.cpus
        system.utsname.sysname = "Linux"
        system.utsname.release = _RELEASE
        system.utsname.machine = "riscv64"
        track = self.packet(time).track_descriptor
        track.uuid = _MARKS_TRACK
        track.name = "schedlab"

    def packet(self, time: int) -> Any:
        """Adds and returns a packet; events of ftrace are added with `event`."""
        packet = self.out.packet.add(timestamp=time, timestamp_clock_id=_BOOT_CLOCK)
        packet.trusted_packet_sequence_id = _PACKET_SEQUENCE
        return packet

    def event(self, time: int, cpu: int, process: int) -> Any:
        """Adds and returns an ftrace event of a CPU that was running `process`."""
        if self.room[cpu] == 0:
            packet = self.out.packet.add(trusted_packet_sequence_id=_PACKET_SEQUENCE)
            self.bundle[cpu] = packet.ftrace_events
            self.bundle[cpu].cpu = cpu
            self.room[cpu] = _EVENTS_PER_BUNDLE
        self.room[cpu] -= 1
        return self.bundle[cpu].event.add(timestamp=time, pid=process)

    def instant(self, time: int, name: str, kind: int = protobuf.TrackEvent.TYPE_INSTANT) -> None:
        """Adds an event to the track of marks."""
        event = self.packet(time).track_event
        event.track_uuid = _MARKS_TRACK
        event.type = kind
        event.name = name

    def name(self, pid: int, cpu: int) -> str:
        """Returns the current name of a process."""
        return self.names.get(pid, f"process {pid}") if pid else f"swapper/{cpu}"

    def switch(self, _row: int, time: int, cpu: int, process: int, first: int, second: int) -> None:
        switch = self.event(time, cpu, first).sched_switch
        switch.prev_comm = self.name(first, cpu)
        switch.prev_pid = first
        switch.prev_prio = _PRIORITY
        switch.prev_state = self.state_left(first, second)
        switch.next_comm = self.name(process, cpu)
        switch.next_pid = process
        switch.next_prio = _PRIORITY

    def state_left(self, process: int, state: int) -> int:
        """Returns the Linux state number of a process that left its CPU."""
        prev_state = self.stops_as.pop(process, _RUNNABLE)
        if process == 0:
            return _RUNNABLE
        if state == ProcessState.BLOCKED:
            return prev_state if prev_state in (_SLEEPING, _SLEEPING_IN_KERNEL) else _SLEEPING
        if state == ProcessState.ZOMBIE:
            return _ZOMBIE
        return prev_state if prev_state == _PREEMPTED else _RUNNABLE

    def block(
        self, _row: int, _time: int, _cpu: int, process: int, first: int, _second: int
    ) -> None:
        self.stops_as[process] = _SLEEPING_IN_KERNEL if first in _IN_KERNEL else _SLEEPING

    def preempt(self, _row: int, _time: int, _cpu: int, process: int, _: int, _second: int) -> None:
        self.stops_as[process] = _PREEMPTED

    def wakeup(self, _row: int, time: int, cpu: int, process: int, first: int, second: int) -> None:
        event = self.event(time, cpu, first)
        if first == 0:
            event.common_flags = _FROM_INTERRUPT
        waking = event.sched_waking
        waking.comm = self.name(process, cpu)
        waking.pid = process
        waking.prio = _PRIORITY
        waking.success = 1
        waking.target_cpu = second & 0xFFFF

    def fork(self, _row: int, time: int, cpu: int, process: int, first: int, second: int) -> None:
        """Converts FORK: a new runnable task."""
        self.names[first] = self.names.get(process, f"process {first}")
        new = self.event(time, cpu, process).task_newtask
        new.pid = first
        new.comm = self.names[first]
        new.clone_flags = _THREAD if second else 0
        self.introduce(time, first, process, second)

    def found(self, row: int, time: int, _cpu: int, process: int, _: int, second: int) -> None:
        """Converts FOUND: a process that existed before the trace."""
        self.names[process] = self.texts.get(row) or f"process {process}"
        self.introduce(time, process, 0, second)

    def introduce(self, time: int, pid: int, parent: int, of: int) -> None:
        """Names a task. `of`: the PID of the process if the task is one of its threads, or 0."""
        self.groups[pid] = of or pid
        # 1 ns later, so that it adds to the task that the previous event created
        tree = self.packet(time + 1).process_tree
        if of:
            tree.threads.add(tid=pid, tgid=of, name=self.names[pid])
        else:
            tree.processes.add(pid=pid, ppid=parent, cmdline=[self.names[pid]])

    def exec(self, row: int, time: int, cpu: int, process: int, _first: int, _second: int) -> None:
        """Converts EXEC: a new name."""
        rename = self.event(time, cpu, process).task_rename
        rename.pid = process
        rename.oldcomm = self.name(process, cpu)
        self.names[process] = rename.newcomm = self.texts.get(row, "")
        tree = self.packet(time + 1).process_tree
        group = self.groups.get(process, process)
        if group == process:
            tree.processes.add(pid=process, cmdline=[self.names[process]])
        else:
            tree.threads.add(tid=process, tgid=group, name=self.names[process])

    def exit(self, _row: int, time: int, cpu: int, process: int, _first: int, _second: int) -> None:
        end = self.event(time, cpu, process).sched_process_exit
        end.comm = self.name(process, cpu)
        end.pid = process
        end.tgid = self.groups.get(process, process)
        end.prio = _PRIORITY

    def mark(self, _row: int, time: int, cpu: int, process: int, first: int, second: int) -> None:
        """Converts MARK: the window becomes a slice, all other marks become instants."""
        if first == MarkKind.BEGIN:
            self.instant(time, "measured window", protobuf.TrackEvent.TYPE_SLICE_BEGIN)
        elif first == MarkKind.END:
            self.instant(time, "measured window", protobuf.TrackEvent.TYPE_SLICE_END)
        elif first == MarkKind.GROUP:
            self.instant(
                time,
                f"{self.name(process, cpu)} ({process}) joins {visible_line(mark_text(second))}",
            )
        elif first == MarkKind.NAME:
            self.value_names[process] = visible_line(mark_text(second))
        elif first == MarkKind.VALUE:
            text = f"{self.value_names.get(process, '')} = {signed(second)}"
            self.instant(time, f"{self.name(process, cpu)} ({process}) tells {text}")
        elif first == MarkKind.JOB:
            self.instant(time, f"job of {self.name(process, cpu)} ({process}) done")
        else:
            self.instant(time, f"note {second} of {self.name(process, cpu)} ({process})")

    def policy(self, row: int, time: int, _cpu: int, _process: int, _: int, _second: int) -> None:
        self.instant(time, f"policy {self.texts.get(row, '')}")

    def tunable(self, row: int, time: int, _cpu: int, _process: int, _: int, second: int) -> None:
        self.instant(time, f"{self.texts.get(row, '')} = {signed(second)}")

    def said(self, row: int, time: int, cpu: int, process: int, first: int, second: int) -> None:
        """Converts SAID: an annotation of the policy."""
        words = visible_line(annotation_text(self.texts.get(row, ""), first, second))
        speaker = f" ({self.name(process, cpu)} {process})" if process else ""
        self.instant(time, f"{words}{speaker}")

    def attribute(
        self, _row: int, time: int, cpu: int, process: int, kind: int, value: int
    ) -> None:
        name = (
            AttributeKind(kind).name.lower() if kind in set(AttributeKind) else f"attribute {kind}"
        )
        self.instant(time, f"{name} of {self.name(process, cpu)} ({process}) = {signed(value)}")

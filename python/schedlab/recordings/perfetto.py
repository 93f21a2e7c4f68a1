# SPDX-License-Identifier: MIT
"""Reads Perfetto traces: Linux's tracepoints as protobuf messages, in one bundle per CPU.

A bundle contains switches and wake-ups one by one, or in a compact form with a column per field.
There, times are differences, names are indices in a table, and the thread that leaves is omitted,
because the previous switch names it.
"""

import zlib
from collections.abc import Iterator
from itertools import accumulate, repeat
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from perfetto.protos.perfetto.trace import (  # type: ignore[import-untyped]
    perfetto_trace_pb2 as protobuf,
)

from schedlab.errors import WrongUsage
from schedlab.recordings.events import (
    WAKEUPS,
    Event,
    Events,
    Fork,
    Loss,
    Move,
    Start,
    Switch,
    Wakeup,
    WakeupEnd,
)
from schedlab.recordings.states import finish

_IN_INTERRUPT = 0x08 | 0x10 | 0x40
"""Bits of an event's common_flags: it happened in a hardware, software or non-maskable interrupt."""
_THREAD = 0x10000
"""A bit of clone_flags: the new task is a thread of its creator's process."""
_LARGEST = 1 << 32
"""Maximum total size (bytes) of packets after decompression."""

_Thread = tuple[int, str, int]
"""PID, name and priority."""


def read_perfetto(path: Path) -> tuple[Events, int, dict[str, str]]:
    """Reads a Perfetto trace.

    Returns the events, the number of CPUs (0: unknown), and facts about the machine. Raises
    WrongUsage if the file is not a Perfetto trace.
    """
    return _Reader(path).read()


class _Reader:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.collected = Events()
        self.cpus = 0
        self.facts: dict[str, str] = {}
        self.running: dict[int, _Thread] = {}
        """The last thread that each CPU switched to."""
        self.unpacked = 0
        self.wakeups: list[int] = []
        """Indices of sched_wakeup events."""

    def read(self) -> tuple[Events, int, dict[str, str]]:
        for packet in self.packets(self.path.read_bytes()):
            if packet.HasField("ftrace_events"):
                self.bundle(packet.ftrace_events)
            elif packet.HasField("process_tree"):
                self.tree(packet.process_tree)
            elif packet.HasField("system_info"):
                self.system(packet.system_info)
        if (
            WAKEUPS[0] in self.collected.seen
        ):  # every wake-up has a sched_waking, so sched_wakeup is not counted again
            for place in self.wakeups:
                self.collected.events[place] = WakeupEnd(*self.collected.events[place][:3])
        self.collected.events.sort(key=lambda event: event[0])
        finish(self.collected)
        return self.collected, self.cpus, self.facts

    def packets(self, data: bytes) -> Iterator[Any]:
        """Yields all packets, including compressed ones."""
        trace = protobuf.Trace()
        try:
            trace.ParseFromString(data)
            for packet in trace.packet:
                if packet.HasField("zstd_compressed_packets"):
                    raise WrongUsage(
                        f"{self.path}: its packets are compressed with zstd; record without "
                        "compression, or with `compression_type: COMPRESSION_TYPE_DEFLATE`"
                    )
                if packet.HasField("compressed_packets"):
                    yield from self.packets(self.inflated(packet.compressed_packets))
                else:
                    yield packet
        except (DecodeError, zlib.error) as error:
            raise WrongUsage(
                f"{self.path}: begins as a Perfetto trace, but cannot be read ({error}); "
                "if it is damaged or incomplete, record it again"
            ) from None

    def inflated(self, packed: bytes) -> bytes:
        """Returns the bytes of packed packets. Raises zlib.error if they are cut or too large."""
        stream = zlib.decompressobj()
        data = stream.decompress(packed, _LARGEST - self.unpacked)
        self.unpacked += len(data)
        if stream.unconsumed_tail or not stream.eof:
            raise zlib.error("packed packets that do not end")
        return data

    # --- packets

    def tree(self, tree: Any) -> None:
        for process in tree.processes:
            kernels = process.is_kthread or (
                process.pid == 2 and list(process.cmdline) == ["kthreadd"]
            )
            if kernels or (process.ppid == 2 and 2 in self.collected.of_kernel):
                self.collected.of_kernel.add(process.pid)
        for thread in tree.threads:
            if thread.tid != thread.tgid:
                self.collected.leader[thread.tid] = thread.tgid

    def system(self, system: Any) -> None:
        self.cpus = max(self.cpus, system.num_cpus)
        uname = system.utsname
        facts = {"release": _text(uname.release), "architecture": _text(uname.machine)}
        self.facts.update({name: words for name, words in facts.items() if words})

    def bundle(self, bundle: Any) -> None:
        """Adds the events of one CPU's bundle."""
        cpu = bundle.cpu
        begin = len(self.collected.events)
        if bundle.lost_events:
            self.running.pop(cpu, None)
        if bundle.HasField("compact_sched"):
            self.compact(cpu, bundle.compact_sched)
        for event in bundle.event:
            self.event(cpu, event)
        if bundle.lost_events:
            times = [event.time_ns for event in self.collected.events[begin:]]
            self.add("lost", Loss(min(times, default=0), cpu, 1))

    def count(self, event_name: str) -> None:
        self.collected.seen[event_name] = self.collected.seen.get(event_name, 0) + 1

    def add(self, event_name: str, event: Event) -> None:
        self.count(event_name)
        self.collected.events.append(event)

    # --- individual events

    def event(self, cpu: int, event: Any) -> None:
        time, what = event.timestamp, event.WhichOneof("event")
        if what is None or not hasattr(self, what):
            return
        if what != "sched_switch" and event.HasField("pid"):
            self.collected.see(time, cpu, event.pid)
        getattr(self, what)(time, cpu, event, getattr(event, what))

    def sched_switch(self, time: int, cpu: int, header: Any, event: Any) -> None:
        state = str(event.prev_state)
        previous = (event.prev_pid, _text(event.prev_comm), event.prev_prio)
        following = (event.next_pid, _text(event.next_comm), event.next_prio)
        self.running[cpu] = following
        self.count("sched_switch")
        self.collected.add_switch(Switch(time, cpu, *previous, state, *following), header.pid)

    def sched_waking(self, time: int, cpu: int, event: Any, waking: Any) -> None:
        self.add_wakeup(
            WAKEUPS[0],
            time,
            cpu,
            waking.pid,
            _text(waking.comm),
            waking.target_cpu,
            event.common_flags,
        )

    def sched_wakeup(self, time: int, cpu: int, event: Any, wakeup: Any) -> None:
        self.add_wakeup(
            WAKEUPS[1],
            time,
            cpu,
            wakeup.pid,
            _text(wakeup.comm),
            wakeup.target_cpu,
            event.common_flags,
        )

    def sched_wakeup_new(self, time: int, cpu: int, _: Any, event: Any) -> None:
        self.add(
            "sched_wakeup_new", Start(time, cpu, event.pid, _text(event.comm), event.target_cpu)
        )

    def sched_process_fork(self, time: int, cpu: int, _: Any, event: Any) -> None:
        self.add_fork("sched_process_fork", time, cpu, event.parent_pid, event.child_pid)

    def task_newtask(self, time: int, cpu: int, event: Any, new_task: Any) -> None:
        if new_task.clone_flags & _THREAD:
            self.collected.leader[new_task.pid] = self.collected.leader.get(event.pid, event.pid)
        self.add_fork("task_newtask", time, cpu, event.pid, new_task.pid)

    def sched_migrate_task(self, time: int, cpu: int, _: Any, event: Any) -> None:
        self.add("sched_migrate_task", Move(time, cpu, event.pid, event.orig_cpu, event.dest_cpu))

    def add_wakeup(
        self, event_name: str, time: int, cpu: int, pid: int, name: str, target: int, flags: int
    ) -> None:
        if event_name != WAKEUPS[0]:
            self.wakeups.append(len(self.collected.events))
        self.add(event_name, Wakeup(time, cpu, pid, name, target, bool(flags & _IN_INTERRUPT)))

    def add_fork(self, event_name: str, time: int, cpu: int, parent: int, child: int) -> None:
        self.add(event_name, Fork(time, cpu, parent, child))
        if parent in self.collected.of_kernel and parent == 2:
            self.collected.of_kernel.add(child)

    # --- compact events

    def compact(self, cpu: int, event: Any) -> None:
        """Adds the compact events of a bundle.

        Wake-ups are added before switches: at equal times, a CPU wakes a thread before it switches.
        """
        names = [_text(name) for name in event.intern_table]
        wakings = (
            accumulate(event.waking_timestamp),
            event.waking_pid,
            event.waking_comm_index,
            event.waking_target_cpu,
            # Older versions do not record whether an interrupt caused a wake-up.
            event.waking_common_flags or repeat(0),
        )
        for time, pid, name, target, flags in zip(*wakings, strict=False):
            self.add_wakeup(WAKEUPS[0], time, cpu, pid, self.named(names, name), target, flags)
        switches = (
            accumulate(event.switch_timestamp),
            event.switch_prev_state,
            event.switch_next_pid,
            event.switch_next_prio,
            event.switch_next_comm_index,
        )
        for time, state, pid, priority, name in zip(*switches, strict=False):
            following = (pid, self.named(names, name), priority)
            # The thread that leaves at the first switch is unknown.
            previous: _Thread = self.running.get(cpu, (-1, "", priority))
            self.running[cpu] = following
            self.count("sched_switch")
            self.collected.add_switch(Switch(time, cpu, *previous, str(state), *following), -1)

    @staticmethod
    def named(names: list[str], at: int) -> str:
        return names[at] if at < len(names) else ""


def _text(text: str | bytes) -> str:
    """Returns a name as text, with invalid UTF-8 replaced."""
    return text if isinstance(text, str) else text.decode(errors="replace")

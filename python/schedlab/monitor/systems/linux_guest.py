# SPDX-License-Identifier: MIT
"""Adapter of a Linux kernel with schedlab's policies in QEMU.

    guest ── port 1, trace.bin ──► Follower ──► take()
      ▲ ▲──── port 2 ◄──────────── Steering
      │ └──── console ───────────► Console ───► take_log()

The guest's time is the host's time. Counting instructions would not make runs repeatable, because
commands arrive at different times in each run.
"""

import asyncio
import os
import signal
import socket
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from schedlab.base.host.isolated import complete_prefix
from schedlab.base.host.supervision import await_completely
from schedlab.machines.linux.guest import PreparedGuest, panic_lines
from schedlab.machines.linux.live_guest import WORKLOADS_FOLDER, LiveJob, prepare_live
from schedlab.machines.outcome import describe_tail, indent
from schedlab.monitor.system import Life, Records, Refused, Setup, Status
from schedlab.monitor.systems.compiled_palette import CompiledPalette, compile_palette
from schedlab.monitor.systems.console import Console
from schedlab.monitor.systems.qemu_control import QemuControl
from schedlab.monitor.systems.real_system import GuestSystem
from schedlab.monitor.systems.status_text import parse_status
from schedlab.monitor.systems.steering import GuestError, Steering, SteeringCost
from schedlab.trace.format import AttributeKind, Kind
from schedlab.workload.loading import check_channels

TICK_NS = 4_000_000
"""Tick (ns) of the guest's kernel, whose HZ is 250."""
START_PATIENCE_S = 300.0
"""Host seconds for the boot and the first policy; an idle host takes 6 s."""
_SERVER = "schedlab-linux"
_READ_BYTES = 1 << 16


class LinuxGuestSystem(GuestSystem):
    """See System. `folder` must exist and be empty. `objects`: as in LiveJob."""

    name = "guest"
    end_patience_s = 20.0

    def __init__(self, setup: Setup, folder: Path, objects: Path | None = None) -> None:
        super().__init__(replace(setup, tick_ns=TICK_NS), folder)
        self._objects = objects
        self._control = QemuControl()
        self._port: asyncio.StreamWriter | None = None
        self._listening: asyncio.Task[None] | None = None
        self._processes = MonitorProcesses()
        self._compiled = CompiledPalette()

    @property
    def monitor_pids(self) -> frozenset[int]:
        """PIDs of all processes except the processes of workloads that the monitor started."""
        return self._processes.monitor_pids

    # --- beginning and end

    async def _begin(self) -> None:
        assert self._control
        ours, theirs = socket.socketpair()
        with theirs:
            inherited = (theirs.fileno(), self._control.qemu_socket.fileno())
            await self._listen(ours)
            prepared = await await_completely(asyncio.to_thread(self._prepare, *inherited))
            # MachineProcess arranges that the machine dies together with this process.
            await self._start(prepared.command[len(complete_prefix()) :], inherited)
        await self._await_ready(START_PATIENCE_S)
        self._processes.steer_pid = self._steer_pid
        await self._await_trace(
            START_PATIENCE_S, "the guest writes no trace; read its console, and try again"
        )
        with suppress(Refused):  # the machine may have ended; its console then gives the reason
            await self._control.connect()

    def _prepare(self, steering: int, control: int) -> PreparedGuest:
        """Builds, fetches and writes the guest's files; runs in a thread."""
        workload_folder = self.folder / WORKLOADS_FOLDER
        self._compiled = compile_palette(self.setup, workload_folder, TICK_NS, check_channels)
        job = LiveJob(
            policy=str(self.setup.policy),
            settings=self.setup.settings,
            cpus=self.setup.cpus,
            memory_mib=self.setup.memory_mib,
            seed=self.setup.seed,
            files={path.name: path for path in self._compiled.files.values()},
            objects=self._objects,
        )
        return prepare_live(job, self.folder, steering, control)

    async def _listen(self, ours: socket.socket) -> None:
        """Connects to the guest's port, and reads answers from now on."""
        reader, self._port = await asyncio.open_connection(sock=ours)
        self._steering = Steering(Console(), self._port.write, LinuxError)
        self._steering.explain_silence = lambda: "its kernel hangs, or the host gives it no time"
        self._listening = asyncio.create_task(_read_answers(reader, self._steering))

    async def _close(self) -> None:
        if self._listening and self._port:
            self._listening.cancel()
            await asyncio.wait([self._listening])
            self._port.close()
        await super()._close()

    def _final_state(self, status: int) -> tuple[Life, str]:
        if self._end_requested:
            return Life.ENDED, "it was ended"
        return Life.FAILED, _end_reason(status, self._console.tail)

    # --- output

    def _receive_output(self, data: bytes) -> None:
        self._console.feed(data)

    def _inspect_records(self, records: Records) -> None:
        super()._inspect_records(records)
        self._processes.feed(records)

    # --- commands

    async def read_status(self) -> Status:
        status = parse_status(await self._read_status_text())
        if len(self._costs) < 2:
            servers = (row.pid for row in status.rows if row.name == _SERVER)
            self._costs |= {pid: SteeringCost(pid) for pid in servers}
        return status

    async def set_policy(self, policy: str) -> None:
        """Sets the policy. The first call takes seconds, because the guest's kernel verifies it."""
        await self._live_steering().execute(f"write sched_status {policy}", f"policy {policy}")

    async def set_tunable(self, name: str, value: int) -> None:
        await self._live_steering().execute(
            f"write sched_tunables {name}={value}", f"{name}={value}"
        )

    async def set_attribute(self, pid: int, kind: AttributeKind, value: int) -> None:
        word = kind.name.lower()
        await self._live_steering().execute(
            f"set {pid} {word} {value}", f"{word} {value} of process {pid}"
        )

    async def start_workload(self, name: str) -> int:
        return await self._start_workload_command(
            f"play {WORKLOADS_FOLDER}/{self._compiled.file(name).name}", name
        )

    async def kill(self, pid: int) -> None:
        if pid in self.monitor_pids:
            raise Refused(f"process {pid}: the guest needs it; choose another")
        await self._live_steering().execute(f"kill {pid}", f"kill {pid}")


async def _read_answers(reader: asyncio.StreamReader, steering: Steering) -> None:
    with suppress(OSError):
        while data := await reader.read(_READ_BYTES):
            steering.receive(data)


def _end_reason(status: int, console: str) -> str:
    """Returns why a machine ended without a request."""
    if "Kernel panic" in console:
        return "the guest's kernel panicked:\n" + indent(panic_lines(console))
    if status < 0:
        name = signal.Signals(-status).name
        return f"the guest's QEMU was ended by {name}" + describe_tail(console)
    return "the guest was switched off" + describe_tail(console)


class LinuxError(GuestError):
    """The guest rejected a command; `number` is Linux's errno."""

    def __init__(self, action: str, number: int, words: str = "") -> None:
        self.number = number
        self.words = words or os.strerror(number)
        Refused.__init__(self, self.words, what=action)
        self.args = (action, number, words)  # pickle passes these to the constructor


class MonitorProcesses:
    """Separates workload processes from the monitor's, by the forks in a guest's trace.

    Workload processes are the descendants of processes that `steer` started. All others belong to
    the monitor: kernel threads, init, the policy server, `steer` itself. An ended process stays
    known until its PID is reused, because later records may refer to it.
    """

    def __init__(self) -> None:
        self.steer_pid = 0
        """PID of `steer`; 0 before it can start processes."""
        self._workload_pids: set[int] = set()
        self._monitor_pids: set[int] = set()
        self._monitor_pids_snapshot: frozenset[int] | None = frozenset()

    @property
    def monitor_pids(self) -> frozenset[int]:
        if self._monitor_pids_snapshot is None:
            self._monitor_pids_snapshot = frozenset(self._monitor_pids)
        return self._monitor_pids_snapshot

    def feed(self, records: Records) -> None:
        """Processes the next records in sequence order."""
        kinds = records["kind"]
        new_processes = records[(kinds == Kind.FORK) | (kinds == Kind.FOUND)]
        rows = zip(*(new_processes[name].tolist() for name in _FIELDS), strict=True)
        for kind, process, first, second in rows:
            if kind == Kind.FOUND:
                self._set_owner(process, is_workload=False)
            else:
                self._set_owner(
                    first,
                    self._is_workload_start(process, second) or process in self._workload_pids,
                )

    def _is_workload_start(self, parent: int, thread_of: int) -> bool:
        """Returns whether a fork is the start of a workload: `steer` forked a process, not a thread."""
        return self.steer_pid != 0 and parent == self.steer_pid and thread_of != self.steer_pid

    def _set_owner(self, pid: int, is_workload: bool) -> None:
        joined_set, left_set = (
            (self._workload_pids, self._monitor_pids)
            if is_workload
            else (self._monitor_pids, self._workload_pids)
        )
        joined_set.add(pid)
        left_set.discard(pid)
        self._monitor_pids_snapshot = None


_FIELDS = ("kind", "process", "first", "second")

# SPDX-License-Identifier: MIT
"""A Linux kernel with our policies, in QEMU, as a system to be watched.

    guest ── port 1, trace.bin ──► Follower ──► take()
      ▲ ▲──── port 2 ◄──────────── Steering
      │ └──── console ───────────► Console ───► take_log()

Its time is the host's: what is steered from outside is never the same twice, so that nothing would be
gained by counting instructions.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from schedlab.errors import SchedlabError
from schedlab.host.supervision import to_the_end
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.linux.guest import Prepared, panic_lines, tied
from schedlab.machines.linux.live import WORKLOADS, LiveJob, prepare_live
from schedlab.machines.outcome import indent, tail_of
from schedlab.monitor.system import Ability, Life, Records, Refused, Setup, Status, TunableNow
from schedlab.monitor.systems.console import Console
from schedlab.monitor.systems.linux_errors import LinuxError
from schedlab.monitor.systems.linux_family import Family
from schedlab.monitor.systems.linux_palette import Compiled, compile_palette
from schedlab.monitor.systems.machine_process import MachineProcess
from schedlab.monitor.systems.qemu_control import QemuControl
from schedlab.monitor.systems.status_text import parse_status, parse_tunables
from schedlab.monitor.systems.steering import Steering
from schedlab.monitor.systems.steering_cost import SteeringCost
from schedlab.runs.parts import supply
from schedlab.trace.errors import TraceError
from schedlab.trace.follow import Follower
from schedlab.trace.format import RECORD, AttributeKind
from schedlab.trace.model import Header

TICK_NS = 4_000_000
"""Of the guest's kernel, whose HZ is 250."""
START_PATIENCE_S = 300.0
"""Of ours, for the boot and the first policy: 6 s on a host that has nothing else to do."""
END_PATIENCE_S = 20.0
"""Of ours, for a guest that was asked to end."""
_SERVER = "schedlab-linux"
_PUNCH_BYTES = 16 << 20
_READ_BYTES = 1 << 16


class LinuxGuestSystem:
    """See System. `folder` is empty and there; `objects`: see LiveJob."""

    repeatable = False
    abilities = frozenset(
        {Ability.POLICY, Ability.ATTRIBUTES, Ability.START, Ability.PAUSE, Ability.SETUP}
    )

    def __init__(self, setup: Setup, folder: Path, objects: Path | None = None) -> None:
        self.setup = replace(setup, tick_ns=TICK_NS)
        self.folder = folder.resolve()
        self.keep_trace = False
        """The file keeps what was read of it; else, its blocks go back to the disk."""
        self._objects = objects
        self._life = Life.STARTING
        self._message = ""
        self._ending = False
        """It was asked to end."""
        self._forced = False
        self._console = Console()
        self._process = MachineProcess(self._hear)
        self._control = QemuControl()
        self._steering: Steering | None = None
        self._port: asyncio.StreamWriter | None = None
        self._listening: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._follower = Follower(self.folder / TRACE_FILE)
        self._all_taken = False
        self._taken_bytes = 0
        """Of the trace, since blocks of it were last given back."""
        self._family = Family()
        self._compiled = Compiled()
        self._record_cost_ns = 0.0
        self._costs: dict[int, SteeringCost] = {}
        """By the PIDs of who steers, and of who serves the policies and answers him."""

    # --- what it is -------------------------------------------------------------------------------

    @property
    def life(self) -> Life:
        return self._life

    @property
    def message(self) -> str:
        return self._message

    @property
    def header(self) -> Header | None:
        with suppress(TraceError, OSError):
            return self._follower.header
        return None

    @property
    def own_pids(self) -> frozenset[int]:
        """All but those who were started from the monitor."""
        return self._family.own

    @property
    def record_cost_ns(self) -> float:
        return self._record_cost_ns

    @property
    def status_period_s(self) -> float:
        """As of our own kernel."""
        return max((cost.period_s for cost in self._costs.values()), default=1.0)

    # --- its beginning ----------------------------------------------------------------------------

    async def begin(self) -> None:
        try:
            await self._begin()
        except BaseException:
            await self.end()
            raise

    async def _begin(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            ends = (theirs.fileno(), self._control.theirs.fileno())
            await self._listen(ours)
            prepared = await to_the_end(asyncio.to_thread(self._prepare, *ends))
            await self._start(prepared, ends)
        await self._await_ready()
        with suppress(Refused):  # it may have ended, and its console says why
            await self._control.connect()
        self._life = Life.RUNNING
        for name in self.setup.workloads:
            await self.start_workload(name)

    def _prepare(self, steering: int, control: int) -> Prepared:
        """In a thread: it builds, fetches and writes."""
        place = self.folder / WORKLOADS
        simulator = supply(["simulator"])["simulator"]
        self._compiled = compile_palette(self.setup, place, TICK_NS, simulator)
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

    async def _start(self, prepared: Prepared, ends: tuple[int, int]) -> None:
        command = prepared.command[len(tied()) :]  # MachineProcess sees to that
        try:
            await self._process.start(command, self.folder, ends)
        except OSError as error:
            raise SchedlabError(f"{command[0]} cannot be started: {error.strerror}") from None
        self._watching = asyncio.create_task(self._watch())

    async def _listen(self, ours: socket.socket) -> None:
        reader, self._port = await asyncio.open_connection(sock=ours)
        self._steering = Steering(Console(), self._port.write, LinuxError)
        self._steering.explain_silence = lambda: "its kernel hangs, or the host gives it no time"
        self._listening = asyncio.create_task(_hear_answers(reader, self._steering))

    async def _await_ready(self) -> None:
        assert self._steering
        try:
            ready = await self._steering.wait_ready(START_PATIENCE_S)
        except Refused as problem:
            why = self._message or f"{problem}{tail_of(self._console.tail)}"
            raise SchedlabError(why) from None
        self._family.founder = ready.pid
        self._costs[ready.pid] = SteeringCost(ready.pid)
        self._record_cost_ns = ready.record_cost_ps / 1000
        limit = time.monotonic() + START_PATIENCE_S
        while self._follower.header is None:  # it has left the guest before
            if self._message or time.monotonic() > limit:
                raise SchedlabError(self._message or "the guest writes no trace")
            await asyncio.sleep(0.02)

    # --- its end ----------------------------------------------------------------------------------

    async def end(self) -> None:
        await to_the_end(self._end())

    async def _end(self) -> None:
        if self._watching and not self._watching.done():
            self._ending = True
            await self._end_in_order(self._watching)
            if not self._watching.done():
                self._forced = True
                await self._process.end()
            await self._watching
        if self._listening and self._port:
            self._listening.cancel()
            await asyncio.wait([self._listening])
            self._port.close()
        await self._control.close()
        if self._life is Life.STARTING:
            self._life = Life.ENDED

    async def _end_in_order(self, watching: asyncio.Task[None]) -> None:
        """By its own program, so that the trace is whole."""
        with suppress(Refused):
            await self.resume()
        if self._steering and self._life is Life.RUNNING:
            self._steering.type_end()
            await asyncio.wait([watching], timeout=END_PATIENCE_S)

    async def _watch(self) -> None:
        """Until it has ended, for whatever reason."""
        status = await self._process.wait()
        self._console.close()
        self._life, self._message = self._came_of(status)
        if self._steering:
            self._steering.fail(self._message.partition("\n")[0])

    def _came_of(self, status: int) -> tuple[Life, str]:
        if self._forced:
            return Life.ENDED, "it was ended by force: the last of its trace is missing"
        if self._ending:
            return Life.ENDED, "it was ended"
        return Life.FAILED, _last_words(status, self._console.tail)

    # --- what it says -----------------------------------------------------------------------------

    def _hear(self, data: bytes) -> None:
        self._console.feed(data)

    def take_log(self) -> list[str]:
        return self._console.take_log()

    def take(self) -> Records:
        if self._all_taken:
            return np.empty(0, RECORD)
        try:
            records = self._poll()
        except (TraceError, OSError) as error:
            self._lose_trace(f"its trace cannot be read: {error}")
            return np.empty(0, RECORD)
        self._family.feed(records)
        for cost in self._costs.values():
            cost.feed(records)
        return records

    def _poll(self) -> Records:
        if self._watching and self._watching.done():
            self._all_taken = True
            records = self._follower.finish()
            self._follower.close()
            return records
        records = self._follower.poll()
        self._taken_bytes += records.nbytes
        if not self.keep_trace and self._taken_bytes > _PUNCH_BYTES:
            self._follower.punch()
            self._taken_bytes = 0
        return records

    def _lose_trace(self, why: str) -> None:
        """Nothing can be shown any more: it is ended."""
        self._all_taken = True
        self._follower.close()
        if self._watching and not self._watching.done():
            self._life, self._message = Life.FAILED, why
            self._process.kill()

    # --- commands ---------------------------------------------------------------------------------

    async def read_status(self) -> Status:
        steering = self._told()
        for cost in self._costs.values():
            cost.asked()
        status = parse_status(await steering.read("sched_status"))
        if len(self._costs) < 2:
            servers = (row.pid for row in status.rows if row.name == _SERVER)
            self._costs |= {pid: SteeringCost(pid) for pid in servers}
        return status

    async def read_tunables(self) -> tuple[TunableNow, ...]:
        return parse_tunables(await self._told().read("sched_tunables"))

    async def set_policy(self, policy: str) -> None:
        """The first time takes seconds, until the guest's kernel has gone through it."""
        await self._told().tell(f"write sched_status {policy}", f"policy {policy}")

    async def set_tunable(self, name: str, value: int) -> None:
        await self._told().tell(f"write sched_tunables {name}={value}", f"{name}={value}")

    async def set_attribute(self, pid: int, kind: AttributeKind, value: int) -> None:
        word = kind.name.lower()
        await self._told().tell(f"set {pid} {word} {value}", f"{word} {value} of process {pid}")

    async def start_workload(self, name: str) -> int:
        file = self._compiled.file(name).name
        pid = await self._told().tell(f"start play {WORKLOADS}/{file}", f"workload {name}")
        if pid is None:
            raise Refused(f"workload {name}: it has started, but its PID is not known")
        return pid

    async def kill(self, pid: int) -> None:
        if pid in self.own_pids:
            raise Refused(f"process {pid} is the guest's own: it may not do without")
        await self._told().tell(f"kill {pid}", f"kill {pid}")

    def _told(self) -> Steering:
        if self._steering and self._life in (Life.RUNNING, Life.PAUSED):
            return self._steering
        first = self._message.partition("\n")[0].rstrip(":;")
        raise Refused(first or "the guest is only starting")

    # --- time -------------------------------------------------------------------------------------

    async def pause(self) -> None:
        steering = self._told()
        if self._life is Life.RUNNING:
            await self._control.pause()
            self._stand(Life.RUNNING, Life.PAUSED)
            steering.stopwatch.pause()

    async def resume(self) -> None:
        steering = self._told()
        if self._life is Life.PAUSED:
            await self._control.resume()
            self._stand(Life.PAUSED, Life.RUNNING)
            steering.stopwatch.resume()

    def _stand(self, before: Life, after: Life) -> None:
        """It may have ended meanwhile."""
        if self._life is before:
            self._life = after


async def _hear_answers(reader: asyncio.StreamReader, steering: Steering) -> None:
    with suppress(OSError):
        while data := await reader.read(_READ_BYTES):
            steering.heard(data)


def _last_words(status: int, console: str) -> str:
    """Why a machine is gone that nobody has asked to end."""
    if "Kernel panic" in console:
        return "the guest's kernel panicked:\n" + indent(panic_lines(console))
    if status < 0:
        name = signal.Signals(-status).name
        return f"the guest's QEMU was ended by {name}" + tail_of(console)
    return "the guest has switched itself off" + tail_of(console)

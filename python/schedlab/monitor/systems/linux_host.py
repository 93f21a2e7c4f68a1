# SPDX-License-Identifier: MIT
"""The Linux kernel that this machine runs, as a system to be watched: it must have sched_ext.

    schedlab-linux serve ── trace file ──► Follower ──► take()
             ▲
             └── /run/schedlab ◄── commands

If somebody serves already and writes a trace, that one is watched, and goes on afterwards. Else root's
monitor begins to serve, and ends it when it ends itself, upon which the machine is in the fair class.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from schedlab.errors import MachineUnfit, SchedlabError
from schedlab.files.trusted_path import open_trusted
from schedlab.host.supervision import to_the_end
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.linux.parts import LINUX, build_linux
from schedlab.machines.outcome import tail_of
from schedlab.monitor.system import Ability, Life, Records, Refused, Setup, Status, TunableNow
from schedlab.monitor.systems.console import Console
from schedlab.monitor.systems.linux_kernel_log import KernelLog
from schedlab.monitor.systems.linux_palette import Compiled, compile_palette
from schedlab.monitor.systems.linux_server import (
    CONTROL,
    HERE,
    PROGRAM,
    ControlFiles,
    Places,
    Server,
    find_server,
    threads_of,
)
from schedlab.monitor.systems.machine_process import MachineProcess
from schedlab.monitor.systems.status_text import parse_status, parse_tunables
from schedlab.runs.parts import supply
from schedlab.trace.errors import TraceError
from schedlab.trace.follow import Follower
from schedlab.trace.format import RECORD, AttributeKind
from schedlab.trace.model import Header

START_PATIENCE_S = 150.0
"""Of ours: a policy may take the kernel's verifier up to two minutes before it is given up."""
_LOOK_S = 0.05
_OWN_PERIOD_S = 1.0
_PUNCH_BYTES = 16 << 20


class LinuxHostSystem:
    """See System. `folder` is empty and there; `places` are this machine's unless a test has others."""

    repeatable = False

    def __init__(
        self,
        setup: Setup,
        folder: Path,
        places: Places = HERE,
    ) -> None:
        self.setup = setup
        self.folder = folder.resolve()
        self.abilities = frozenset({Ability.POLICY, Ability.ATTRIBUTES, Ability.START})
        self._places = places
        self._life = Life.STARTING
        self._message = ""
        self._log = KernelLog(places.kernel_log)
        self._console = Console()
        self._process: MachineProcess | None = None
        """The server that we have started; None: it was there."""
        self._watching: asyncio.Task[None] | None = None
        self._ending = False
        self._server = Server(0, None, CONTROL)
        self._files = ControlFiles(CONTROL)
        self._follower: Follower | None = None
        self._all_taken = False
        self._taken_bytes = 0
        self._compiled = Compiled()
        self._started: dict[int, subprocess.Popen[bytes]] = {}
        """Workloads, by their PIDs, which are their sessions, too."""
        self._own: frozenset[int] = frozenset()
        self._own_s = 0.0
        """When `_own` was found out."""
        self._record_cost_ns = 0.0

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
            return self._follower.header if self._follower else None
        return None

    @property
    def own_pids(self) -> frozenset[int]:
        """The threads of the server and of the monitor."""
        if time.monotonic() - self._own_s > _OWN_PERIOD_S:
            self._own_s = time.monotonic()
            ours = (os.getpid(), self._server.pid)
            self._own = frozenset(tid for pid in ours for tid in threads_of(pid, self._places.proc))
        return self._own

    @property
    def record_cost_ns(self) -> float:
        return self._record_cost_ns

    # --- beginning and end ------------------------------------------------------------------------

    async def begin(self) -> None:
        try:
            await self._begin()
        except BaseException:
            await self.end()
            raise

    async def _begin(self) -> None:
        server = await asyncio.to_thread(find_server, self._places)
        if server is None:
            server = await self._serve()
        self._server = server
        self._files = ControlFiles(server.control)
        path = self._trace_of(server)
        # Ours is in a folder of ours; where another's is, others may be at home, too.
        self._follower = Follower(path, opener=os.open if self._process else open_trusted)
        await self._await_header()
        await to_the_end(asyncio.to_thread(self._prepare))
        self._life = Life.RUNNING
        for name in self.setup.workloads:
            await self.start_workload(name)

    def _trace_of(self, server: Server) -> Path:
        path = self.setup.source or server.trace
        if path is None:
            raise MachineUnfit(
                f"{PROGRAM} serves already (PID {server.pid}), but writes no trace, by which it"
                f" could be watched: end it by `{PROGRAM} stop`, and begin again with --trace FILE"
                " --trace-queues"
            )
        try:
            os.close(open_trusted(server.control / "sched_status", os.O_RDWR))
        except OSError:  # it is root's
            self.abilities -= {Ability.POLICY, Ability.ATTRIBUTES}
        return path

    def _prepare(self) -> None:
        """In a thread: what can be started, and what a record takes."""
        assert self.header
        self.setup = replace(self.setup, tick_ns=self.header.tick_ns, cpus=self.header.cpus)
        build_linux("linux-host", "linux-workloads")
        simulator = supply(["simulator"])["simulator"]
        place = self.folder / "workloads"
        self._compiled = compile_palette(self.setup, place, self.header.tick_ns, simulator)
        self._record_cost_ns = record_cost_ns()

    async def _serve(self) -> Server:
        """Begins to. MachineUnfit: the machine, or the user, is not fit for it."""
        if os.geteuid() != 0:
            raise MachineUnfit(
                "no server runs on this machine, and only root may start one: start the"
                " monitor with sudo; or, in another terminal, `sudo build/linux/schedlab-linux serve"
                " --trace FILE --trace-queues`, which it then watches"
            )
        await to_the_end(asyncio.to_thread(build_linux, "linux-host"))
        trace = self.folder / TRACE_FILE
        words = ["serve", "--policy", str(self.setup.policy), "--seed", str(self.setup.seed)]
        for name, value in self.setup.settings:
            words += ["--set", f"{name}={value}"]
        words += ["--trace", str(trace), "--trace-queues"]
        self._process = MachineProcess(self._hear)
        await self._process.start([str(self._places.program), *words], self.folder, ())
        self._watching = asyncio.create_task(self._watch(self._process))
        return Server(self._process.pid, trace, CONTROL)

    async def _await_header(self) -> None:
        """And until who was begun serves."""
        limit = time.monotonic() + START_PATIENCE_S
        status = self._server.control / "sched_status"
        while self.header is None or (self._process and not status.exists()):
            if self._message or time.monotonic() > limit:
                late = f"there is no trace at {self._follower.path if self._follower else '?'}"
                raise SchedlabError(self._message or late + tail_of(self._console.tail))
            await asyncio.sleep(_LOOK_S)

    async def _watch(self, process: MachineProcess) -> None:
        """Until our own server has ended, for whatever reason."""
        status = await process.wait()
        self._console.close()
        if self._ending:
            self._life, self._message = Life.ENDED, "it was ended"
            return
        told = f"{PROGRAM} has ended with status {status}"
        self._life, self._message = Life.FAILED, told + tail_of(self._console.tail)

    async def end(self) -> None:
        await to_the_end(self._end())

    async def _end(self) -> None:
        self._ending = True
        for pid, process in self._started.items():
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGTERM)
            await asyncio.to_thread(process.wait)
        self._started.clear()
        if self._process and self._watching:
            await self._process.end()
            await self._watching
        if self._life in (Life.STARTING, Life.RUNNING):
            self._life = Life.ENDED
        self._log.close()

    # --- what it says -----------------------------------------------------------------------------

    def take(self) -> Records:
        if self._all_taken or not self._follower:
            return np.empty(0, RECORD)
        try:
            return self._poll(self._follower)
        except (TraceError, OSError) as error:
            self._lose_trace(self._follower, f"its trace cannot be read: {error}")
            return np.empty(0, RECORD)

    def _poll(self, follower: Follower) -> Records:
        if self._life in (Life.ENDED, Life.FAILED):
            self._all_taken = True
            records = follower.finish()
            follower.close()
            return records
        records = follower.poll()
        self._taken_bytes += records.nbytes
        if self._process and self._taken_bytes > _PUNCH_BYTES:  # a trace of somebody else's stays
            follower.punch()
            self._taken_bytes = 0
        if follower.ended and not self._process:
            self._life = Life.ENDED
            self._message = f"{PROGRAM} has ended: the machine is in the kernel's own class"
        return records

    def _lose_trace(self, follower: Follower, why: str) -> None:
        self._all_taken = True
        follower.close()
        self._life, self._message = Life.FAILED, why

    def _hear(self, data: bytes) -> None:
        self._console.feed(data)

    def take_log(self) -> list[str]:
        return [*self._console.take_log(), *self._log.take()]

    # --- commands ---------------------------------------------------------------------------------

    async def read_status(self) -> Status:
        return parse_status(await asyncio.to_thread(self._control().read, "sched_status"))

    async def read_tunables(self) -> tuple[TunableNow, ...]:
        return parse_tunables(await asyncio.to_thread(self._control().read, "sched_tunables"))

    async def set_policy(self, policy: str) -> None:
        await self._write("sched_status", policy, f"policy {policy}")

    async def set_tunable(self, name: str, value: int) -> None:
        await self._write("sched_tunables", f"{name}={value}", f"{name}={value}")

    async def set_attribute(self, pid: int, kind: AttributeKind, value: int) -> None:
        word = kind.name.lower()
        what = f"{word} {value} of process {pid}"
        await self._write("sched_status", f"{pid} {word} {value}", what)

    async def _write(self, file: str, line: str, what: str) -> None:
        await asyncio.to_thread(self._control().write, file, line, what)

    def _control(self) -> ControlFiles:
        if self._life is Life.RUNNING:
            return self._files
        raise Refused(self._message.partition("\n")[0] or "it is only starting")

    async def start_workload(self, name: str) -> int:
        """As the user that the monitor runs as."""
        self._control()
        assert self.header
        environment = {
            **os.environ,
            "WORKLOAD_TICK_US": str(self.header.tick_ns // 1000),
            "WORKLOAD_SEED": str(self.setup.seed),
            "WORKLOAD_CONTROL": str(self._server.control),
        }
        process = subprocess.Popen(
            [LINUX / "play", self._compiled.file(name)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._forget_the_dead()
        self._started[process.pid] = process
        return process.pid

    def _forget_the_dead(self) -> None:
        for pid, process in list(self._started.items()):
            if process.poll() is not None:
                del self._started[pid]

    async def kill(self, pid: int) -> None:
        """Only what was started from here: this is a machine that others live on."""
        self._control()
        self._forget_the_dead()
        try:
            session = os.getsid(pid)
        except ProcessLookupError:
            raise Refused(f"kill {pid}: there is no process {pid} any more") from None
        if session not in self._started:
            raise Refused(
                f"kill {pid}: it was not started from the monitor, which ends nobody else's"
                " processes on this machine"
            )
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM if pid == session else signal.SIGKILL)

    async def pause(self) -> None:
        raise Refused("the machine that the monitor runs on cannot be paused")

    async def resume(self) -> None:
        """It is never paused."""


def record_cost_ns() -> float:
    """What a record takes, while a trace is written; 0: nobody knows."""
    done = subprocess.run([LINUX / "steer", "--cost"], capture_output=True, text=True, check=False)
    return int(done.stdout) / 1000 if done.returncode == 0 else 0.0

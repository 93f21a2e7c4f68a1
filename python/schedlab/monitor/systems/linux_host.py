# SPDX-License-Identifier: MIT
"""Adapter of the Linux kernel of this machine, which must have sched_ext.

    schedlab-linux serve ── trace file ──► Follower ──► take()
             ▲
             └── /run/schedlab ◄── commands

If a policy server is already running and writes a trace, the monitor reads this trace, and leaves
the server running on exit. Otherwise a monitor run by root starts a server and ends it on exit;
afterwards the machine uses the fair class.
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

from schedlab.base.files.trusted_path import open_trusted
from schedlab.base.host.supervision import to_the_end
from schedlab.errors import MachineUnfit, SchedlabError, WrongUsage
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.linux.host_fitness import need_fit_host
from schedlab.machines.linux.parts import LINUX, build_linux
from schedlab.machines.outcome import tail_of
from schedlab.monitor.system import Ability, Life, Records, Refused, Setup, Status, TunableNow
from schedlab.monitor.systems.linux_kernel_log import KernelLog
from schedlab.monitor.systems.linux_palette import Compiled, compile_palette
from schedlab.monitor.systems.linux_server import (
    CONTROL,
    PROGRAM,
    THIS_HOST,
    ControlFiles,
    Places,
    Server,
    find_server,
    threads_of,
)
from schedlab.monitor.systems.machine_process import MachineProcess
from schedlab.monitor.systems.real_system import OVER, RealSystem
from schedlab.monitor.systems.status_text import parse_status, parse_tunables
from schedlab.trace.follow import Follower
from schedlab.trace.format import AttributeKind

START_PATIENCE_S = 150.0
"""Seconds for a start: the kernel's verifier may take two minutes for a policy."""
_REFUSED = 2
"""The server's exit status if the machine or the request is unfit."""
_MONITOR_THREADS_PERIOD_S = 1.0


class LinuxHostSystem(RealSystem):
    """See System. `folder` must exist and be empty; tests pass other `places`."""

    def __init__(self, setup: Setup, folder: Path, places: Places = THIS_HOST) -> None:
        super().__init__(setup, folder)
        self.abilities = frozenset({Ability.POLICY, Ability.ATTRIBUTES, Ability.START})
        self._places = places
        self._log = KernelLog(places.kernel_log)
        self._process: MachineProcess | None = None
        """The server that this monitor started; None if another one was running."""
        self._refused = False
        """True if the server rejected the machine or the request."""
        self._server = Server(0, None, CONTROL)
        self._files = ControlFiles(CONTROL)
        self._compiled = Compiled()
        self._started: dict[int, subprocess.Popen[bytes]] = {}
        """Started workloads by PID, which is also their session ID."""
        self._monitor_threads: frozenset[int] = frozenset()
        self._monitor_threads_read_s = 0.0
        """Time when `_monitor_threads` was computed."""

    @property
    def monitor_pids(self) -> frozenset[int]:
        """The threads of the server and of the monitor."""
        if time.monotonic() - self._monitor_threads_read_s > _MONITOR_THREADS_PERIOD_S:
            self._monitor_threads_read_s = time.monotonic()
            ours = (os.getpid(), self._server.pid)
            self._monitor_threads = frozenset(
                tid for pid in ours for tid in threads_of(pid, self._places.proc)
            )
        return self._monitor_threads

    # --- beginning and end

    async def _begin(self) -> None:
        server = await asyncio.to_thread(find_server, self._places)
        if server is None:
            server = await self._serve()
        elif self.setup.ignore_limits:
            raise WrongUsage(
                f"{PROGRAM} already serves (PID {server.pid}) with its own setting",
                what="`ignore_limits=`",
                fix=f"leave it out, or end that server with `{PROGRAM} stop` first",
            )
        self._server = server
        self._files = ControlFiles(server.control)
        path = self._trace_of(server)
        # The monitor's own folder is private; other users may write to another server's folder, so
        # the path must be trusted.
        self._follower = Follower(path, opener=os.open if self._process else open_trusted)
        try:
            await self._await_trace(START_PATIENCE_S, f"there is no trace at {path}")
        except SchedlabError:
            if self._refused:
                raise WrongUsage(self._message) from None
            raise
        await to_the_end(asyncio.to_thread(self._prepare))

    def _trace_of(self, server: Server) -> Path:
        path = self.setup.source or server.trace
        if path is None:
            raise MachineUnfit(
                f"{PROGRAM} already serves (PID {server.pid}), but writes no trace; end it"
                f" with `{PROGRAM} stop`, and start it with --trace FILE --trace-queues"
            )
        try:
            os.close(open_trusted(server.control / "sched_status", os.O_RDWR))
        except OSError:  # only root may open it
            self.abilities -= {Ability.POLICY, Ability.ATTRIBUTES}
        return path

    def _prepare(self) -> None:
        """Compiles the palette and measures the cost of a record; runs in a thread."""
        assert self.header
        self.setup = replace(self.setup, tick_ns=self.header.tick_ns, cpus=self.header.cpus)
        build_linux("linux-host", "linux-workloads")
        place = self.folder / "workloads"
        self._compiled = compile_palette(self.setup, place, self.header.tick_ns)
        self._record_cost_ns = record_cost_ns()

    async def _serve(self) -> Server:
        """Starts a server. Raises MachineUnfit if the machine or the user does not allow it."""
        if os.geteuid() != 0:
            raise MachineUnfit(
                "no server runs on this machine, and only root may start one; start the "
                "monitor with sudo, or run `sudo build/linux/schedlab-linux serve --trace"
                " FILE --trace-queues` in another terminal"
            )
        need_fit_host(self._places.root)
        await to_the_end(asyncio.to_thread(build_linux, "linux-host"))
        trace = self.folder / TRACE_FILE
        words = ["serve", "--policy", str(self.setup.policy), "--seed", str(self.setup.seed)]
        for name, value in self.setup.settings:
            words += ["--set", f"{name}={value}"]
        words += ["--trace", str(trace), "--trace-queues"]
        words += ["--ignore-limits"] if self.setup.ignore_limits else []
        self._process = MachineProcess(self._hear)
        await self._process.start([str(self._places.program), *words], self.folder, ())
        self._watching = asyncio.create_task(self._watch(self._process))
        return Server(self._process.pid, trace, CONTROL)

    def _flows(self) -> bool:
        """True if the trace has begun and the server accepts commands."""
        serves = not self._process or (self._server.control / "sched_status").exists()
        return self.header is not None and serves

    async def _watch(self, process: MachineProcess) -> None:
        """Waits until the server that this monitor started has ended."""
        status = await process.wait()
        self._console.close()
        if self._ending:
            self._life, self._message = Life.ENDED, "it was ended"
            return
        self._refused = status == _REFUSED
        message = f"{PROGRAM} has ended with status {status}"
        self._life, self._message = Life.FAILED, message + tail_of(self._console.tail)

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

    # --- output

    def _gives_back(self) -> bool:
        """Returns whether the trace's disk space may be freed; another server's trace is kept."""
        return super()._gives_back() and self._process is not None

    def _look_at(self, records: Records) -> None:
        assert self._follower
        if self._follower.ended and not self._process and self._life not in OVER:
            self._life = Life.ENDED
            self._message = f"{PROGRAM} has ended: the machine is in the kernel's own class"

    def _kill(self) -> None:
        """Does nothing: the server ends with the monitor and returns the machine to the fair class."""

    def _hear(self, data: bytes) -> None:
        self._console.feed(data)

    def take_log(self) -> list[str]:
        return [*super().take_log(), *self._log.take()]

    # --- commands

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
        self._check_alive()
        return self._files

    async def start_workload(self, name: str) -> int:
        """Starts a workload with the monitor's user ID."""
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
        """Kills only processes started from the monitor, because others use this machine, too."""
        self._control()
        self._forget_the_dead()
        try:
            session = os.getsid(pid)
        except ProcessLookupError:
            raise Refused(f"kill {pid}: the process has ended") from None
        if session not in self._started:
            raise Refused(f"kill {pid}: the monitor ends only processes that it started")
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM if pid == session else signal.SIGKILL)

    async def pause(self) -> None:
        raise Refused(
            "pause: this machine runs the monitor and cannot be paused; stop its workloads instead"
        )

    async def resume(self) -> None:
        """Does nothing: a host is never paused."""


def record_cost_ns() -> float:
    """Returns the CPU time (ns) of writing one trace record, or 0 if unknown."""
    done = subprocess.run([LINUX / "steer", "--cost"], capture_output=True, text=True, check=False)
    return int(done.stdout) / 1000 if done.returncode == 0 else 0.0

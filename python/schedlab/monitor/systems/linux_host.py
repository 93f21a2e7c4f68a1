# SPDX-License-Identifier: MIT
"""Adapter of the Linux kernel of this machine, which must have sched_ext.

    schedlab-linux serve ── trace file ──► Follower ──► take()
             ▲
             └── /run/schedlab ◄── commands

If a policy server is already running and writes a trace, the monitor reads this trace, and leaves
the server running on exit. Otherwise a monitor run by root starts a server and ends it on exit;
afterwards the machine uses the fair class.
"""

import asyncio
import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from schedlab.base.files.trusted_path import open_trusted
from schedlab.base.host.supervision import await_completely
from schedlab.errors import MachineUnfit, SchedlabError, WrongUsage
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.linux.host import require_fit_host
from schedlab.machines.linux.parts import LINUX_BUILD, build_linux
from schedlab.machines.outcome import describe_tail
from schedlab.monitor.system import Ability, Life, Records, Refused, Setup, Status, TunableState
from schedlab.monitor.systems.compiled_palette import CompiledPalette, compile_palette
from schedlab.monitor.systems.linux_server import (
    CONTROL_FOLDER,
    PROGRAM,
    THIS_HOST,
    ControlFiles,
    HostPaths,
    PolicyServer,
    find_server,
    thread_ids,
)
from schedlab.monitor.systems.machine_process import MachineProcess
from schedlab.monitor.systems.real_system import ENDED_LIVES, RealSystem
from schedlab.monitor.systems.status_text import parse_status, parse_tunables
from schedlab.trace.follow import Follower
from schedlab.trace.format import AttributeKind
from schedlab.workload.loading import check_channels

START_PATIENCE_S = 150.0
"""Seconds for a start: the kernel's verifier may take two minutes for a policy."""
_UNFIT_STATUS = 2
"""Exit status of `schedlab-linux serve` if the machine or the user cannot run policies."""
_MONITOR_THREADS_PERIOD_S = 1.0


class LinuxHostSystem(RealSystem):
    """See System. `folder` must exist and be empty. `places`: paths of the host; tests pass others."""

    def __init__(self, setup: Setup, folder: Path, places: HostPaths = THIS_HOST) -> None:
        super().__init__(setup, folder)
        self.abilities = frozenset({Ability.POLICY, Ability.ATTRIBUTES, Ability.START})
        self._host_paths = places
        self._log = KernelLog(places.kernel_log)
        self._process: MachineProcess | None = None
        """The server that this monitor started; None if another one was running."""
        self._refused = False
        """True if the server rejected the machine or the request."""
        self._server = PolicyServer(0, None, CONTROL_FOLDER)
        self._files = ControlFiles(CONTROL_FOLDER)
        self._compiled = CompiledPalette()
        self._workload_processes: dict[int, subprocess.Popen[bytes]] = {}
        """Started workloads by PID, which is also their session ID."""
        self._monitor_threads: frozenset[int] = frozenset()
        self._monitor_threads_read_s = 0.0
        """Time when `_monitor_threads` was computed."""

    @property
    def monitor_pids(self) -> frozenset[int]:
        """Thread IDs of the policy server and of the monitor."""
        if time.monotonic() - self._monitor_threads_read_s > _MONITOR_THREADS_PERIOD_S:
            self._monitor_threads_read_s = time.monotonic()
            process_ids = (os.getpid(), self._server.pid)
            self._monitor_threads = frozenset(
                tid for pid in process_ids for tid in thread_ids(pid, self._host_paths.proc)
            )
        return self._monitor_threads

    # --- beginning and end

    async def _begin(self) -> None:
        server = await asyncio.to_thread(find_server, self._host_paths)
        if server is None:
            server = await self._start_server()
        elif self.setup.ignore_limits:
            raise WrongUsage(
                f"{PROGRAM} already serves (PID {server.pid}) with its own setting",
                what="`ignore_limits=`",
                fix=f"leave it out, or end that server with `{PROGRAM} stop` first",
            )
        self._server = server
        self._files = ControlFiles(server.control_folder)
        path = self._trace_path(server)
        # The monitor's own folder is private. Another server's folder may be writable by others, so
        # its path must be checked.
        self._follower = Follower(path, opener=os.open if self._process else open_trusted)
        try:
            await self._await_trace(
                START_PATIENCE_S,
                f"there is no trace at {path}; end the server with `{PROGRAM} stop`, and try again",
            )
        except SchedlabError:
            if self._refused:
                raise WrongUsage(self.message) from None
            raise
        await await_completely(asyncio.to_thread(self._prepare))

    def _trace_path(self, server: PolicyServer) -> Path:
        """Returns the trace to follow. Raises MachineUnfit if the server writes none."""
        path = self.setup.source or server.trace
        if path is None:
            raise MachineUnfit(
                f"{PROGRAM} already serves (PID {server.pid}), but writes no trace; end it"
                f" with `{PROGRAM} stop`, and start it with --trace FILE --trace-queues"
            )
        try:
            os.close(open_trusted(server.control_folder / "sched_status", os.O_RDWR))
        except OSError:  # only root may open it
            self.abilities -= {Ability.POLICY, Ability.ATTRIBUTES}
        return path

    def _prepare(self) -> None:
        """Compiles the palette and measures the cost of a record; runs in a thread."""
        assert self.header
        self.setup = replace(self.setup, tick_ns=self.header.tick_ns, cpus=self.header.cpus)
        build_linux("linux-host", "linux-workloads")
        path = self.folder / "workloads"
        self._compiled = compile_palette(self.setup, path, self.header.tick_ns, check_channels)
        self.record_cost_ns = record_cost_ns()

    async def _start_server(self) -> PolicyServer:
        """Starts a server. Raises MachineUnfit if the machine or the user does not allow it."""
        if os.geteuid() != 0:
            raise MachineUnfit(
                "no server runs on this machine, and only root may start one; start the "
                "monitor with sudo, or run `sudo build/linux/schedlab-linux serve --trace"
                " FILE --trace-queues` in another terminal"
            )
        require_fit_host(self._host_paths.root)
        await await_completely(asyncio.to_thread(build_linux, "linux-host"))
        trace = self.folder / TRACE_FILE
        words = ["serve", "--policy", str(self.setup.policy), "--seed", str(self.setup.seed)]
        for name, value in self.setup.settings:
            words += ["--set", f"{name}={value}"]
        words += ["--trace", str(trace), "--trace-queues"]
        words += ["--ignore-limits"] if self.setup.ignore_limits else []
        self._process = MachineProcess(self._receive_output)
        await self._process.start([str(self._host_paths.program), *words], self.folder, ())
        self._watching = asyncio.create_task(self._watch(self._process))
        return PolicyServer(self._process.pid, trace, CONTROL_FOLDER)

    def _trace_has_started(self) -> bool:
        """True if the trace has begun and the server accepts commands."""
        is_serving = not self._process or (self._server.control_folder / "sched_status").exists()
        return self.header is not None and is_serving

    async def _watch(self, process: MachineProcess) -> None:
        """Waits until the server that this monitor started has ended."""
        status = await process.wait()
        self._console.close()
        if self._end_requested:
            self.life, self.message = Life.ENDED, "it was ended"
            return
        self._refused = status == _UNFIT_STATUS
        message = f"{PROGRAM} has ended with status {status}"
        self.life, self.message = Life.FAILED, message + describe_tail(self._console.tail)

    async def _end(self) -> None:
        self._end_requested = True
        for pid, process in self._workload_processes.items():
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGTERM)
            await asyncio.to_thread(process.wait)
        self._workload_processes.clear()
        if self._process and self._watching:
            await self._process.end()
            await self._watching
        if self.life in (Life.STARTING, Life.RUNNING):
            self.life = Life.ENDED
        self._log.close()

    # --- output

    def _frees_trace(self) -> bool:
        """Returns whether disk blocks of the trace may be freed after reading; not if another
        server owns it.
        """
        return super()._frees_trace() and self._process is not None

    def _inspect_records(self, records: Records) -> None:
        assert self._follower
        if self._follower.ended and not self._process and self.life not in ENDED_LIVES:
            self.life = Life.ENDED
            self.message = f"{PROGRAM} has ended: the machine is in the kernel's own class"

    def _kill(self) -> None:
        """Does nothing: the server ends together with the monitor, and the fair class takes over."""

    def _receive_output(self, data: bytes) -> None:
        self._console.feed(data)

    def take_log(self) -> list[str]:
        return [*super().take_log(), *self._log.take_lines()]

    # --- commands

    async def read_status(self) -> Status:
        return parse_status(
            await asyncio.to_thread(self._live_control_files().read, "sched_status")
        )

    async def read_tunables(self) -> tuple[TunableState, ...]:
        return parse_tunables(
            await asyncio.to_thread(self._live_control_files().read, "sched_tunables")
        )

    async def set_policy(self, policy: str) -> None:
        await self._write_command("sched_status", policy, f"policy {policy}")

    async def set_tunable(self, name: str, value: int) -> None:
        await self._write_command("sched_tunables", f"{name}={value}", f"{name}={value}")

    async def set_attribute(self, pid: int, kind: AttributeKind, value: int) -> None:
        word = kind.name.lower()
        action = f"{word} {value} of process {pid}"
        await self._write_command("sched_status", f"{pid} {word} {value}", action)

    async def _write_command(self, file: str, line: str, action: str) -> None:
        await asyncio.to_thread(self._live_control_files().write, file, line, action)

    def _live_control_files(self) -> ControlFiles:
        self._check_alive()
        return self._files

    async def start_workload(self, name: str) -> int:
        """Starts a workload with the monitor's user ID."""
        self._live_control_files()
        assert self.header
        environment = {
            **os.environ,
            "WORKLOAD_TICK_US": str(self.header.tick_ns // 1000),
            "WORKLOAD_SEED": str(self.setup.seed),
            "WORKLOAD_CONTROL": str(self._server.control_folder),
        }
        process = subprocess.Popen(
            [LINUX_BUILD / "play", self._compiled.file(name)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._forget_ended_workloads()
        self._workload_processes[process.pid] = process
        return process.pid

    def _forget_ended_workloads(self) -> None:
        for pid, process in list(self._workload_processes.items()):
            if process.poll() is not None:
                del self._workload_processes[pid]

    async def kill(self, pid: int) -> None:
        """Kills only processes that the monitor started, because others use this machine, too."""
        self._live_control_files()
        self._forget_ended_workloads()
        try:
            session = os.getsid(pid)
        except ProcessLookupError:
            raise Refused(f"kill {pid}: the process has ended; choose another") from None
        if session not in self._workload_processes:
            raise Refused(
                f"kill {pid}: the monitor ends only processes that it started; end it in a terminal"
            )
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM if pid == session else signal.SIGKILL)

    async def pause(self) -> None:
        raise Refused(
            "pause: this machine runs the monitor and cannot be paused; stop its workloads instead"
        )

    async def resume(self) -> None:
        """Does nothing: a host is never paused."""


def record_cost_ns() -> float:
    """Returns the CPU time (ns) that this host needs to write one trace record; 0 if unknown."""
    result = subprocess.run(
        [LINUX_BUILD / "steer", "--cost"], capture_output=True, text=True, check=False
    )
    return int(result.stdout) / 1000 if result.returncode == 0 else 0.0


_RECORD_BYTES = 8192
_LINES_MAX = 1000
"""Lines read per call, so that a verbose kernel does not delay other tasks."""


class KernelLog:
    """Reads /dev/kmsg; empty for users without permission."""

    def __init__(self, path: Path) -> None:
        self._descriptor = -1
        with suppress(OSError):
            self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self._descriptor, 0, os.SEEK_END)

    def take_lines(self) -> list[str]:
        lines: list[str] = []
        for _ in range(_LINES_MAX if self._descriptor >= 0 else 0):
            try:
                record = os.read(self._descriptor, _RECORD_BYTES)
            except BlockingIOError:
                break
            except OSError:  # the next message was overwritten; the one after it can be read
                continue
            if not record:
                break
            lines += (
                _readable_message(line) for line in record.decode(errors="replace").splitlines()
            )
        return [line for line in lines if line]

    def close(self) -> None:
        """Closes the file; may be called again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _readable_message(record: str) -> str:
    """Converts "6,339,5140900,-;words" to the time in seconds and the words.

    Returns "" for lines that begin with a blank, which hold details for programs.
    """
    head, semicolon, words = record.partition(";")
    fields = head.split(",")
    if not semicolon or record.startswith(" ") or len(fields) < 3 or not fields[2].isdecimal():
        return ""
    return f"[{int(fields[2]) / 1e6:12.6f}] {words}"

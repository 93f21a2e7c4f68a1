# SPDX-License-Identifier: MIT
"""The simulator as a system of the monitor.

It runs in a thread of its own, and never for longer than it was asked to; what it says comes
through its trace's file, as with every system.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TypeVar

import numpy as np

from schedlab.base.display.numbers import moment
from schedlab.base.toolchain.build import SIMULATOR_LIBRARY, build
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.monitor.system import (
    Ability,
    Life,
    Records,
    Refused,
    Setup,
    Status,
    StepKind,
    TunableNow,
)
from schedlab.monitor.systems.paced import PacedSystem
from schedlab.monitor.systems.simulated import OWN_PIDS, Act, SimulatedMachine
from schedlab.monitor.systems.status_text import parse_status, parse_tunables
from schedlab.trace.follow import Follower
from schedlab.trace.format import RECORD, AttributeKind
from schedlab.trace.model import Header
from schedlab.workload import workload_files
from schedlab.workload.palette import palette
from schedlab.workload.text import bytes_of
from schedlab_simulator import (
    Attribute,
    RunFailed,
    Simulator,
    SimulatorError,
    Workload,
    WorkloadRefused,
)

UNREAD_BYTES_MAX = 64 << 20
"""Bytes of its trace that are not read: beyond that, the machine waits for its reader."""
PUNCH_BYTES = 64 << 20
"""What was read of the trace leaves the disk in pieces of this size."""
SEEK_RECORDS_MAX = 10_000_000
"""Records of a trace that is made, and read, once more."""
SEEK_SECONDS_MAX = 20.0
"""Seconds of our time: centuries in which nothing happens have no records."""
_PATIENCE_S = 0.02
"""The time between two looks at whether a seek has become too long."""

Result = TypeVar("Result")


class SimulatorSystem(PacedSystem):
    """One simulated machine (Paced, in system.py), which begins with nothing to do.

    `keep_trace`: its whole trace stays in the folder; else what was read leaves the disk.
    """

    abilities = frozenset(Ability)
    own_pids = OWN_PIDS

    def __init__(self, setup: Setup, folder: Path, keep_trace: bool = False) -> None:
        super().__init__(setup, folder)
        self.keep_trace = keep_trace
        self._log: list[str] = []
        self._palette = palette(setup.files)
        self._thread = ThreadPoolExecutor(1, "simulator")
        """The only thread that touches `_machine`."""
        self._machine: SimulatedMachine | None = None
        self._follower: Follower | None = None
        self._traces = 0
        self._read_bytes = 0

    @property
    def header(self) -> Header | None:
        """Returns the header of its trace, or None if it has not begun."""
        return self._follower.header if self._follower else None

    # ---- begin and end

    async def begin(self) -> None:
        """Makes the machine, and starts the workloads of its setup."""
        try:
            await asyncio.to_thread(build, SIMULATOR_LIBRARY)
            path = self._new_trace()
            self._machine = await self._in_thread(partial(SimulatedMachine, self.setup, path))
            self._follow(path)
            self.life = Life.RUNNING
            self._stands_ns = self._machine.now_ns
            for name in self.setup.workloads:
                await self.start_workload(name)
        except SimulatorError as error:
            await self.end()
            raise SchedlabError(f"the simulator: {error}") from None
        except BaseException:
            await self.end()
            raise

    async def end(self) -> None:
        """Ends it. The trace is whole then, and can still be taken."""
        if self.life in (Life.STARTING, Life.RUNNING):
            self.life = Life.ENDED
        machine, self._machine = self._machine, None
        if machine:
            await self._in_thread(partial(_close, machine))
        self._thread.shutdown(wait=False)

    def _fail(self, machine: SimulatedMachine, error: RunFailed) -> None:
        """The machine stands, and its trace ends here. Runs in the machine's thread."""
        self._stands_ns = machine.now_ns
        self.life = Life.FAILED
        self.message = str(error)
        self._log.append(f"simulator: {error}")
        _close(machine)

    # ---- what it says

    def take(self) -> Records:
        """Returns a piece, at most as large as Follower.poll() gives; `now_ns` says how far it goes."""
        if not self._follower:
            return _NO_RECORDS
        records = self._follower.poll()
        whole = self._follower.unread_bytes < RECORD.itemsize or not len(records)
        self._taken_ns = None if whole else min(int(records["time"].max()), self._stands_ns)
        self._read_bytes += records.nbytes
        if self._read_bytes >= PUNCH_BYTES and not self.keep_trace:
            self._follower.punch()
            self._read_bytes = 0
        return records

    def take_log(self) -> list[str]:
        """It has no console: why it failed, if it did."""
        log, self._log = self._log, []
        return log

    async def read_status(self) -> Status:
        return parse_status(await self._with_machine(SimulatedMachine.status))

    async def read_tunables(self) -> tuple[TunableNow, ...]:
        return parse_tunables(await self._with_machine(SimulatedMachine.tunables))

    # ---- steering

    async def set_policy(self, policy: str) -> None:
        await self._act(partial(_command, "sched_status", policy))

    async def set_tunable(self, name: str, value: int) -> None:
        await self._act(partial(_command, "sched_tunables", f"{name} {value}"))

    async def set_attribute(self, pid: int, kind: AttributeKind, value: int) -> None:
        await self._act(partial(_set_attribute, pid, Attribute(int(kind)), value))

    async def start_workload(self, name: str) -> int:
        """Random values are drawn from the machine's seed, other ones each time."""
        entry = self._palette.get(name)
        if not entry:
            raise Refused(f"no workload is called {name}; there are {', '.join(self._palette)}")
        file, setup = entry.file, self.setup

        def start(machine: SimulatedMachine) -> int:
            workload = _read(file, setup.seed + machine.acts, setup.tick_ns)
            return machine.act(partial(_start, workload))

        return await self._do(start)

    async def kill(self, pid: int) -> None:
        if pid in self.own_pids:
            raise Refused(f"pid {pid} is there for the monitor's sake, and stays")
        await self._act(partial(_kill, pid))

    # ---- time

    async def advance(self, until_ns: int, patience_s: float) -> int:
        """Stays where it is as long as too much of its trace is unread, and when it has failed."""
        unread = self._follower.unread_bytes if self._follower else 0
        if self.life is Life.RUNNING and unread < UNREAD_BYTES_MAX:
            with suppress(Refused):  # `life` says so
                await self._do(lambda machine: machine.advance(until_ns, patience_s))
        return self.now_ns

    async def step(self, kind: StepKind) -> int:
        await self._do(lambda machine: machine.step(kind, self.setup.tick_ns))
        return self.now_ns

    async def seek(self, time_ns: int) -> None:
        """From the beginning once more, with all that was done until then. What was done after it
        comes again when its time comes, unless something else is done before."""
        machine = self._living()
        path = self._new_trace()
        again = await self._in_thread(partial(machine.again, self.setup, path))
        try:
            await self._reach(again, time_ns)
        except BaseException:
            await self._in_thread(partial(_close, again))
            path.unlink(missing_ok=True)
            raise
        await self._in_thread(partial(_close, machine))
        self._machine = again
        self._stands_ns = again.now_ns
        self._follow(path)

    async def _reach(self, machine: SimulatedMachine, time_ns: int) -> None:
        """Refused: it takes too long."""
        end = monotonic() + SEEK_SECONDS_MAX
        while machine.now_ns < time_ns:
            try:
                await self._in_thread(lambda: machine.advance(time_ns, _PATIENCE_S))
            except RunFailed as error:
                raise Refused(f"the machine fails before that time: {error}") from None
            if machine.records > SEEK_RECORDS_MAX or monotonic() > end:
                raise Refused(
                    f"too far from the machine's beginning, from where it has to go there: it has"
                    f" come to {moment(machine.now_ns)}, with {machine.records} records"
                )

    # ---- help

    def _living(self) -> SimulatedMachine:
        if not self._machine or self.life is not Life.RUNNING:
            raise Refused(f"the simulator has ended{': ' if self.message else ''}{self.message}")
        return self._machine

    async def _in_thread(self, what: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, what)

    async def _with_machine(self, what: Callable[[SimulatedMachine], Result]) -> Result:
        machine = self._living()
        return await self._in_thread(partial(what, machine))

    async def _act(self, act: Act) -> int:
        return await self._do(lambda machine: machine.act(act))

    async def _do(self, what: Callable[[SimulatedMachine], Result]) -> Result:
        """Something that goes on with the machine. Refused: it has failed by it, too."""
        machine = self._living()

        def do() -> Result:
            try:
                return what(machine)
            except RunFailed as error:
                self._fail(machine, error)
                raise Refused(f"the simulator has failed: {error}") from None
            finally:
                if self.life is Life.RUNNING:
                    self._stands_ns = machine.now_ns

        return await self._in_thread(do)

    def _new_trace(self) -> Path:
        self._traces += 1
        return self.folder / f"simulator-{self._traces}.bin"

    def _follow(self, path: Path) -> None:
        old, self._follower = self._follower, Follower(path)
        self._read_bytes = 0
        self._taken_ns = None
        if old:
            old.close()
            old.path.unlink(missing_ok=True)


_NO_RECORDS = np.empty(0, RECORD)


def _read(file: Path, seed: int, tick_ns: int) -> Workload:
    """Refused: the file is wrong."""
    try:
        played = bytes_of(workload_files.read(file), seed, tick_ns)
        return Workload.of_file(played, tick_ns, file.name)
    except (WrongUsage, WorkloadRefused) as error:
        raise Refused(str(error)) from None


def _close(machine: SimulatedMachine) -> None:
    """Closes it, whatever its trace's disk says."""
    with suppress(SimulatorError):
        machine.close()


# ---- acts


def _start(workload: Workload, machine: Simulator) -> int:
    return machine.fork(machine.add_workload(workload))


def _kill(pid: int, machine: Simulator) -> int:
    machine.kill(pid)
    return 0


def _command(file: str, line: str, machine: Simulator) -> int:
    machine.command(file, line)
    return 0


def _set_attribute(pid: int, kind: Attribute, value: int, machine: Simulator) -> int:
    machine.set_attribute(pid, kind, value)
    return 0

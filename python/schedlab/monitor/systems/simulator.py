# SPDX-License-Identifier: MIT
"""The simulator as a system of the monitor.

It runs in a thread of its own, and never for longer than it was asked to; what it says comes
through its trace's file, as with every system. The same acts at the same times give the same machine
and the same trace, byte for byte, here as on a page (page/session/machine.js): an act is a line such as
`120000000 tickets 5 77` or `480000000 start 3 two-hogs`: the time at which it is done, and what; a
start has the number by which random values are drawn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TypeVar

import numpy as np

from schedlab.base.toolchain.build import SIMULATOR_LIBRARY, build
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.monitor.system import Ability, Life, Records, Refused, Setup, Status, TunableNow
from schedlab.monitor.systems.played import PlayedSystem
from schedlab.monitor.systems.status_text import parse_status, parse_tunables
from schedlab.trace.follow import Follower
from schedlab.trace.format import RECORD, AttributeKind
from schedlab.trace.model import Header
from schedlab.workload import workload_files
from schedlab.workload.palette import Entry, palette
from schedlab.workload.text import bytes_of, text_of
from schedlab_simulator import (
    ActRefused,
    Attribute,
    RunFailed,
    Simulator,
    SimulatorError,
    Workload,
    WorkloadRefused,
)
from schedlab_simulator import Status as Ran

UNREAD_BYTES_MAX = 64 << 20
"""Bytes of its trace that are not read: beyond that, the machine waits for its reader."""
PUNCH_BYTES = 64 << 20
"""What was read of the trace leaves the disk in pieces of this size."""
OWN_PROGRAM = """
program monitor
  loop
    sleep 1000000000s
  end
"""
"""The first process's program. It does nothing for 31 years: the machine would end with it."""
PROCESSES = 65_536
ADDED_STEPS = 1 << 18
"""Room for the steps of workloads that are added: the longest of ours has some hundreds."""
_NEVER_NS = 900_000_000 * 1_000_000_000

Result = TypeVar("Result")


class SimulatorSystem(PlayedSystem):
    """One simulated machine (Played, in system.py), which begins with nothing to do.

    `keep_trace`: its whole trace stays in the folder; else what was read leaves the disk.
    """

    abilities = frozenset(Ability)
    own_pids = frozenset({1, 2})
    """The PIDs of init, and of the process that sleeps."""

    def __init__(self, setup: Setup, folder: Path, keep_trace: bool = False) -> None:
        super().__init__(setup, folder)
        self.keep_trace = keep_trace
        self._log: list[str] = []
        self._palette = palette(setup.files)
        self._thread = ThreadPoolExecutor(1, "simulator")
        """The only thread that touches `_machine`."""
        self._machine: Simulator | None = None
        self._acts: list[str] = []
        """The first `_done` of them were done to the machine; others shall be when their times come."""
        self._done = 0
        self._follower: Follower | None = None
        self._read_bytes = 0

    @property
    def header(self) -> Header | None:
        """Returns the header of its trace, or None if it has not begun."""
        return self._follower.header if self._follower else None

    # ---- begin and end

    async def begin(self) -> None:
        """Makes the machine. It stands after its first tick: then init has forked the process that
        sleeps, under every policy."""
        path = self.folder / "simulator.bin"
        try:
            await asyncio.to_thread(build, SIMULATOR_LIBRARY)
            await self._in_thread(partial(self._make, path))
        except SimulatorError as error:
            await self.end()
            raise SchedlabError(f"the simulator: {error}") from None
        except BaseException:
            await self.end()
            raise
        self._follower = Follower(path)
        self.life = Life.RUNNING

    def _make(self, path: Path) -> None:
        setup = self.setup
        machine = self._machine = Simulator(
            OWN_PROGRAM,
            policy=str(setup.policy),
            tunables=dict(setup.settings),
            cpus=setup.cpus,
            tick_ns=setup.tick_ns,
            seed=setup.seed,
            costs=setup.costs,
            processes=PROCESSES,
            trace=path,
            trace_queues=True,
            added_steps=ADDED_STEPS,
        )
        while machine.counts().processes < len(self.own_pids):
            machine.run((machine.now // setup.tick_ns + 1) * setup.tick_ns)
        machine.flush()
        self._stands_ns = machine.now

    async def play_by_itself(self) -> None:
        for name in self.setup.workloads:
            await self.start_workload(name)
        await self.resume()

    async def end(self) -> None:
        """Ends it. The trace is whole then, and can still be taken."""
        if self.life in (Life.STARTING, Life.RUNNING):
            self.life = Life.ENDED
        await self.pause()
        machine, self._machine = self._machine, None
        if machine:
            await self._in_thread(partial(_close, machine))
        self._thread.shutdown(wait=False)

    # ---- what it says

    def take(self) -> Records:
        """Returns a piece, at most as large as Follower.poll() gives; `now_ns` says how far it goes."""
        if not self._follower:
            return _NO_RECORDS
        records = self._follower.poll()
        is_complete = self._follower.unread_bytes < RECORD.itemsize or not len(records)
        self._taken_ns = None if is_complete else min(int(records["time"].max()), self._stands_ns)
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
        return parse_status(await self._do(Simulator.status))

    async def read_tunables(self) -> tuple[TunableNow, ...]:
        return parse_tunables(await self._do(Simulator.tunables))

    # ---- acts

    async def set_policy(self, policy: str) -> None:
        await self._act(f"policy {policy}")

    async def set_tunable(self, name: str, value: int) -> None:
        await self._act(f"tunable {name}={value}")

    async def set_attribute(self, pid: int, kind: AttributeKind, value: int) -> None:
        await self._act(f"{kind.name.lower()} {pid} {value}")

    async def start_workload(self, name: str) -> int:
        """Random values are drawn from the machine's seed, other ones each time."""
        return await self._act(f"start {self.setup.seed + self._done} {name}")

    async def kill(self, pid: int) -> None:
        await self._act(f"kill {pid}")

    async def _act(self, words: str) -> int:
        return await self._do(partial(self._perform, words))

    def _perform(self, words: str, machine: Simulator) -> int:
        """CPUs hear of it at once: so it is the same whether or not another act follows now."""
        try:
            result = self._obey(machine, *words.split(" ", 2))
        except ActRefused as error:
            raise Refused(str(error)) from None
        machine.run(machine.now)
        machine.flush()
        self._done += 1
        return result

    def _obey(self, machine: Simulator, kind: str, first: str, second: str = "") -> int:
        """Returns a PID, or 0."""
        if kind == "policy":
            machine.command("sched_status", first)
        elif kind == "tunable":
            machine.command("sched_tunables", first.replace("=", " "))
        elif kind == "kill":
            if int(first) in self.own_pids:
                raise Refused(f"pid {first} is there for the monitor's sake, and stays")
            machine.kill(int(first))
        elif kind == "start":
            workload = _read(self._entry(second), int(first), self.setup.tick_ns)
            return machine.fork(machine.add_workload(workload))
        else:
            attribute = Attribute(AttributeKind[kind.upper()])
            machine.set_attribute(int(first), attribute, int(second))
        return 0

    def _entry(self, name: str) -> Entry:
        if name not in self._palette:
            raise Refused(f"no workload is called {name}; there are {', '.join(self._palette)}")
        return self._palette[name]

    def is_past(self, acts: Sequence[str]) -> bool:
        return self._acts[: self._done] == list(acts[: self._done]) and all(
            _time_of(act) >= self._stands_ns for act in acts[self._done :]
        )

    def expect(self, acts: Sequence[str]) -> None:
        self._acts = list(acts)

    # ---- time

    async def advance(self, until_ns: int, patience_s: float) -> None:
        """Stays where it is as long as too much of its trace is unread, and when it has failed."""
        unread = self._follower.unread_bytes if self._follower else 0
        if self.life is Life.RUNNING and unread < UNREAD_BYTES_MAX:
            with suppress(Refused):  # `life` says so
                await self._do(partial(self._go_on, until_ns, patience_s))

    def _go_on(self, until_ns: int, patience_s: float, machine: Simulator) -> None:
        end_s = monotonic() + patience_s
        while True:
            while self._next_act_ns() <= machine.now:
                self._perform(self._acts[self._done].partition(" ")[2], machine)
            target_ns = min(until_ns, self._next_act_ns())
            patience_s = end_s - monotonic()
            if machine.now >= target_ns or patience_s <= 0:
                return
            if machine.advance(target_ns, patience_s) is Ran.DONE:
                raise RunFailed("the machine's first process has ended")

    def _next_act_ns(self) -> int:
        return _time_of(self._acts[self._done]) if self._done < len(self._acts) else _NEVER_NS

    # ---- help

    async def _in_thread(self, what: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, what)

    async def _do(self, what: Callable[[Simulator], Result]) -> Result:
        """Something that goes on with the machine. Refused: it has failed by it, too."""
        machine = self._machine
        if not machine or self.life is not Life.RUNNING:
            raise Refused(f"the simulator has ended{': ' if self.message else ''}{self.message}")

        def do() -> Result:
            try:
                return what(machine)
            except RunFailed as error:
                self._fail(machine, error)
                raise Refused(f"the simulator has failed: {error}") from None
            finally:
                if self.life is Life.RUNNING:
                    self._stands_ns = machine.now

        return await self._in_thread(do)

    def _fail(self, machine: Simulator, error: RunFailed) -> None:
        """The machine stands, and its trace ends here. Runs in the machine's thread."""
        self._stands_ns = machine.now
        self.life = Life.FAILED
        self.message = str(error)
        self._log.append(f"simulator: {error}")
        _close(machine)


_NO_RECORDS = np.empty(0, RECORD)


def workload_text(entry: Entry, seed: int, tick_ns: int) -> str:
    """Returns a workload in the simulator's words, with what is random drawn by a seed. Refused: the file is wrong."""
    try:
        return text_of(workload_files.read(entry.file), seed, tick_ns)
    except WrongUsage as error:
        raise Refused(str(error)) from None


def _read(entry: Entry, seed: int, tick_ns: int) -> Workload:
    try:
        played = bytes_of(workload_files.read(entry.file), seed, tick_ns)
        return Workload.of_file(played, tick_ns, entry.file.name)
    except (WrongUsage, WorkloadRefused) as error:
        raise Refused(str(error)) from None


def _time_of(act: str) -> int:
    return int(act.partition(" ")[0])


def _close(machine: Simulator) -> None:
    """Closes it, whatever its trace's disk says."""
    with suppress(SimulatorError):
        machine.close()

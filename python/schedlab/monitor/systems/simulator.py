# SPDX-License-Identifier: MIT
"""Adapter of the simulator.

The simulator runs in a separate thread, for at most the requested time. Its trace arrives through
a file, as with every system.

The same actions at the same times give the same trace, byte for byte, here and on a page
(page/session/machine.js). An action is a line with its time (ns), such as `120000000 tickets 5 77`
or `480000000 start 3 two-hogs`. The number in a `start` (here 3) is the seed for the workload's
random values.
"""

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
from schedlab.base.toolchain.policies import describe_unknown_name
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.monitor.system import Ability, Life, Records, Refused, Setup, Status, TunableState
from schedlab.monitor.systems.driven_system import PlayedSystem
from schedlab.monitor.systems.status_text import parse_status, parse_tunables
from schedlab.trace.follow import Follower
from schedlab.trace.format import RECORD, AttributeKind
from schedlab.trace.model import Header
from schedlab.workload import workload_files
from schedlab.workload.palette import PaletteEntry, read_palette
from schedlab.workload.text import encode_workload, format_workload
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
"""Maximum unread bytes of the trace; beyond this, the machine waits."""
PUNCH_BYTES = 64 << 20
"""Bytes of the trace that must have been read before their disk blocks are freed."""
SLEEPING_PROGRAM = """
program monitor
  loop
    sleep 1000000000s
  end
"""
"""Program of the first process.

The process sleeps for 31 years, because the machine ends when its first process ends.
"""
PROCESSES_MAX = 65_536
ADDED_STEPS_MAX = 1 << 18
"""Simulator memory reserved for steps of workloads that are started later.

The longest built-in workload has a few hundred steps.
"""
_NEVER_NS = 900_000_000 * 1_000_000_000

FunctionResult = TypeVar("FunctionResult")


class SimulatorSystem(PlayedSystem):
    """A simulated machine, which begins idle. Blocks of its trace are freed after reading."""

    abilities = frozenset(Ability)
    monitor_pids = frozenset({1, 2})
    """PIDs of init and of the sleeping process."""

    def __init__(self, setup: Setup, folder: Path) -> None:
        super().__init__(setup, folder)
        self._log: list[str] = []
        self._palette = read_palette(setup.files)
        self._thread = ThreadPoolExecutor(1, "simulator")
        """The only thread that accesses `_machine`."""
        self._machine: Simulator | None = None
        self._actions: list[str] = []
        """All actions; the first `_performed_count` were performed, the others wait for their times."""
        self._performed_count = 0
        self._follower: Follower | None = None
        self._read_bytes = 0

    @property
    def header(self) -> Header | None:
        """The trace's header, or None until the machine exists."""
        return self._follower.header if self._follower else None

    # ---- start and end

    async def begin(self) -> None:
        """Makes the machine and runs it until init has forked the sleeping process, under every policy."""
        path = self.folder / "simulator.bin"
        try:
            await asyncio.to_thread(build, SIMULATOR_LIBRARY)
            await self._run_in_thread(partial(self._make_machine, path))
        except SimulatorError as error:
            await self.end()
            raise SchedlabError(f"the simulator: {error}") from None
        except BaseException:
            await self.end()
            raise
        self._follower = Follower(path)
        self.life = Life.RUNNING

    def _make_machine(self, path: Path) -> None:
        setup = self.setup
        machine = self._machine = Simulator(
            SLEEPING_PROGRAM,
            policy=str(setup.policy),
            tunables=dict(setup.settings),
            cpus=setup.cpus,
            tick_ns=setup.tick_ns,
            seed=setup.seed,
            costs=setup.costs,
            processes=PROCESSES_MAX,
            trace=path,
            trace_queues=True,
            added_steps=ADDED_STEPS_MAX,
        )
        while machine.counts().processes < len(self.monitor_pids):
            machine.run((machine.now // setup.tick_ns + 1) * setup.tick_ns)
        machine.flush()
        self._position_ns = machine.now

    async def play_by_itself(self) -> None:
        """Starts the setup's workloads, and lets the clock run."""
        for name in self.setup.workloads:
            await self.start_workload(name)
        await self.resume()

    async def end(self) -> None:
        """Ends the machine. Its trace is then complete and can still be read."""
        if self.life in (Life.STARTING, Life.RUNNING):
            self.life = Life.ENDED
        await self.pause()
        machine, self._machine = self._machine, None
        if machine:
            await self._run_in_thread(partial(_close_machine, machine))
        self._thread.shutdown(wait=False)

    # ---- output

    def take_records(self) -> Records:
        """Returns new trace records, and updates `now_ns` to the latest one's time."""
        if not self._follower:
            return _NO_RECORDS
        records = self._follower.poll()
        is_complete = self._follower.unread_bytes < RECORD.itemsize or not len(records)
        self._read_ns = None if is_complete else min(int(records["time"].max()), self._position_ns)
        self._read_bytes += records.nbytes
        if self._read_bytes >= PUNCH_BYTES:
            self._follower.punch()
            self._read_bytes = 0
        return records

    def take_log(self) -> list[str]:
        """Returns why the simulator failed, if it did; the simulator has no console."""
        log, self._log = self._log, []
        return log

    async def read_status(self) -> Status:
        return parse_status(await self._run_in_machine(Simulator.status))

    async def read_tunables(self) -> tuple[TunableState, ...]:
        return parse_tunables(await self._run_in_machine(Simulator.tunables))

    # ---- actions

    async def set_policy(self, policy: str) -> None:
        await self._perform_now(f"policy {policy}")

    async def set_tunable(self, name: str, value: int) -> None:
        await self._perform_now(f"tunable {name}={value}")

    async def set_attribute(self, pid: int, kind: AttributeKind, value: int) -> None:
        await self._perform_now(f"{kind.name.lower()} {pid} {value}")

    async def start_workload(self, name: str) -> int:
        """Starts a workload.

        Its random values derive from the machine's seed and differ at each start.
        """
        return await self._perform_now(f"start {self.setup.seed + self._performed_count} {name}")

    async def kill(self, pid: int) -> None:
        await self._perform_now(f"kill {pid}")

    async def _perform_now(self, words: str) -> int:
        return await self._run_in_machine(partial(self._perform, words))

    def _perform(self, words: str, machine: Simulator) -> int:
        """Performs an action.

        CPUs react immediately, so the result does not depend on later actions.
        """
        try:
            result = self._execute(machine, *words.split(" ", 2))
        except ActRefused as error:
            raise Refused(str(error)) from None
        machine.run(machine.now)
        machine.flush()
        self._performed_count += 1
        return result

    def _execute(self, machine: Simulator, kind: str, first: str, second: str = "") -> int:
        """Executes a command; returns a PID or 0."""
        if kind == "policy":
            machine.command("sched_status", first)
        elif kind == "tunable":
            machine.command("sched_tunables", first.replace("=", " "))
        elif kind == "kill":
            if int(first) in self.monitor_pids:
                raise Refused(f"process {first}: the monitor needs it; choose another")
            machine.kill(int(first))
        elif kind == "start":
            workload = _read_workload(self._palette_entry(second), int(first), self.setup.tick_ns)
            return machine.fork(machine.add_workload(workload))
        else:
            attribute = Attribute(AttributeKind[kind.upper()])
            machine.set_attribute(int(first), attribute, int(second))
        return 0

    def _palette_entry(self, name: str) -> PaletteEntry:
        if name not in self._palette:
            raise Refused(describe_unknown_name("workload", name, self._palette))
        return self._palette[name]

    def has_performed(self, acts: Sequence[str]) -> bool:
        return self._actions[: self._performed_count] == list(
            acts[: self._performed_count]
        ) and all(
            _action_time_ns(act) >= self._position_ns for act in acts[self._performed_count :]
        )

    def schedule(self, acts: Sequence[str]) -> None:
        """Sets the actions that the machine performs when it reaches their times."""
        self._actions = list(acts)

    # ---- time

    async def advance(self, until_ns: int, timeout_s: float) -> None:
        """Runs the machine up to a time (ns).

        Does nothing while too much of the trace is unread, or after a failure.
        """
        unread = self._follower.unread_bytes if self._follower else 0
        if self.life is Life.RUNNING and unread < UNREAD_BYTES_MAX:
            with suppress(Refused):  # `life` reports the failure
                await self._run_in_machine(partial(self._run_until, until_ns, timeout_s))

    def _run_until(self, until_ns: int, timeout_s: float, machine: Simulator) -> None:
        """Runs the machine to a time, and performs scheduled actions on the way."""
        end_s = monotonic() + timeout_s
        while True:
            while self._next_act_ns() <= machine.now:
                self._perform(self._actions[self._performed_count].partition(" ")[2], machine)
            target_ns = min(until_ns, self._next_act_ns())
            timeout_s = end_s - monotonic()
            if machine.now >= target_ns or timeout_s <= 0:
                return
            if machine.advance(target_ns, timeout_s) is Ran.DONE:
                raise RunFailed("the machine's first process has ended")

    def _next_act_ns(self) -> int:
        return (
            _action_time_ns(self._actions[self._performed_count])
            if self._performed_count < len(self._actions)
            else _NEVER_NS
        )

    # ---- helpers

    async def _run_in_thread(self, function: Callable[[], FunctionResult]) -> FunctionResult:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    async def _run_in_machine(
        self, function: Callable[[Simulator], FunctionResult]
    ) -> FunctionResult:
        """Runs a function in the machine's thread. Raises Refused if the machine fails or has failed."""
        machine = self._machine
        if not machine or self.life is not Life.RUNNING:
            raise Refused(
                f"the simulator has ended{': ' if self.message else ''}{self.message}; restart it"
            )

        def run_function() -> FunctionResult:
            try:
                return function(machine)
            except RunFailed as error:
                self._fail(machine, error)
                raise Refused(f"the simulator has failed: {error}; restart it") from None
            finally:
                if self.life is Life.RUNNING:
                    self._position_ns = machine.now

        return await self._run_in_thread(run_function)

    def _fail(self, machine: Simulator, error: RunFailed) -> None:
        """Marks the machine as failed and ends its trace. Runs in the machine's thread."""
        self._position_ns = machine.now
        self.life = Life.FAILED
        self.message = str(error)
        self._log.append(f"simulator: {error}")
        _close_machine(machine)


_NO_RECORDS = np.empty(0, RECORD)


def workload_text(entry: PaletteEntry, seed: int, tick_ns: int) -> str:
    """Returns a workload in the simulator's text format; random values are drawn with `seed`.

    Raises Refused if the workload file is invalid.
    """
    try:
        return format_workload(workload_files.read_workload_file(entry.file), seed, tick_ns)
    except WrongUsage as error:
        raise Refused(str(error)) from None


def _read_workload(entry: PaletteEntry, seed: int, tick_ns: int) -> Workload:
    try:
        encoded_workload = encode_workload(
            workload_files.read_workload_file(entry.file), seed, tick_ns
        )
        return Workload.of_file(encoded_workload, tick_ns, entry.file.name)
    except (WrongUsage, WorkloadRefused) as error:
        raise Refused(str(error)) from None


def _action_time_ns(act: str) -> int:
    return int(act.partition(" ")[0])


def _close_machine(machine: Simulator) -> None:
    """Closes the machine and ignores errors of the trace's disk."""
    with suppress(SimulatorError):
        machine.close()

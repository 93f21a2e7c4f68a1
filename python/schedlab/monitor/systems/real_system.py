# SPDX-License-Identifier: MIT
"""Base classes of systems with their own clock: life cycle, trace and console."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path

import numpy as np

from schedlab.base.host.supervision import to_the_end
from schedlab.errors import SchedlabError
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.outcome import tail_of
from schedlab.monitor.system import Ability, Life, Records, Refused, Setup
from schedlab.monitor.systems.console import Console
from schedlab.monitor.systems.machine_process import MachineProcess
from schedlab.monitor.systems.qemu_control import QemuControl
from schedlab.monitor.systems.steering import Steering
from schedlab.monitor.systems.steering_cost import SteeringCost
from schedlab.trace.errors import TraceError
from schedlab.trace.follow import Follower
from schedlab.trace.format import RECORD
from schedlab.trace.model import Header

OVER = (Life.ENDED, Life.FAILED)
_LOOK_S = 0.02
_PUNCH_BYTES = 16 << 20


class RealSystem(ABC):
    """See System. `folder` must exist and be empty."""

    repeatable = False
    """False, because the arrival time of commands depends on the host."""
    no_branches = "a live machine cannot be repeated: play a stored run of `machine='spike'`"
    name = "system"
    """The system's name in messages."""

    def __init__(self, setup: Setup, folder: Path) -> None:
        self.setup = setup
        self.folder = folder.resolve()
        self.keep_trace = False
        """True to keep the trace's file; otherwise blocks that were read are freed."""
        self._life = Life.STARTING
        self._message = ""
        self._ending = False
        """True after a request to end."""
        self._console = Console()
        self._watching: asyncio.Task[None] | None = None
        self._follower: Follower | None = None
        self._all_taken = False
        self._taken_bytes = 0
        """Bytes of the trace read since blocks were last freed."""
        self._record_cost_ns = 0.0

    # --- properties

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
    def record_cost_ns(self) -> float:
        return self._record_cost_ns

    # --- start and end

    async def begin(self) -> None:
        try:
            await self._begin()
            self._stand(Life.STARTING, Life.RUNNING)
            for name in self.setup.workloads:
                await self.start_workload(name)
        except (Refused, TraceError) as problem:
            why = self._message or f"{problem}{tail_of(self._console.tail)}"
            await self.end()
            raise SchedlabError(why) from None
        except BaseException:
            await self.end()
            raise

    @abstractmethod
    async def _begin(self) -> None:
        """Starts the system; returns when it runs and its trace has begun."""

    @abstractmethod
    async def start_workload(self, name: str) -> int: ...

    def _flows(self) -> bool:
        """True if the trace has begun."""
        return self._follower is not None and self._follower.header is not None

    async def _await_trace(self, timeout_s: float, late: str) -> None:
        """Waits for the trace. Raises Refused with the message `late` if it does not begin."""
        limit = time.monotonic() + timeout_s
        while not self._flows():
            if self._life is not Life.STARTING or time.monotonic() > limit:
                raise Refused(late)
            await asyncio.sleep(_LOOK_S)

    async def end(self) -> None:
        await to_the_end(self._end())

    @abstractmethod
    async def _end(self) -> None: ...

    # --- output

    def take_log(self) -> list[str]:
        return self._console.take_log()

    def take(self) -> Records:
        if self._all_taken or not self._follower:
            return np.empty(0, RECORD)
        try:
            records = self._poll(self._follower)
        except (TraceError, OSError) as error:
            self._lose_trace(self._follower, f"its trace cannot be read: {error}")
            return np.empty(0, RECORD)
        self._look_at(records)
        return records

    def _poll(self, follower: Follower) -> Records:
        if self._life in OVER:
            self._all_taken = True
            records = self._last_of(follower.finish())
            follower.close()
            return records
        records = follower.poll()
        self._taken_bytes += records.nbytes
        if self._gives_back() and self._taken_bytes > _PUNCH_BYTES:
            follower.punch()
            self._taken_bytes = 0
        return records

    def _last_of(self, records: Records) -> Records:
        """Filters the records read after the end."""
        return records

    def _gives_back(self) -> bool:
        """Returns whether blocks of the trace that were read may be freed."""
        return not self.keep_trace

    @abstractmethod
    def _look_at(self, records: Records) -> None:
        """Inspects records before they are returned."""

    def _lose_trace(self, follower: Follower, why: str) -> None:
        """Ends the system, because its trace cannot be read."""
        self._all_taken = True
        follower.close()
        if self._life not in OVER:
            self._life, self._message = Life.FAILED, why
            self._kill()

    @abstractmethod
    def _kill(self) -> None:
        """Kills a system that cannot be watched any more."""

    # --- commands

    def _stand(self, before: Life, after: Life) -> None:
        """Changes the life-cycle state to `after` if it is still `before`.

        Otherwise the system has ended in the meantime, and the state stays.
        """
        if self._life is before:
            self._life = after

    def _check_alive(self) -> None:
        if self._life not in (Life.RUNNING, Life.PAUSED):
            first = self._message.partition("\n")[0].rstrip(":;")
            raise Refused(first or f"{self.name} is still starting; try again")


class GuestSystem(RealSystem):
    """A virtual machine whose kernel runs schedlab's program `steer`, which executes commands."""

    abilities = frozenset(
        {Ability.POLICY, Ability.ATTRIBUTES, Ability.START, Ability.PAUSE, Ability.SETUP}
    )
    end_patience_s = 5.0
    """Host seconds that a machine may take to end after a request."""

    def __init__(self, setup: Setup, folder: Path) -> None:
        super().__init__(setup, folder)
        self._forced = False
        self._process = MachineProcess(self._hear)
        self._control: QemuControl | None = None
        self._steering: Steering | None = None
        self._steer_pid = 0
        self._costs: dict[int, SteeringCost] = {}
        """Costs of the processes that answer commands, by PID."""
        self._follower = Follower(self.folder / TRACE_FILE)

    @abstractmethod
    def _hear(self, data: bytes) -> None:
        """Receives console output."""

    @property
    def status_period_s(self) -> float:
        """Minimum interval (host seconds) between calls of read_status; it grows with the number of processes.

        The period limits status answers to 2 % of one CPU, and leaves time for commands.
        """
        return max((cost.period_s for cost in self._costs.values()), default=1.0)

    # --- start and end

    async def _start(self, command: list[str], inherited: tuple[int, ...]) -> None:
        try:
            await self._process.start(command, self.folder, inherited)
        except OSError as error:
            raise SchedlabError(f"{command[0]} cannot be started: {error.strerror}") from None
        self._watching = asyncio.create_task(self._watch())

    async def _await_ready(self, timeout_s: float) -> None:
        ready = await self._steering_of().wait_ready(timeout_s)
        self._steer_pid, self._record_cost_ns = ready.pid, ready.record_cost_ps / 1000
        self._costs[ready.pid] = SteeringCost(ready.pid)

    async def _end(self) -> None:
        if self._watching and not self._watching.done():
            self._ending = True
            await self._end_in_order(self._watching)
            if not self._watching.done():
                self._forced = True
                await self._process.end()
            await self._watching
        await self._close()
        if self._life is Life.STARTING:
            self._life = Life.ENDED

    async def _end_in_order(self, watching: asyncio.Task[None]) -> None:
        """Ends the machine through its own program, which completes the trace."""
        if self._life is Life.PAUSED:
            with suppress(Refused):
                await self.resume()
        if self._steer_pid:
            self._steering_of().type_end()
            await asyncio.wait([watching], timeout=self.end_patience_s)

    async def _close(self) -> None:
        """Closes everything that belongs to the ended machine."""
        if self._control:
            await self._control.close()

    async def _watch(self) -> None:
        """Waits until the machine has ended for any reason."""
        status = await self._process.wait()
        self._console.close()
        self._life, self._message = self._outcome_of(status)
        if self._steering:
            self._steering.fail(self._message.partition("\n")[0])

    def _outcome_of(self, status: int) -> tuple[Life, str]:
        if self._forced:
            return Life.ENDED, "it was killed: the end of its trace is missing"
        return self._last_words(status)

    @abstractmethod
    def _last_words(self, status: int) -> tuple[Life, str]:
        """Returns the life-cycle state and the message of a machine that ended without being killed."""

    def _kill(self) -> None:
        self._process.kill()

    # --- output

    def _look_at(self, records: Records) -> None:
        for cost in self._costs.values():
            cost.feed(records)

    async def _read_status_text(self) -> str:
        steering = self._commanded()
        for cost in self._costs.values():
            cost.note_request()
        text = await steering.read("sched_status")
        for cost in self._costs.values():
            cost.answered()
        return text

    # --- commands

    def _steering_of(self) -> Steering:
        assert self._steering
        return self._steering

    def _commanded(self) -> Steering:
        self._check_alive()
        return self._steering_of()

    async def _started(self, command: str, name: str) -> int:
        pid = await self._commanded().execute(f"start {command}", f"workload {name}")
        if pid is None:
            raise Refused(f"workload {name}: started, but its PID is not known")
        return pid

    # --- time

    async def pause(self) -> None:
        steering = self._commanded()
        if self._life is Life.RUNNING:
            await self._stop_time()
            self._stand(Life.RUNNING, Life.PAUSED)
            steering.stopwatch.pause()

    async def resume(self) -> None:
        steering = self._commanded()
        if self._life is Life.PAUSED:
            await self._go_on()
            self._stand(Life.PAUSED, Life.RUNNING)
            steering.stopwatch.resume()

    async def _stop_time(self) -> None:
        assert self._control
        await self._control.pause()

    async def _go_on(self) -> None:
        assert self._control
        await self._control.resume()

# SPDX-License-Identifier: MIT
"""Base classes of systems with their own clock: life cycle, trace and console."""

import asyncio
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path

import numpy as np

from schedlab.base.host.supervision import await_completely
from schedlab.errors import SchedlabError
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.outcome import describe_tail
from schedlab.monitor.system import Ability, Life, Records, Refused, Setup, System, TunableState
from schedlab.monitor.systems.console import Console
from schedlab.monitor.systems.machine_process import MachineProcess
from schedlab.monitor.systems.qemu_control import QemuControl
from schedlab.monitor.systems.status_text import parse_tunables
from schedlab.monitor.systems.steering import Steering, SteeringCost
from schedlab.trace.errors import TraceError
from schedlab.trace.follow import Follower
from schedlab.trace.format import RECORD
from schedlab.trace.model import Header

ENDED_LIVES = (Life.ENDED, Life.FAILED)
_POLL_S = 0.02
_PUNCH_BYTES = 16 << 20


class RealSystem(System, ABC):
    """See System. `folder` must exist and be empty.

    It is not repeatable, because the arrival time of commands depends on the host.
    """

    why_no_branches = "a live machine cannot be repeated: play a stored run of `machine='spike'`"
    name = "system"
    """The system's name in messages."""

    def __init__(self, setup: Setup, folder: Path) -> None:
        super().__init__(setup, folder.resolve())
        self.keep_trace = False
        """True to keep the trace's file; otherwise blocks that were read are freed."""
        self._end_requested = False
        """True after a request to end."""
        self._console = Console()
        self._watching: asyncio.Task[None] | None = None
        self._follower: Follower | None = None
        self._trace_is_complete = False
        self._read_bytes = 0
        """Bytes of the trace read since blocks were last freed."""

    # --- properties

    @property
    def header(self) -> Header | None:
        with suppress(TraceError, OSError):
            return self._follower.header if self._follower else None
        return None

    # --- start and end

    async def begin(self) -> None:
        try:
            await self._begin()
            self._change_life(Life.STARTING, Life.RUNNING)
            for name in self.setup.workloads:
                await self.start_workload(name)
        except (Refused, TraceError) as problem:
            why = self.message or f"{problem}{describe_tail(self._console.tail)}"
            await self.end()
            raise SchedlabError(why) from None
        except BaseException:
            await self.end()
            raise

    @abstractmethod
    async def _begin(self) -> None:
        """Starts the system; returns when it runs and its trace has begun."""

    def _trace_has_started(self) -> bool:
        """True if the trace has begun."""
        return self._follower is not None and self._follower.header is not None

    async def _await_trace(self, timeout_s: float, timeout_message: str) -> None:
        """Waits until the trace has begun. Raises Refused with the message `timeout_message` after `timeout_s`."""
        limit = time.monotonic() + timeout_s
        while not self._trace_has_started():
            if self.life is not Life.STARTING or time.monotonic() > limit:
                raise Refused(timeout_message)
            await asyncio.sleep(_POLL_S)

    async def end(self) -> None:
        await await_completely(self._end())

    @abstractmethod
    async def _end(self) -> None: ...

    # --- output

    def take_log(self) -> list[str]:
        return self._console.take_log()

    def take_records(self) -> Records:
        if self._trace_is_complete or not self._follower:
            return np.empty(0, RECORD)
        try:
            records = self._new_records(self._follower)
        except (TraceError, OSError) as error:
            self._lose_trace(self._follower, f"its trace cannot be read: {error}")
            return np.empty(0, RECORD)
        self._inspect_records(records)
        return records

    def _new_records(self, follower: Follower) -> Records:
        """Returns the records since the last call; after the end, all that remain."""
        if self.life in ENDED_LIVES:
            self._trace_is_complete = True
            records = self._usable_records(follower.finish())
            follower.close()
            return records
        records = follower.poll()
        self._read_bytes += records.nbytes
        if self._frees_trace() and self._read_bytes > _PUNCH_BYTES:
            follower.punch()
            self._read_bytes = 0
        return records

    def _usable_records(self, records: Records) -> Records:
        """Returns the usable ones of the records that were read after the system's end."""
        return records

    def _frees_trace(self) -> bool:
        """Returns whether disk blocks of the trace may be freed after they were read."""
        return not self.keep_trace

    @abstractmethod
    def _inspect_records(self, records: Records) -> None:
        """Inspects new records before `take` returns them; subclasses override it."""

    def _lose_trace(self, follower: Follower, why: str) -> None:
        """Ends the system, because its trace cannot be read."""
        self._trace_is_complete = True
        follower.close()
        if self.life not in ENDED_LIVES:
            self.life, self.message = Life.FAILED, why
            self._kill()

    @abstractmethod
    def _kill(self) -> None:
        """Kills a system that cannot be watched any more."""

    # --- commands

    def _change_life(self, before: Life, after: Life) -> None:
        """Changes the life-cycle state from `before` to `after`.

        Does nothing if the state is not `before`: the system has then ended in the meantime.
        """
        if self.life is before:
            self.life = after

    def _check_alive(self) -> None:
        if self.life not in (Life.RUNNING, Life.PAUSED):
            first = self.message.partition("\n")[0].rstrip(":;")
            raise Refused(first or f"{self.name} is still starting; try again")


class GuestSystem(RealSystem):
    """A virtual machine whose kernel runs schedlab's program `steer`, which executes commands."""

    abilities = frozenset(
        {Ability.POLICY, Ability.ATTRIBUTES, Ability.START, Ability.PAUSE, Ability.SETUP}
    )
    end_patience_s = 5.0
    """Host seconds that a machine may take to end by itself after a request."""

    def __init__(self, setup: Setup, folder: Path) -> None:
        super().__init__(setup, folder)
        self._was_killed = False
        self._process = MachineProcess(self._receive_output)
        self._control: QemuControl | None = None
        self._steering: Steering | None = None
        self._steer_pid = 0
        self._costs: dict[int, SteeringCost] = {}
        """Costs of the processes that answer commands, by PID."""
        self._follower = Follower(self.folder / TRACE_FILE)

    @abstractmethod
    def _receive_output(self, data: bytes) -> None:
        """Receives console output."""

    @property
    def status_period_s(self) -> float:
        """Minimum host seconds between two calls of read_status.

        It grows with the number of processes. It limits status answers to 2 % of one CPU, and
        leaves time for commands.
        """
        return max((cost.period_s for cost in self._costs.values()), default=1.0)

    # --- start and end

    async def _start(self, command: list[str], inherited: tuple[int, ...]) -> None:
        try:
            await self._process.start(command, self.folder, inherited)
        except OSError as error:
            raise SchedlabError(
                f"{command[0]} cannot be started: {error.strerror}",
                fix="run `./schedlab doctor` to see what is missing",
            ) from None
        self._watching = asyncio.create_task(self._watch())

    async def _await_ready(self, timeout_s: float) -> None:
        ready = await self._started_steering().wait_ready(timeout_s)
        self._steer_pid, self.record_cost_ns = ready.pid, ready.record_cost_ps / 1000
        self._costs[ready.pid] = SteeringCost(ready.pid)

    async def _end(self) -> None:
        if self._watching and not self._watching.done():
            self._end_requested = True
            await self._end_in_order(self._watching)
            if not self._watching.done():
                self._was_killed = True
                await self._process.end()
            await self._watching
        await self._close()
        if self.life is Life.STARTING:
            self.life = Life.ENDED

    async def _end_in_order(self, watching: asyncio.Task[None]) -> None:
        """Asks `steer` to end the machine, which completes the trace."""
        if self.life is Life.PAUSED:
            with suppress(Refused):
                await self.resume()
        if self._steer_pid:
            self._started_steering().request_end()
            await asyncio.wait([watching], timeout=self.end_patience_s)

    async def _close(self) -> None:
        """Closes the connections to the ended machine."""
        if self._control:
            await self._control.close()

    async def _watch(self) -> None:
        """Waits until the machine has ended for any reason, and records why."""
        status = await self._process.wait()
        self._console.close()
        self.life, self.message = self._outcome_of(status)
        if self._steering:
            self._steering.fail(self.message.partition("\n")[0])

    def _outcome_of(self, status: int) -> tuple[Life, str]:
        """Returns the final state, and why the machine ended."""
        if self._was_killed:
            return Life.ENDED, "it was killed: the end of its trace is missing"
        return self._final_state(status)

    @abstractmethod
    def _final_state(self, status: int) -> tuple[Life, str]:
        """Returns the state and message for a machine that ended without being killed by the monitor."""

    def _kill(self) -> None:
        self._process.kill()

    # --- output

    def _inspect_records(self, records: Records) -> None:
        for cost in self._costs.values():
            cost.feed(records)

    async def _read_status_text(self) -> str:
        """Returns the content of the kernel's file sched_status; notes the request and the answer."""
        steering = self._live_steering()
        for cost in self._costs.values():
            cost.note_request()
        text = await steering.read("sched_status")
        for cost in self._costs.values():
            cost.note_answer()
        return text

    # --- commands

    def _started_steering(self) -> Steering:
        """Returns what sends commands to the system, which has been started."""
        assert self._steering
        return self._steering

    def _live_steering(self) -> Steering:
        self._check_alive()
        return self._started_steering()

    async def read_tunables(self) -> tuple[TunableState, ...]:
        return parse_tunables(await self._live_steering().read("sched_tunables"))

    async def _start_workload_command(self, command: str, name: str) -> int:
        pid = await self._live_steering().execute(f"start {command}", f"workload {name}")
        if pid is None:
            raise Refused(
                f"workload {name}: started, but its PID is not known; find it in the list of processes"
            )
        return pid

    # --- time

    async def pause(self) -> None:
        steering = self._live_steering()
        if self.life is Life.RUNNING:
            await self._stop_time()
            self._change_life(Life.RUNNING, Life.PAUSED)
            steering.stopwatch.pause()

    async def resume(self) -> None:
        steering = self._live_steering()
        if self.life is Life.PAUSED:
            await self._resume_time()
            self._change_life(Life.PAUSED, Life.RUNNING)
            steering.stopwatch.resume()

    async def _stop_time(self) -> None:
        assert self._control
        await self._control.pause()

    async def _resume_time(self) -> None:
        assert self._control
        await self._control.resume()

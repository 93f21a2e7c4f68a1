# SPDX-License-Identifier: MIT
"""Our kernel, watched and steered while it runs, on QEMU or on Spike.

    machine ── trace.bin ──► Follower ──► take()
       ▲  └─── console ────► Console ───► take_log(), answers
       └────── commands ◄─── Steering

QEMU keeps the host's time. Spike has a time of its own, as fast as the host makes it: some seconds a
second while all its CPUs idle (which it does by spinning), a fraction of one while they work.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import numpy as np

from schedlab.errors import SchedlabError, WrongUsage
from schedlab.host.supervision import to_the_end
from schedlab.machines import Boot, kernel_machine
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.kernel import BOOT_ARGUMENTS_MAX, KERNEL_PARTS
from schedlab.machines.outcome import FAILED, SUCCESS, Outcome, outcome_of, tail_of
from schedlab.monitor.system import (
    Ability,
    Life,
    Records,
    Refused,
    Setup,
    Status,
    TunableNow,
)
from schedlab.monitor.systems.console import Console
from schedlab.monitor.systems.guest_errors import EPOLICY, ERANGE, ESRCH, ETUNABLE, GuestError
from schedlab.monitor.systems.live_disk import LiveDisk, make_live_disk
from schedlab.monitor.systems.machine_process import MachineProcess
from schedlab.monitor.systems.qemu_control import QemuControl
from schedlab.monitor.systems.status_text import parse_status, parse_tunables
from schedlab.monitor.systems.steering import Steering
from schedlab.monitor.systems.steering_cost import SteeringCost
from schedlab.runs.parts import supply
from schedlab.runs.plan import MEMORY_MIB, TICK_NS
from schedlab.toolchain.policies import (
    Catalogue,
    check_choices,
    is_choice,
    read_catalogue,
    unknown,
)
from schedlab.trace.errors import TraceError
from schedlab.trace.follow import Follower
from schedlab.trace.format import RECORD, AttributeKind
from schedlab.trace.model import Header
from schedlab.units import format_time
from schedlab.workload.model import ATTRIBUTES

INIT = 1
"""The PID of the first process, which reaps what nobody else does."""
START_PATIENCE_S = 120.0
END_PATIENCE_S = 5.0
"""Of ours, for a machine that was asked to end."""
TRACE_DELAY = "50ms"
"""Of the machine's time, until a record leaves it."""
_PUNCH_BYTES = 16 << 20
_SILENT_S = 2.0
_LONG_TEXT = 20_000
"""Characters of a text that takes milliseconds to be read."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,63}")
_INTEGERS = range(-(2**63), 2**63)
"""Those of 64 bits."""


@dataclass(frozen=True)
class Prepared:
    """What a machine starts from."""

    catalogue: Catalogue
    parts: Mapping[str, Path]
    disk: LiveDisk


class KernelSystem:
    """See System. `folder` is empty and there."""

    abilities = frozenset(
        {Ability.POLICY, Ability.ATTRIBUTES, Ability.START, Ability.PAUSE, Ability.SETUP}
    )
    repeatable = False
    """When a command reaches it is the host's affair."""

    def __init__(self, setup: Setup, folder: Path) -> None:
        self.setup = setup
        self.folder = folder.resolve()
        self.keep_trace = False
        """The file keeps what was read of it; else, its blocks go back to the disk."""
        self._machine = kernel_machine(setup.machine)
        self._life = Life.STARTING
        self._message = ""
        self._ending = False
        """It was asked to end."""
        self._forced = False
        self._console = Console()
        self._process = MachineProcess(self._hear)
        self._steering = Steering(self._console, self._process.write)
        self._steering.explain_silence = self._explain_silence
        self._control: QemuControl | None = None
        self._watching: asyncio.Task[None] | None = None
        self._follower = Follower(self.folder / TRACE_FILE)
        self._all_taken = False
        self._last_sequence = -1
        """Of the last record that was taken."""
        self._taken_bytes = 0
        """Of the trace, since blocks of it were last given back."""
        self._records_s = time.monotonic()
        """When there were records last."""
        self._prepared: Prepared | None = None
        self._steer_pid = 0
        self._record_cost_ns = 0.0
        self._cost = SteeringCost(0)

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
        return frozenset({INIT, self._steer_pid} - {0})

    @property
    def record_cost_ns(self) -> float:
        return self._record_cost_ns

    @property
    def status_period_s(self) -> float:
        """How often, in our time, read_status may be called so that its answers take no more than a
        fiftieth of one CPU's time, and leave time for commands: the more processes, the longer."""
        return self._cost.period_s

    # --- beginning and end ------------------------------------------------------------------------

    async def begin(self) -> None:
        try:
            await self._begin()
        except (Refused, TraceError) as refused:
            why = self._message or f"{refused}{tail_of(self._console.tail)}"
            await self.end()
            raise SchedlabError(why) from None
        except BaseException:
            await self.end()
            raise

    async def _begin(self) -> None:
        prepared = await to_the_end(asyncio.to_thread(prepare, self.setup, self.folder))
        self._prepared = prepared
        await self._start_machine(prepared)
        ready = await self._steering.wait_ready(START_PATIENCE_S)
        if self._control:
            await self._control.connect()
        self._steer_pid, self._record_cost_ns = ready.pid, ready.record_cost_ps / 1000
        self._cost = SteeringCost(ready.pid)
        await self._await_header()
        self._life = Life.RUNNING
        for name in self.setup.workloads:
            await self.start_workload(name)

    async def _start_machine(self, prepared: Prepared) -> None:
        setup = self.setup
        self._control = QemuControl() if self._machine.controlled else None
        control = self._control.theirs.fileno() if self._control else None
        boot = Boot(
            prepared.parts["kernel"],
            prepared.disk.image,
            setup.cpus,
            setup.memory_mib,
            boot_arguments(setup),
            control=control,
        )
        command = self._machine.command(boot)
        inherited = () if control is None else (control,)
        try:
            await self._process.start(command, self.folder, inherited)
        except OSError as error:
            raise SchedlabError(f"{command[0]} cannot be started: {error.strerror}") from None
        self._watching = asyncio.create_task(self._watch())

    async def _await_header(self) -> None:
        limit = time.monotonic() + START_PATIENCE_S
        while self._follower.header is None:
            if self._life is not Life.STARTING or time.monotonic() > limit:
                raise Refused("the machine writes no trace")
            await asyncio.sleep(0.02)

    async def end(self) -> None:
        await to_the_end(self._end())

    async def _end(self) -> None:
        if self._watching and not self._watching.done():
            self._ending = True
            await self._end_in_order()
            if not self._watching.done():
                self._forced = True
                await self._process.end()
            await self._watching
        if self._control:
            await self._control.close()
        if self._life is Life.STARTING:
            self._life = Life.ENDED

    async def _end_in_order(self) -> None:
        """By its own program, so that the trace is whole."""
        assert self._watching
        if self._life is Life.PAUSED:
            with suppress(Refused):
                await self.resume()
        if self._steer_pid:
            self._steering.type_end()
            await asyncio.wait([self._watching], timeout=END_PATIENCE_S)

    async def _watch(self) -> None:
        """Until it has ended, for whatever reason."""
        status = await self._process.wait()
        self._console.close()
        self._life, self._message = self._came_of(status)
        self._steering.fail(self._message.partition("\n")[0])
        if self._prepared:
            self._prepared.disk.image.unlink(missing_ok=True)

    def _came_of(self, status: int) -> tuple[Life, str]:
        if self._ending and status == SUCCESS and not self._forced:
            return Life.ENDED, "it was ended"
        if self._forced:
            return Life.ENDED, "it was ended by force: the last of its trace is missing"
        if status == SUCCESS:
            return Life.ENDED, "the machine has ended by itself"
        return Life.FAILED, self._failure(status).message

    def _failure(self, status: int) -> Outcome:
        console = self._console.tail
        if status == FAILED:
            return Outcome("failed", "the machine has ended with a failure" + tail_of(console))
        return outcome_of(status, console)

    # --- what it says -----------------------------------------------------------------------------

    def _hear(self, data: bytes) -> None:
        self._steering.heard(data)

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
        self._cost.feed(records)
        if len(records):
            self._records_s = time.monotonic()
        return records

    def _poll(self) -> Records:
        if self._watching and self._watching.done():
            self._all_taken = True
            records = self._up_to_a_gap(self._follower.finish())
            self._follower.close()
            return records
        records = self._follower.poll()
        if len(records):
            self._last_sequence = int(records["sequence"][-1])
        self._taken_bytes += records.nbytes
        if not self.keep_trace and self._taken_bytes > _PUNCH_BYTES:
            self._follower.punch()
            self._taken_bytes = 0
        return records

    def _up_to_a_gap(self, records: Records) -> Records:
        """A machine that was cut off has records behind such as never came: without what its CPUs
        did to each other, they are no story."""
        expected = self._last_sequence + 1 + np.arange(len(records))
        wrong = np.flatnonzero(records["sequence"] != expected % (1 << 32))
        return records[: wrong[0]] if len(wrong) else records

    def _lose_trace(self, why: str) -> None:
        """Nothing can be shown any more: it is ended."""
        self._all_taken = True
        self._follower.close()
        if self._watching and not self._watching.done():
            self._life, self._message = Life.FAILED, why
            self._process.kill()

    def _explain_silence(self) -> str:
        """Why it does not answer, as far as the trace knows."""
        quiet = time.monotonic() - self._records_s > _SILENT_S
        if quiet and not self._follower.unread_bytes:
            return "its trace says nothing either: it hangs, or the host gives it no time"
        return f"it runs, but its program `steer` (PID {self._steer_pid}) does not come to answer"

    # --- commands ---------------------------------------------------------------------------------

    async def read_status(self) -> Status:
        self._check_alive()
        self._cost.asked()
        text = await self._steering.read("sched_status")
        self._cost.answered()
        if len(text) < _LONG_TEXT:
            return parse_status(text)
        return await asyncio.to_thread(parse_status, text)

    async def read_tunables(self) -> tuple[TunableNow, ...]:
        self._check_alive()
        return parse_tunables(await self._steering.read("sched_tunables"))

    async def set_policy(self, policy: str) -> None:
        self._check_alive()
        what = f"policy {policy}"
        if not (is_choice(policy) or policy.isdecimal()):
            raise Refused(f"{what}: expected POLICY or POLICY:PRESET")
        try:
            await self._steering.tell(f"write sched_status {policy}", what)
        except GuestError as error:
            raise self._policy_refused(error, policy) from None

    def _policy_refused(self, error: GuestError, policy: str) -> Refused:
        assert self._prepared
        name, _, preset = policy.partition(":")
        catalogue = self._prepared.catalogue
        if error.number != EPOLICY:
            return error
        if name not in catalogue:
            return Refused(unknown("policy", name, catalogue))
        return Refused(unknown(f"preset of {name}", preset, catalogue[name].presets))

    async def set_tunable(self, name: str, value: int) -> None:
        self._check_alive()
        what = f"{name}={value}"
        if not _NAME.fullmatch(name) or value not in _INTEGERS:
            raise Refused(f"{what}: expected a tunable and a number of 64 bits")
        try:
            await self._steering.tell(f"write sched_tunables {name} {value}", what)
        except GuestError as error:
            raise await self._tunable_refused(error, name, value) from None

    async def _tunable_refused(self, error: GuestError, name: str, value: int) -> Refused:
        if error.number not in (ETUNABLE, ERANGE):
            return error
        there = {each.name: each for each in await self.read_tunables()}
        if name not in there:
            return Refused(unknown("tunable of the policy", name, there))
        now = there[name]
        return Refused(
            f"{name}={value}: {now.minimum} to {now.maximum} are allowed ({now.meaning})"
        )

    async def set_attribute(self, pid: int, kind: AttributeKind, value: int) -> None:
        self._check_alive()
        word = kind.name.lower()
        what = f"{word} {value} of process {pid}"
        if pid == self._steer_pid:
            raise Refused(f"{what}: it obeys the monitor, and runs before all others in any case")
        least, most, *_ = ATTRIBUTES[word]
        if not least <= value <= most:
            raise Refused(f"{what}: {least} to {most} are allowed")
        await self._tell_of(pid, f"set {pid} {word} {value}", what)

    async def kill(self, pid: int) -> None:
        self._check_alive()
        if pid in self.own_pids:
            raise Refused(f"process {pid} is the machine's own: without it, the machine ends")
        await self._tell_of(pid, f"kill {pid}", f"kill {pid}")

    async def _tell_of(self, pid: int, command: str, what: str) -> None:
        try:
            await self._steering.tell(command, what)
        except GuestError as error:
            if error.number == ESRCH:
                raise Refused(f"{what}: there is no process {pid} any more") from None
            raise

    async def start_workload(self, name: str) -> int:
        self._check_alive()
        assert self._prepared
        command = self._prepared.disk.command(name)
        pid = await self._steering.tell(f"start {command}", f"workload {name}")
        if pid is None:
            raise Refused(f"workload {name}: it has started, but its PID is not known")
        return pid

    def _check_alive(self) -> None:
        if self._life not in (Life.RUNNING, Life.PAUSED):
            first = self._message.partition("\n")[0].rstrip(":;")
            raise Refused(first or "the machine is only starting")

    # --- time -------------------------------------------------------------------------------------

    async def pause(self) -> None:
        self._check_alive()
        if self._life is Life.PAUSED:
            return
        if self._control:
            await self._control.pause()
        else:
            self._process.signal(SIGSTOP)
        self._stand(Life.RUNNING, Life.PAUSED)
        self._steering.stopwatch.pause()

    async def resume(self) -> None:
        self._check_alive()
        if self._life is Life.RUNNING:
            return
        if self._control:
            await self._control.resume()
        else:
            self._process.signal(SIGCONT)
        self._stand(Life.PAUSED, Life.RUNNING)
        self._steering.stopwatch.resume()

    def _stand(self, before: Life, after: Life) -> None:
        """It may have ended meanwhile."""
        if self._life is before:
            self._life = after


def prepare(setup: Setup, folder: Path) -> Prepared:
    """All that takes time before the start: what is to be built and compiled.

    WrongUsage: there can be no such machine.
    """
    machine = kernel_machine(setup.machine)
    check_range("--cpus", setup.cpus, 1, machine.cpus_max)
    check_range("--memory", setup.memory_mib, *MEMORY_MIB)
    check_range("--tick", setup.tick_ns, *TICK_NS)
    catalogue = read_catalogue()
    check_choices(catalogue, (setup.policy,), dict(setup.settings))
    if len(boot_arguments(setup)) > BOOT_ARGUMENTS_MAX:
        raise WrongUsage(
            "--set: these are too many settings to be passed to the kernel at its start"
        )
    machine.release()
    parts = supply((*KERNEL_PARTS, *machine.tools))
    return Prepared(catalogue, parts, make_live_disk(setup, folder, parts))


def check_range(option: str, value: int, least: int, most: int) -> None:
    """WrongUsage: the value is not in it."""
    if not least <= value <= most:
        raise WrongUsage(f"{option} {value}: only {least} to {most} are possible")


def boot_arguments(setup: Setup) -> str:
    """What the kernel is told. There is no limit: it runs until somebody ends it."""
    settings = ",".join(f"{name}={value}" for name, value in setup.settings)
    words = {
        "policy": str(setup.policy),
        "set": settings,
        "tick": format_time(setup.tick_ns),
        "seed": str(setup.seed),
        "trace": TRACE_FILE,
        "trace-queues": "1",
        "trace-delay": TRACE_DELAY,
        "console-echo": "0",
        "run": '"steer"',
    }
    return " ".join(f"{name}={value}" for name, value in words.items() if value)

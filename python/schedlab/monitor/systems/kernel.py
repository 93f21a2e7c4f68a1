# SPDX-License-Identifier: MIT
"""Adapter of the schedlab kernel on QEMU or Spike: reads its trace and console, sends commands.

    machine ── trace.bin ──► Follower ──► take()
       ▲  └─── console ────► Console ───► take_log(), answers
       └────── commands ◄─── Steering

QEMU's time is the host's. Spike's time depends on the host's speed: Spike's time advances faster
than the host's time while all CPUs idle (by spinning), and slower while CPUs work.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import numpy as np

from schedlab.base.host.supervision import to_the_end
from schedlab.base.toolchain.policies import (
    Catalogue,
    check_choices,
    is_choice,
    read_catalogue,
    unknown,
)
from schedlab.errors import WrongUsage, parameter
from schedlab.machines import Boot, kernel_machine
from schedlab.machines.folder import TRACE_FILE, TYPED
from schedlab.machines.kernel import BOOT_ARGUMENTS_MAX, KERNEL_PARTS
from schedlab.machines.outcome import FAILED, SUCCESS, Outcome, outcome_of, tail_of
from schedlab.monitor.system import (
    Life,
    Records,
    Refused,
    Setup,
    Status,
    TunableNow,
)
from schedlab.monitor.systems.guest_errors import EPOLICY, ERANGE, ESRCH, ETUNABLE, GuestError
from schedlab.monitor.systems.live_branches import run_again
from schedlab.monitor.systems.live_disk import LiveDisk, make_live_disk
from schedlab.monitor.systems.qemu_control import QemuControl
from schedlab.monitor.systems.real_system import GuestSystem
from schedlab.monitor.systems.status_text import parse_status, parse_tunables
from schedlab.monitor.systems.steering import Steering
from schedlab.runs.parts import supply
from schedlab.runs.plan import MEMORY_MIB, TICK_NS
from schedlab.trace.format import AttributeKind
from schedlab.units import format_time
from schedlab.workload.model import ATTRIBUTES

INIT = 1
"""PID of the first process, which reaps orphans."""
START_PATIENCE_S = 120.0
TRACE_DELAY = "50ms"
"""Machine time until a record leaves the machine."""
_SILENT_S = 2.0
"""If the trace is silent for longer, the machine is not running."""
_LONG_TEXT = 20_000
"""Texts with more characters take milliseconds to parse, so a thread parses them."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,63}")
_INTEGERS = range(-(2**63), 2**63)
"""Signed 64-bit integers."""


@dataclass(frozen=True)
class Prepared:
    """The files that a machine starts from."""

    catalogue: Catalogue
    parts: Mapping[str, Path]
    disk: LiveDisk


class KernelSystem(GuestSystem):
    """See System. `folder` must exist and be empty."""

    name = "machine"

    def __init__(self, setup: Setup, folder: Path) -> None:
        super().__init__(setup, folder)
        self._machine = kernel_machine(setup.machine)
        self._steering = Steering(self._console, self._process.write)
        self._steering.explain_silence = self._explain_silence
        self._last_sequence = -1
        """Sequence number of the last record read."""
        self._prepared: Prepared | None = None
        self._boot: Boot | None = None

    @property
    def monitor_pids(self) -> frozenset[int]:
        return frozenset({INIT, self._steer_pid} - {0})

    @property
    def recorded_files(self) -> list[Path]:
        """Files added to recordings: the console input so far, if the machine can repeat it."""
        typed = self.folder / TYPED
        return [typed] if typed.exists() else []

    @property
    def no_branches(self) -> str:  # type: ignore[override]
        """See System."""
        return "" if self._machine.types_again else super().no_branches

    async def run_again(self, at_ns: int, files: Mapping[Path, str]) -> list[Outcome]:
        """Runs this machine again up to `at_ns`, and branches it there (`live_branches.run_again`).

        May be called only if `no_branches` is empty. Raises Refused if the machine has ended.
        """
        self._check_alive()
        assert self._boot
        return await run_again(self._machine, self._boot, self.folder / TYPED, at_ns, files)

    # --- beginning and end

    async def _begin(self) -> None:
        prepared = await to_the_end(asyncio.to_thread(prepare, self.setup, self.folder))
        self._prepared = prepared
        await self._start_machine(prepared)
        await self._await_ready(START_PATIENCE_S)
        if self._control:
            await self._control.connect()
        await self._await_trace(START_PATIENCE_S, "the machine writes no trace")

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
            live=True,
            keeps_typed=self._machine.types_again,
            control=control,
        )
        self._boot = boot
        await self._start(self._machine.command(boot), () if control is None else (control,))

    async def _watch(self) -> None:
        await super()._watch()
        if self._prepared:
            self._prepared.disk.image.unlink(missing_ok=True)

    def _last_words(self, status: int) -> tuple[Life, str]:
        if status == SUCCESS:
            return Life.ENDED, "it was ended" if self._ending else "the machine ended"
        return Life.FAILED, self._failure(status).message

    def _failure(self, status: int) -> Outcome:
        console = self._console.tail
        if status == FAILED:
            return Outcome("failed", "the machine has ended with a failure" + tail_of(console))
        return outcome_of(status, console)

    # --- output

    def _hear(self, data: bytes) -> None:
        self._steering_of().heard(data)

    def _look_at(self, records: Records) -> None:
        super()._look_at(records)
        if len(records):
            self._last_sequence = int(records["sequence"][-1])

    def _last_of(self, records: Records) -> Records:
        """Drops the records after the first gap.

        A killed machine loses records, and the records after a gap are not usable.
        """
        expected = self._last_sequence + 1 + np.arange(len(records))
        wrong = np.flatnonzero(records["sequence"] != expected % (1 << 32))
        return records[: wrong[0]] if len(wrong) else records

    def _explain_silence(self) -> str:
        """Returns why the machine does not answer, judging by its trace."""
        assert self._follower
        if self._follower.quiet_s > _SILENT_S:
            return "its trace has no records either: it hangs, or the host has no CPU time for it"
        return f"it runs, but its program `steer` (PID {self._steer_pid}) does not get to answer"

    # --- commands

    async def read_status(self) -> Status:
        text = await self._read_status_text()
        if len(text) < _LONG_TEXT:
            return parse_status(text)
        return await asyncio.to_thread(parse_status, text)

    async def read_tunables(self) -> tuple[TunableNow, ...]:
        return parse_tunables(await self._commanded().read("sched_tunables"))

    async def set_policy(self, policy: str) -> None:
        self._check_alive()
        what = f"policy {policy}"
        if not (is_choice(policy) or policy.isdecimal()):
            raise Refused(f"{what}: expected POLICY or POLICY:PRESET")
        try:
            await self._steering_of().execute(f"write sched_status {policy}", what)
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
            raise Refused(f"{what}: expected a tunable and a 64-bit number")
        try:
            await self._steering_of().execute(f"write sched_tunables {name} {value}", what)
        except GuestError as error:
            raise await self._tunable_refused(error, name, value) from None

    async def _tunable_refused(self, error: GuestError, name: str, value: int) -> Refused:
        if error.number not in (ETUNABLE, ERANGE):
            return error
        by_name = {tunable.name: tunable for tunable in await self.read_tunables()}
        if name not in by_name:
            return Refused(unknown("tunable of the policy", name, by_name))
        now = by_name[name]
        return Refused(
            f"{name}={value}: out of range; choose {now.minimum} to {now.maximum} ({now.meaning})"
        )

    async def set_attribute(self, pid: int, kind: AttributeKind, value: int) -> None:
        self._check_alive()
        word = kind.name.lower()
        what = f"{word} {value} of process {pid}"
        if pid == self._steer_pid:
            raise Refused(f"{what}: it belongs to the monitor and always runs first")
        limits = ATTRIBUTES[word]
        if not limits.least <= value <= limits.most:
            raise Refused(f"{what}: out of range; choose {limits.least} to {limits.most}")
        await self._send_about(pid, f"set {pid} {word} {value}", what)

    async def kill(self, pid: int) -> None:
        self._check_alive()
        if pid in self.monitor_pids:
            raise Refused(
                f"process {pid}: the machine needs it and ends without it; choose another"
            )
        await self._send_about(pid, f"kill {pid}", f"kill {pid}")

    async def _send_about(self, pid: int, command: str, what: str) -> None:
        try:
            await self._steering_of().execute(command, what)
        except GuestError as error:
            if error.number == ESRCH:
                raise Refused(f"{what}: process {pid} has ended") from None
            raise

    async def start_workload(self, name: str) -> int:
        self._check_alive()
        assert self._prepared
        return await self._started(self._prepared.disk.command(name), name)

    # --- time

    async def _stop_time(self) -> None:
        if self._control:
            await super()._stop_time()
        else:
            self._process.signal(SIGSTOP)

    async def _go_on(self) -> None:
        if self._control:
            await super()._go_on()
        else:
            self._process.signal(SIGCONT)


def prepare(setup: Setup, folder: Path) -> Prepared:
    """Builds and compiles everything that a machine needs.

    Raises WrongUsage if there is no such machine.
    """
    machine = kernel_machine(setup.machine)
    check_range("cpus", setup.cpus, 1, machine.cpus_max)
    check_range("memory_mib", setup.memory_mib, *MEMORY_MIB)
    check_range("tick_ns", setup.tick_ns, *TICK_NS)
    catalogue = read_catalogue()
    check_choices(catalogue, (setup.policy,), dict(setup.settings))
    if len(boot_arguments(setup)) > BOOT_ARGUMENTS_MAX:
        raise WrongUsage(
            "too many settings for the kernel's boot arguments",
            what="`settings=`",
            fix="set some of them later, in the page",
        )
    machine.release()
    parts = supply((*KERNEL_PARTS, *machine.tools))
    return Prepared(catalogue, parts, make_live_disk(setup, folder, parts))


def check_range(name: str, value: int, least: int, most: int) -> None:
    """Raises WrongUsage unless least <= value <= most."""
    if not least <= value <= most:
        raise WrongUsage(
            "out of range", what=parameter(name, value), fix=f"choose {least} to {most}"
        )


def boot_arguments(setup: Setup) -> str:
    """Returns the kernel's boot arguments.

    There is no time limit: the machine runs until it is ended.
    """
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

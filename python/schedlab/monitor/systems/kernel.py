# SPDX-License-Identifier: MIT
"""Adapter of the schedlab kernel on QEMU or Spike: reads its trace and console, sends commands.

    machine ── trace.bin ──► Follower ──► take()
       ▲  └─── console ────► Console ───► take_log(), answers
       └────── commands ◄─── Steering

QEMU's time is the host's. Spike's time depends on the host's speed: Spike's time advances faster
than the host's time while all CPUs idle (by spinning), and slower while CPUs work.
"""

import asyncio
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import numpy as np

from schedlab.base.host.supervision import await_completely, supervise_async
from schedlab.base.toolchain.policies import (
    describe_unknown_name,
)
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.machines import Boot, Branching, KernelMachine, kernel_machine
from schedlab.machines.folder import CONSOLE_FILE, TRACE_FILE, TYPED_FILE
from schedlab.machines.kernel import BOOT_ARGUMENTS_MAX, KERNEL_PARTS
from schedlab.machines.outcome import (
    FAILED,
    SUCCESS,
    Outcome,
    describe_tail,
    interpret_exit,
    read_console,
)
from schedlab.monitor.system import (
    Life,
    Records,
    Refused,
    Setup,
    Status,
)
from schedlab.monitor.systems.compiled_palette import CompiledPalette, compile_palette
from schedlab.monitor.systems.qemu_control import QemuControl
from schedlab.monitor.systems.real_system import GuestSystem
from schedlab.monitor.systems.status_text import parse_status
from schedlab.monitor.systems.steering import ERANGE, ESRCH, ETUNABLE, GuestError, Steering
from schedlab.runs.parts import build_parts
from schedlab.trace.format import AttributeKind
from schedlab.units import format_time
from schedlab.workload.loading import add_to_disk, check_capacity

DISK_FILE = "disk.img"
INIT_PID = 1
"""PID of the first process, which reaps orphans."""
START_PATIENCE_S = 120.0
TRACE_DELAY = "50ms"
"""Machine time until a record leaves the machine."""
_SILENCE_MAX_S = 2.0
"""If the trace is silent for this many seconds, the machine is considered stopped or hung."""
_LONG_TEXT_CHARACTERS = 20_000
"""Texts with more characters take milliseconds to parse, so a thread parses them."""
_TUNABLE_NAME_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,63}")
_TUNABLE_RANGE = range(-(2**63), 2**63)
"""Signed 64-bit integers."""


@dataclass(frozen=True)
class MachineFiles:
    """Everything that a machine is started with."""

    parts: Mapping[str, Path]
    disk: Path
    """The standard disk, with the palette's workloads in addition."""
    workloads: CompiledPalette


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
        self._prepared: MachineFiles | None = None
        self._boot: Boot | None = None

    @property
    def monitor_pids(self) -> frozenset[int]:
        return frozenset({INIT_PID, self._steer_pid} - {0})

    @property
    def recorded_files(self) -> list[Path]:
        """Extra files for recordings: the console input so far, if it allows repeating the run."""
        typed_file = self.folder / TYPED_FILE
        return [typed_file] if typed_file.exists() else []

    @property
    def why_no_branches(self) -> str:  # type: ignore[override]
        """See System."""
        return "" if self._machine.can_repeat_input else super().why_no_branches

    async def run_again(self, at_ns: int, files: Mapping[Path, str]) -> list[Outcome]:
        """Repeats this machine from its boot up to `at_ns`, and runs one branch per entry of
        `files`.

        See `live_branches.run_again`. Call only if `no_branches` is empty. Raises Refused if the
        machine has ended.
        """
        self._check_alive()
        assert self._boot
        return await run_again(self._machine, self._boot, self.folder / TYPED_FILE, at_ns, files)

    # --- beginning and end

    async def _begin(self) -> None:
        prepared = await await_completely(
            asyncio.to_thread(prepare_machine, self.setup, self.folder)
        )
        self._prepared = prepared
        await self._start_machine(prepared)
        await self._await_ready(START_PATIENCE_S)
        if self._control:
            await self._control.connect()
        await self._await_trace(
            START_PATIENCE_S, "the machine writes no trace; read its console, and try again"
        )

    async def _start_machine(self, prepared: MachineFiles) -> None:
        setup = self.setup
        self._control = QemuControl() if self._machine.controlled else None
        control_descriptor = self._control.qemu_socket.fileno() if self._control else None
        boot = Boot(
            prepared.parts["kernel"],
            prepared.disk,
            setup.cpus,
            setup.memory_mib,
            boot_arguments(setup),
            live=True,
            keeps_typed=self._machine.can_repeat_input,
            control=control_descriptor,
        )
        self._boot = boot
        await self._start(
            self._machine.command(boot), () if control_descriptor is None else (control_descriptor,)
        )

    async def _watch(self) -> None:
        await super()._watch()
        if self._prepared:
            self._prepared.disk.unlink(missing_ok=True)

    def _final_state(self, status: int) -> tuple[Life, str]:
        if status == SUCCESS:
            return Life.ENDED, "it was ended" if self._end_requested else "the machine ended"
        return Life.FAILED, self._failure(status).message

    def _failure(self, status: int) -> Outcome:
        """Returns the outcome of a machine that ended with an unexpected exit status."""
        console = self._console.tail
        if status == FAILED:
            return Outcome(
                "failed", "the machine has ended with a failure" + describe_tail(console)
            )
        return interpret_exit(status, console)

    # --- output

    def _receive_output(self, data: bytes) -> None:
        self._started_steering().receive(data)

    def _inspect_records(self, records: Records) -> None:
        super()._inspect_records(records)
        if len(records):
            self._last_sequence = int(records["sequence"][-1])

    def _usable_records(self, records: Records) -> Records:
        """Returns the records before the first gap.

        A machine that is killed loses records, and records after a gap cannot be interpreted.
        """
        expected = self._last_sequence + 1 + np.arange(len(records))
        gap_indices = np.flatnonzero(records["sequence"] != expected % (1 << 32))
        return records[: gap_indices[0]] if len(gap_indices) else records

    def _explain_silence(self) -> str:
        """Returns the probable reason why the machine does not answer, judging by its trace."""
        assert self._follower
        if self._follower.quiet_s > _SILENCE_MAX_S:
            return "its trace has no records either: it hangs, or the host has no CPU time for it"
        return f"it runs, but its program `steer` (PID {self._steer_pid}) does not get to answer"

    # --- commands

    async def read_status(self) -> Status:
        """Returns the parsed content of the kernel's file sched_status."""
        text = await self._read_status_text()
        if len(text) < _LONG_TEXT_CHARACTERS:
            return parse_status(text)
        return await asyncio.to_thread(parse_status, text)

    async def set_policy(self, policy: str) -> None:
        self._check_alive()
        await self._started_steering().execute(f"write sched_status {policy}", f"policy {policy}")

    async def set_tunable(self, name: str, value: int) -> None:
        self._check_alive()
        action = f"{name}={value}"
        if not _TUNABLE_NAME_PATTERN.fullmatch(name) or value not in _TUNABLE_RANGE:
            raise Refused(f"{action}: expected a tunable and a 64-bit number, such as slice=3")
        try:
            await self._started_steering().execute(f"write sched_tunables {name} {value}", action)
        except GuestError as error:
            raise await self._explain_tunable_refusal(error, name, value) from None

    async def _explain_tunable_refusal(self, error: GuestError, name: str, value: int) -> Refused:
        if error.number not in (ETUNABLE, ERANGE):
            return error
        by_name = {tunable.name: tunable for tunable in await self.read_tunables()}
        if name not in by_name:
            return Refused(describe_unknown_name("tunable of the policy", name, by_name))
        now = by_name[name]
        return Refused(
            f"{name}={value}: out of range; choose {now.minimum} to {now.maximum} ({now.meaning})"
        )

    async def set_attribute(self, pid: int, kind: AttributeKind, value: int) -> None:
        self._check_alive()
        word = kind.name.lower()
        action = f"{word} {value} of process {pid}"
        if pid == self._steer_pid:
            raise Refused(f"{action}: this process executes the monitor's commands; choose another")
        await self._execute_for_process(pid, f"set {pid} {word} {value}", action)

    async def kill(self, pid: int) -> None:
        self._check_alive()
        if pid in self.monitor_pids:
            raise Refused(
                f"process {pid}: the machine needs it and ends without it; choose another"
            )
        await self._execute_for_process(pid, f"kill {pid}", f"kill {pid}")

    async def _execute_for_process(self, pid: int, command: str, action: str) -> None:
        try:
            await self._started_steering().execute(command, action)
        except GuestError as error:
            if error.number == ESRCH:
                raise Refused(f"{action}: process {pid} has ended; choose another") from None
            raise

    async def start_workload(self, name: str) -> int:
        self._check_alive()
        assert self._prepared
        file = self._prepared.workloads.file(name)
        return await self._start_workload_command(f"play /{file.name}", name)

    # --- time

    async def _stop_time(self) -> None:
        if self._control:
            await super()._stop_time()
        else:
            self._process.signal(SIGSTOP)

    async def _resume_time(self) -> None:
        if self._control:
            await super()._resume_time()
        else:
            self._process.signal(SIGCONT)


def prepare_machine(setup: Setup, folder: Path) -> MachineFiles:
    """Builds the kernel and programs, and compiles the workloads onto a disk.

    Raises WrongUsage if a requested workload does not fit the machine.
    """
    machine = kernel_machine(setup.machine)
    if len(boot_arguments(setup)) > BOOT_ARGUMENTS_MAX:
        raise WrongUsage(
            "too many settings for the kernel's boot arguments",
            what="`settings=`",
            fix="set some of them later, in the page",
        )
    machine.release()
    parts = build_parts((*KERNEL_PARTS, *machine.tools))
    check = partial(check_capacity, memory_mib=setup.memory_mib)
    workloads = compile_palette(setup, folder, setup.tick_ns, check)
    disk = folder / DISK_FILE
    add_to_disk(disk, parts["disk"], list(workloads.files.values()), parts["mkfs"])
    return MachineFiles(parts, disk, workloads)


def boot_arguments(setup: Setup) -> str:
    """Returns the kernel's boot arguments, without a time limit."""
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


BRANCH_LENGTH_NS = 5_000_000_000
"""Length (ns) of a branch, which then ends automatically."""
_END_COMMAND = r"@@ 1000000 end\x0a"
"""The command that ends a branch."""
_LINE_END = r"\x0a"
_TIMEOUT_S = 120.0
"""Host seconds after which the repetition is considered hung."""


def input_until(text: str, at_ns: int) -> str:
    """Returns the console input before a time (ns), cut after a whole command, plus a later `end`."""
    input_lines: list[str] = []
    for line in text.splitlines():
        if int(line.partition(" ")[0]) >= at_ns and (
            not input_lines or input_lines[-1].endswith(_LINE_END)
        ):
            break
        input_lines.append(line)
    return "".join(
        f"{line}\n" for line in [*input_lines, f"{at_ns + BRANCH_LENGTH_NS} {_END_COMMAND}"]
    )


async def run_again(
    machine: KernelMachine, boot: Boot, typed: Path, at_ns: int, files: Mapping[Path, str]
) -> list[Outcome]:
    """Boots a machine again with the same input, and runs its branches from `at_ns` on.

    `files` maps each branch's folder to the commands that its kernel receives at `at_ns`. Raises
    SchedlabError if the machine did not reach that time.
    """
    assert isinstance(machine, Branching)
    with tempfile.TemporaryDirectory(prefix="schedlab-") as name:
        path = Path(name)
        repeated_input = path / TYPED_FILE
        repeated_input.write_text(input_until(typed.read_text(), at_ns))
        command = machine.command(replace(boot, typed=repeated_input, keeps_typed=False))
        command = machine.branched(command, at_ns, files, len(files))
        status = await supervise_async(command, path, path / CONSOLE_FILE, _TIMEOUT_S)
        if status != 0:
            why = describe_tail(read_console(path / CONSOLE_FILE))
            raise SchedlabError(
                f"the repeated machine did not reach this moment; choose an earlier one{why}"
            )
    statuses = {folder: machine.branch_status(folder) for folder in files}
    return [
        Outcome("hung", "it did not end by itself")
        if status is None
        else interpret_exit(status, read_console(folder / CONSOLE_FILE))
        for folder, status in statuses.items()
    ]

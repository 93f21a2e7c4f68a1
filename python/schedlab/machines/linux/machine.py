# SPDX-License-Identifier: MIT
"""Runs schedlab's policies on a Linux kernel in QEMU, by sched_ext. Each run boots a guest."""

from __future__ import annotations

import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.base.host.disk import TRACE_LIMIT_VARIABLE, trace_limit_mib
from schedlab.base.toolchain.needs import LINUX_GUEST_PROGRAMS
from schedlab.base.toolchain.policies import FAIR_POLICY
from schedlab.base.toolchain.tools import parse_version
from schedlab.errors import MachineUnfit, WrongUsage, format_parameter
from schedlab.machines.folder import BINARY_WORKLOAD_FILE, TRACE_FILE
from schedlab.machines.linux.installed_schedulers import (
    GUEST_START_PROGRAM,
    files_for_guest,
    find_scheduler_program,
    scheduler_comment,
)
from schedlab.machines.linux.topology import topology_options
from schedlab.machines.outcome import Outcome, describe_tail, interpret_exit, read_console
from schedlab.machines.published import is_published
from schedlab.machines.spec import BuiltParts, Machine, Release, RunSpec
from schedlab.paths import ROOT
from schedlab.units import format_time
from schedlab.workload.loading import check_channels

if TYPE_CHECKING:
    from schedlab.machines.linux.guest import GuestJob

_MEMORY_MIN_MIB = 512
_CPUS_MAX = 16
WORKLOAD_NAME = "workload"
"""Name of the compiled workload file in the guest."""
_POLICY_FAILED = {
    103: "the kernel did not load the policy; `./schedlab check NAME` explains why",
    104: "the kernel unloaded the policy while the workload ran; correct what its server reports",
}
"""Messages for exit statuses of linux/guest/run.sh."""
_SERVER_ENDED = 105
"""Exit status of run.sh if the server ended before the workload."""
_TRACE_FULL = "the trace reached its limit"
"""The server's message about a full trace (linux/loader/trace.c)."""
_TRACE_FULL_MESSAGE = (
    "the trace has reached its limit and the run was ended; what was recorded until then is kept. Raise"
    f" the limit with {TRACE_LIMIT_VARIABLE}=MIB, or a guest's --memory, half of which a trace may use"
)
_SERVER, _OUTPUT = "server", "output"
"""Files in the guest with the output of the policy server and of the workload."""
_FAIR_QEMU_VERSION = (8, 1)
"""First QEMU version that gives all CPUs equal turns."""
_LOADING_SECONDS = 200
"""Guest seconds for loading a policy; more than the kernel allows itself."""
_HOST_SECONDS_PER_GUEST_SECOND_MAX = 20
"""Host seconds that one guest second may take on a busy host."""


class Linux(Machine):
    """A repeatable Linux guest: each instruction takes the same time; see Machine."""

    name = "linux"
    repeatable = True
    parts: tuple[str, ...] = ("linux_kernel", "linux_image", "linux_programs")
    tools = ()
    needs: tuple[str, ...] = LINUX_GUEST_PROGRAMS
    cpus_max = _CPUS_MAX
    tick_ns = 4_000_000
    """Tick (ns) of the guest's kernel, whose HZ is 250."""
    begin_s = 40
    """Earliest guest time (s) for the workload's start; every policy is loaded by then.

    Waiting costs nothing, because instruction-counted time skips idle periods.
    """
    memory_mib = 1024
    """Default memory. It includes room for the trace, which stays in the guest until the run has ended."""
    programs: frozenset[str] | None = None
    shape_note = "its kernel and policies read the shape, but work takes what it takes here"

    @property
    def note(self) -> str:
        uneven = "" if self._has_fair_qemu() else ", which serves several CPUs unevenly"
        return f"repeatable (instruction-counted time), emulated by QEMU{uneven}"

    def _mode_note(self, mode: str) -> str:
        """Returns the note about a mode; "" if the guest can run in one mode only."""
        return ""

    def _has_fair_qemu(self) -> bool:
        """Returns whether QEMU gives all CPUs equal turns.

        Before version 8.1, QEMU may skip a CPU for a while when it counts instructions (docs/linux-
        measuring.md).
        """
        try:
            release = self.release()
        except MachineUnfit:
            return True
        return parse_version(release.version) >= _FAIR_QEMU_VERSION

    def check(self, run: RunSpec) -> None:
        if run.tick_ns != self.tick_ns:
            raise WrongUsage(
                f"the Linux kernel has a fixed tick of {format_time(self.tick_ns)}",
                what=format_parameter("tick_ns", run.tick_ns),
                fix="leave it out",
            )
        if run.delays:
            raise WrongUsage(
                f"{format_parameter('machine', self.name)} is a real kernel, which takes no "
                "simulated delays",
                what="`delays=`",
                fix="leave it out, or use spike, qemu or sim",
            )
        topology_options(run.shape, run.cpus, run.memory_mib)
        if run.memory_mib < _MEMORY_MIN_MIB:
            raise WrongUsage(
                "too little for Linux, its files and the trace",
                what=format_parameter("memory_mib", run.memory_mib),
                fix=f"choose {_MEMORY_MIN_MIB} or more",
            )
        if not run.file and not run.workload.strip():
            raise WrongUsage(
                "missing",
                what="`workload=`",
                fix="name a program of the guest, such as mixed or 'sysbench cpu run'",
            )
        if not run.file and not run.workload.isprintable():
            raise WrongUsage(
                "contains a line break or a character that is not printable",
                what=format_parameter("workload", run.workload),
                fix="use one line of printable characters",
            )
        if not run.file:
            from schedlab.machines.linux.commands import check_command

            check_command(run.workload, self.commands())
        if run.file:
            check_channels(run.workload, run.file)
        is_foreign = run.policy.name == FAIR_POLICY.name or is_published(run.policy)
        if run.file and run.file.groups and is_foreign:
            raise WrongUsage(
                f"{run.workload} has groups of tasks, and Linux's own schedulers know "
                "only control groups",
                what=format_parameter("policy", run.policy),
                fix="name one of schedlab's policies, or leave out the groups",
            )

    def commands(self) -> frozenset[str] | None:
        """Returns the programs of the guest other than schedlab's, or None if unknown."""
        from schedlab.machines.linux.commands import guest_commands

        return guest_commands()

    def arguments(self, run: RunSpec) -> str:
        """Returns the arguments of linux/guest/run.sh, quoted for a shell."""
        seconds = f"{run.limit_ns / 1e9:g}"
        words = [str(run.seed), seconds, str(run.policy), guest_command(run)]
        for name, value in run.settings:
            words += ["--set", f"{name}={value}"]
        words += ["--ignore-limits"] if run.ignore_limits else []
        words += ["--trace-limit", str(trace_limit_mib())]
        return shlex.join(words) + (
            scheduler_comment(run.policy) if is_published(run.policy) else ""
        )

    def release(self) -> Release:
        from schedlab.machines.linux.guest import find_qemu

        return find_qemu()

    def prepare_command(
        self, run: RunSpec, parts: BuiltParts, folder: Path, scratch: Path
    ) -> list[str]:
        from schedlab.machines.linux.guest import assemble
        from schedlab.machines.linux.image import base_image
        from schedlab.machines.linux.packages import packages

        job = self.job(run, parts, folder, scratch)
        base = base_image(
            packages(), job.programs
        )  # linux_image contains the kernel as a program that boots faster
        return assemble(job, folder, parts["linux_kernel"], base).command

    def job(self, run: RunSpec, parts: BuiltParts, folder: Path, scratch: Path) -> GuestJob:
        """Returns the guest's job."""
        from schedlab.machines.linux.guest import GuestJob
        from schedlab.machines.linux.packages import packages

        files: dict[str, bytes | Path] = {"programs.tar": parts["linux_programs"]}
        if run.file:
            files[WORKLOAD_NAME] = folder / BINARY_WORKLOAD_FILE
        begin = f"tar -xf programs.tar && rm programs.tar && export BEGIN_AT={self.begin_s}"
        if is_published(run.policy):
            files |= files_for_guest(find_scheduler_program(run.policy), packages().kernel)
            begin += f" SCHEDULER={GUEST_START_PROGRAM}"
        return GuestJob(
            files=files,
            script=f"{begin} && exec sh run.sh {self.arguments(run)}\n",
            cpus=run.cpus,
            memory_mib=run.memory_mib,
            shape=run.shape,
            repeatable=self.repeatable,
            seed=run.seed,
            limit_s=self.begin_s + run.limit_ns / 1e9 + _LOADING_SECONDS,
            programs=find_benchmarks(run.workload),
        )

    def outcome(self, status: int, folder: Path, scratch: Path, console: Path) -> Outcome:
        """Returns the outcome; appends the server's and the workload's output to the console log."""
        from schedlab.machines.linux import guest

        mode = guest.REPEATABLE if self.repeatable else guest.FREE_RUNNING
        guest_outcome = guest.read_outcome(guest.PreparedGuest([], mode, 0), folder, status)
        result = self.collect(
            guest_outcome.status, guest_outcome.message, guest_outcome.results, folder, console
        )
        guest.remove_temporary_files(folder)
        return replace(result, note=self._mode_note(guest_outcome.mode))

    def collect(
        self, status: int, message: str, results: Path, folder: Path, console: Path
    ) -> Outcome:
        """Returns the outcome of linux/guest/run.sh from the files in `results`, and deletes that
        folder.

        `message`: why the script did not finish; "" if it did.
        """
        server, output = (_read_if_exists(results / name) for name in (_SERVER, _OUTPUT))
        with console.open("ab") as log:
            log.writelines(b"\n" + part for part in (server, output) if part)
        trace = results / TRACE_FILE
        if trace.is_file():
            shutil.move(trace, folder / TRACE_FILE)
        shutil.rmtree(results)
        if status in _POLICY_FAILED:
            why = describe_tail(server.decode(errors="replace"), "its server's words end")
            return Outcome("failed", _POLICY_FAILED[status] + why)
        if status == _SERVER_ENDED:
            words = server.decode(errors="replace")
            if _TRACE_FULL in words:
                return Outcome("disk", _TRACE_FULL_MESSAGE)
            why = "the policy's server ended before the workload; correct what it reports"
            return Outcome("failed", why + describe_tail(words, "its words end"))
        return _guest_outcome(status, read_console(console), message)

    def _guest_mode(self) -> str:
        from schedlab.machines.linux.guest import GuestJob, choose_mode

        return choose_mode(GuestJob(repeatable=self.repeatable))

    def host_cpus(self, cpus: int) -> int:
        return 1

    def host_limit(self, cpus: int, limit_ns: int) -> float:
        return 300 + _HOST_SECONDS_PER_GUEST_SECOND_MAX * limit_ns / 1e9


class FreeLinux(Linux):
    """A Linux guest whose time is the host's; its runs are not repeatable. See Machine."""

    name = "linux-free"
    repeatable = False
    begin_s = 0

    @property
    def note(self) -> str:
        return self._mode_note(self._guest_mode())

    def _mode_note(self, mode: str) -> str:
        from schedlab.machines.linux.guest import KVM

        how = "on the host's own CPUs (KVM)" if mode == KVM else "emulated"
        return f"free-running, {how}: not repeatable"

    def host_cpus(self, cpus: int) -> int:
        from schedlab.machines.linux.guest import KVM

        return cpus if self._guest_mode() == KVM else 1


def _read_if_exists(path: Path) -> bytes:
    """Returns a file's content; b"" if it was not written."""
    return path.read_bytes() if path.is_file() else b""


def _guest_outcome(status: int, console: str, message: str) -> Outcome:
    """Returns the outcome of a guest. `message`: why the guest's script did not finish; "" if it did."""
    result = interpret_exit(status, console)
    if result.status == "limit" and message:
        return Outcome("hung", message)
    return Outcome(result.status, message) if message else result


def guest_command(run: RunSpec) -> str:
    """Returns the guest's command; programs other than schedlab's run under `measure`."""
    if run.file:
        return f"play {WORKLOAD_NAME}"
    words = run.workload.split()
    return run.workload if words[0] in guest_programs() else shlex.join(["measure", run.workload])


def find_benchmarks(workload: str) -> tuple[str, ...]:
    """Returns the benchmarks that a command names."""
    from schedlab.machines.linux.image import BENCHMARKS

    words = set(re.findall(r"[\w.+-]+", workload))
    return tuple(name for name in BENCHMARKS if name in words)


def guest_programs() -> set[str]:
    """Returns the workloads built for Linux, which mark their measured window themselves."""
    folders = (ROOT / "workloads", ROOT / "workloads" / "linux")
    return {path.stem for folder in folders for path in folder.glob("*.c")}

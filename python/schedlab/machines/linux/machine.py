# SPDX-License-Identifier: MIT
"""Runs schedlab's policies on a real Linux kernel in QEMU through sched_ext, with a guest per run."""

from __future__ import annotations

import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.base.host.disk import TRACE_LIMIT, trace_limit_mib
from schedlab.base.toolchain.needs import LINUX_GUEST
from schedlab.base.toolchain.policies import FAIR
from schedlab.base.toolchain.tools import version_in
from schedlab.errors import MachineUnfit, WrongUsage, parameter
from schedlab.machines.folder import TRACE_FILE, WORKLOAD_PLAYED
from schedlab.machines.linux.installed_schedulers import (
    IN_GUEST,
    files_for_guest,
    is_published,
    program_of,
    remark_on,
)
from schedlab.machines.linux.topology import topology_options
from schedlab.machines.outcome import Outcome, outcome_of, read_console, tail_of
from schedlab.machines.spec import Machine, Parts, Release, RunSpec
from schedlab.paths import ROOT
from schedlab.units import format_time
from schedlab.workload.loading import CHANNELS_MAX

if TYPE_CHECKING:
    from schedlab.machines.linux.guest import GuestJob

_LEAST_MEMORY_MIB = 512
_CPUS_MAX = 16
WORKLOAD = "workload"
"""The compiled workload file in the guest."""
_POLICY_FAILED = {
    103: "the policy could not be brought to the kernel",
    104: "the kernel threw the policy out while the workload ran",
}
"""Messages by exit status of linux/guest/run.sh."""
_SERVER_ENDED = 105
"""Exit status of run.sh if the server ended before the workload."""
_TRACE_FULL = "the trace has reached its limit"
"""The server's message about a full trace (linux/loader/trace.c)."""
_TRACE_FULL_MESSAGE = (
    "the trace has reached its limit and the run was ended; what was recorded until then is kept. Raise"
    f" the limit of traces with {TRACE_LIMIT}=MIB, or a guest's --memory, a trace uses at most half of it"
)
_SERVER, _OUTPUT = "server", "output"
"""Output files of the policy server and of the workload."""
_EVEN_QEMU = (8, 1)
_LOADING_SECONDS = 200
"""Guest seconds; more than the kernel's maximum for loading a policy."""
_SLOWEST = 20
"""Seconds of a busy host per guest second."""


class Linux(Machine):
    """See Machine. Each instruction takes the same time, which makes runs repeatable."""

    name = "linux"
    repeatable = True
    parts: tuple[str, ...] = ("linux_kernel", "linux_image", "linux_programs")
    tools = ()
    needs: tuple[str, ...] = LINUX_GUEST
    cpus_max = _CPUS_MAX
    tick_ns = 4_000_000
    """Tick (ns) of the guest's kernel, whose HZ is 250."""
    begin_s = 40
    """Earliest guest time (s) of the workload's start; every policy is loaded by then.

    Waiting is free, because instruction-counted time skips idle periods.
    """
    memory_mib = 1024
    """Includes the memory for the trace, which stays in the guest until the run has ended."""
    programs: frozenset[str] | None = None
    shape_note = "its kernel and policies read the shape, but work takes what it takes here"

    @property
    def note(self) -> str:
        uneven = "" if self._serves_evenly() else ", which serves several CPUs unevenly"
        return f"repeatable (instruction-counted time), emulated by QEMU{uneven}"

    def _note_of(self, mode: str) -> str:
        """Returns the note of a run in this mode; "" if there is only one mode."""
        return ""

    def _serves_evenly(self) -> bool:
        """Returns whether QEMU serves all CPUs evenly.

        Before 8.1, it may skip a CPU for a while when it counts instructions
        (docs/linux-measuring.md).
        """
        try:
            release = self.release()
        except MachineUnfit:
            return True
        return version_in(release.version) >= _EVEN_QEMU

    def check(self, run: RunSpec) -> None:
        if run.tick_ns != self.tick_ns:
            raise WrongUsage(
                f"the Linux kernel has a fixed tick of {format_time(self.tick_ns)}",
                what=parameter("tick_ns", run.tick_ns),
                fix="leave it out",
            )
        if run.delays:
            raise WrongUsage(
                f"{parameter('machine', self.name)} is a real kernel, which takes no "
                "simulated delays",
                what="`delays=`",
                fix="leave it out, or use spike, qemu or sim",
            )
        topology_options(run.shape, run.cpus, run.memory_mib)
        if run.memory_mib < _LEAST_MEMORY_MIB:
            raise WrongUsage(
                f"too little: Linux, its files and the trace need {_LEAST_MEMORY_MIB} MiB",
                what=parameter("memory_mib", run.memory_mib),
                fix="name more",
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
                what=parameter("workload", run.workload),
                fix="use one line of printable characters",
            )
        if not run.file:
            from schedlab.machines.linux.commands import check_command

            check_command(run.workload, self.commands())
        if run.file and len(run.file.channels) >= CHANNELS_MAX:
            raise WrongUsage(
                f"needs {len(run.file.channels) + 1} channels, but `play` has {CHANNELS_MAX}",
                what=parameter("workload", run.workload),
                fix="use `machine='sim'`, which has more",
            )
        is_foreign = run.policy.name == FAIR.name or is_published(run.policy)
        if run.file and run.file.groups and is_foreign:
            raise WrongUsage(
                f"{run.workload} has groups of tasks, which Linux's own schedulers take "
                "only from control groups",
                what=parameter("policy", run.policy),
                fix="name a built-in policy",
            )

    def commands(self) -> frozenset[str] | None:
        """Returns the programs of the guest other than schedlab's, or None if unknown."""
        from schedlab.machines.linux.commands import guest_commands

        return guest_commands()

    def arguments(self, run: RunSpec) -> str:
        """Returns the arguments of linux/guest/run.sh, quoted for a shell."""
        seconds = f"{run.limit_ns / 1e9:g}"
        words = [str(run.seed), seconds, str(run.policy), command_of(run)]
        for name, value in run.settings:
            words += ["--set", f"{name}={value}"]
        words += ["--ignore-limits"] if run.ignore_limits else []
        words += ["--trace-limit", str(trace_limit_mib())]
        return shlex.join(words) + (remark_on(run.policy) if is_published(run.policy) else "")

    def release(self) -> Release:
        from schedlab.machines.linux.guest import find_qemu

        return find_qemu()

    def start(self, run: RunSpec, parts: Parts, folder: Path, scratch: Path) -> list[str]:
        from schedlab.machines.linux.guest import assemble
        from schedlab.machines.linux.image import base_image
        from schedlab.machines.linux.packages import packages

        job = self.job(run, parts, folder, scratch)
        base = base_image(packages(), job.programs)  # a part of linux_image, which boots faster
        return assemble(job, folder, parts["linux_kernel"], base).command

    def job(self, run: RunSpec, parts: Parts, folder: Path, scratch: Path) -> GuestJob:
        """Returns the guest's job."""
        from schedlab.machines.linux.guest import GuestJob
        from schedlab.machines.linux.packages import packages

        files: dict[str, bytes | Path] = {"programs.tar": parts["linux_programs"]}
        if run.file:
            files[WORKLOAD] = folder / WORKLOAD_PLAYED
        begin = f"tar -xf programs.tar && rm programs.tar && export BEGIN_AT={self.begin_s}"
        if is_published(run.policy):
            files |= files_for_guest(program_of(run.policy), packages().kernel)
            begin += f" SCHEDULER={IN_GUEST}"
        return GuestJob(
            files=files,
            script=f"{begin} && exec sh run.sh {self.arguments(run)}\n",
            cpus=run.cpus,
            memory_mib=run.memory_mib,
            shape=run.shape,
            repeatable=self.repeatable,
            seed=run.seed,
            limit_s=self.begin_s + run.limit_ns / 1e9 + _LOADING_SECONDS,
            programs=benchmarks_in(run.workload),
        )

    def outcome(self, status: int, folder: Path, scratch: Path, console: Path) -> Outcome:
        """Returns the outcome; appends the server's and the workload's output to the console log."""
        from schedlab.machines.linux import guest

        mode = guest.REPEATABLE if self.repeatable else guest.FREE_RUNNING
        ended = guest.outcome(guest.Prepared([], mode, 0), folder, status)
        result = self.collect(ended.status, ended.message, ended.results, folder, console)
        guest.clean(folder)
        return replace(result, note=self._note_of(ended.mode))

    def collect(
        self, status: int, message: str, results: Path, folder: Path, console: Path
    ) -> Outcome:
        """Returns the outcome of linux/guest/run.sh from its files in `results`, which is deleted.

        `message` says why the script did not finish; "" if it did.
        """
        server, output = (_content(results / name) for name in (_SERVER, _OUTPUT))
        with console.open("ab") as log:
            log.writelines(b"\n" + part for part in (server, output) if part)
        trace = results / TRACE_FILE
        if trace.is_file():
            shutil.move(trace, folder / TRACE_FILE)
        shutil.rmtree(results)
        if status in _POLICY_FAILED:
            why = tail_of(server.decode(errors="replace"), "its server's words end")
            return Outcome("failed", _POLICY_FAILED[status] + why)
        if status == _SERVER_ENDED:
            words = server.decode(errors="replace")
            if _TRACE_FULL in words:
                return Outcome("disk", _TRACE_FULL_MESSAGE)
            why = "the policy's server ended before the workload"
            return Outcome("failed", why + tail_of(words, "its words end"))
        return _outcome(status, read_console(console), message)

    def _mode(self) -> str:
        from schedlab.machines.linux.guest import GuestJob, mode_of

        return mode_of(GuestJob(repeatable=self.repeatable))

    def host_cpus(self, cpus: int) -> int:
        return 1

    def host_limit(self, cpus: int, limit_ns: int) -> float:
        return 300 + _SLOWEST * limit_ns / 1e9


class FreeLinux(Linux):
    """Runs at the host's speed; not repeatable."""

    name = "linux-free"
    repeatable = False
    begin_s = 0

    @property
    def note(self) -> str:
        return self._note_of(self._mode())

    def _note_of(self, mode: str) -> str:
        from schedlab.machines.linux.guest import KVM

        how = "on the host's own CPUs (KVM)" if mode == KVM else "emulated"
        return f"free-running, {how}: not repeatable"

    def host_cpus(self, cpus: int) -> int:
        from schedlab.machines.linux.guest import KVM

        return cpus if self._mode() == KVM else 1


def _content(path: Path) -> bytes:
    """Returns a file's content; b"" if it was not written."""
    return path.read_bytes() if path.is_file() else b""


def _outcome(status: int, console: str, message: str) -> Outcome:
    """Returns the outcome; `message` says why the guest's script did not finish."""
    result = outcome_of(status, console)
    if result.status == "limit" and message:
        return Outcome("hung", message)
    return Outcome(result.status, message) if message else result


def command_of(run: RunSpec) -> str:
    """Returns the guest's command; programs other than schedlab's run under `measure`."""
    if run.file:
        return f"play {WORKLOAD}"
    words = run.workload.split()
    return run.workload if words[0] in guest_programs() else shlex.join(["measure", run.workload])


def benchmarks_in(workload: str) -> tuple[str, ...]:
    """Returns the benchmarks that a command names."""
    from schedlab.machines.linux.image import BENCHMARKS

    words = set(re.findall(r"[\w.+-]+", workload))
    return tuple(name for name in BENCHMARKS if name in words)


def guest_programs() -> set[str]:
    """Returns the workloads built for Linux, which mark their measured window themselves."""
    folders = (ROOT / "workloads", ROOT / "workloads" / "linux")
    return {path.stem for folder in folders for path in folder.glob("*.c")}

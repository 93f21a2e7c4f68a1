# SPDX-License-Identifier: MIT
"""Runs the kernel once with abnormal turns, and checks the run."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from schedlab import trace
from schedlab.base.host.parent_death import complete_prefix
from schedlab.base.toolchain.build import DISK_IMAGE, KERNEL_PROGRAM
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.errors import MachineUnfit
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.kernel import Boot
from schedlab.machines.outcome import describe_tail, hung_outcome, interpret_exit
from schedlab.machines.spec import RunSpec
from schedlab.machines.spike import DEFAULT_TURN, Spike, driver_command
from schedlab.paths import BUILD_FOLDER
from schedlab.trace.errors import TraceError
from schedlab_tools.interleavings.checks import idle_while_work_waits
from schedlab_tools.interleavings.holds import Hold, read_holds, write_holds

CHECKER = BUILD_FOLDER / "fsck"
TICK_NS = 1_000_000
IDLE_NS = 250_000
"""Longest time that a CPU may idle while a process is in its queue, without times when CPUs are held."""
_MEMORY_MIB = 128
_HOST_SECONDS = 600
HOLDS_FILE, _DISK_FILE = "holds", "disk.img"


@dataclass(frozen=True)
class Setup:
    """The configuration; apart from turns, runs are identical."""

    workload: str
    policy: PolicyChoice
    cpus: int
    limit_ns: int
    kernel: Path = KERNEL_PROGRAM

    @property
    def run(self) -> RunSpec:
        """Returns the specification of the run."""
        return RunSpec(
            self.workload,
            self.policy,
            (),
            self.cpus,
            Spike(),
            1,
            TICK_NS,
            self.limit_ns,
            _MEMORY_MIB,
        )

    @property
    def arguments(self) -> str:
        """Returns the kernel's boot arguments."""
        return f"trace-queues=1 {Spike().arguments(self.run)}"


@dataclass(frozen=True)
class Failure:
    """How a run failed: the failed check, and the problem in words."""

    kind: str
    """The run's status, or `disk`, `trace`, `idle`."""
    words: str


def need_driver() -> None:
    """Raises MachineUnfit if schedlab's driver of Spike is missing."""
    if not Spike().release().turn:
        raise MachineUnfit(
            "explore kernel needs schedlab's own driver of Spike: leave SCHEDLAB_SPIKE unset (docs/spike.md)"
        )


def run_trial(setup: Setup, turns: int | tuple[Hold, ...], folder: Path) -> Failure | None:
    """Runs the configuration in an empty folder, and returns the failure, or None.

    `turns`: a seed, or the turns themselves. The folder then contains the trace, and the abnormal
    turns as HOLDS. Raises MachineUnfit if the machine cannot be started.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(turns, int):
        hold_options = [f"--hold-by={turns}"]
    else:
        write_holds(folder / "given", turns)
        hold_options = ["--holds=given"]
    path = Spike().release().path
    boot = Boot(setup.kernel, DISK_IMAGE, setup.cpus, _MEMORY_MIB, setup.arguments)
    command = driver_command(path, boot, DEFAULT_TURN)
    command[1:1] = [*hold_options, f"--keep-holds={HOLDS_FILE}", f"--keep-disk={_DISK_FILE}"]
    try:
        result = subprocess.run(
            [*complete_prefix(), *command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_HOST_SECONDS,
            check=False,
        )
        console = result.stdout.decode(errors="replace")
        outcome = interpret_exit(result.returncode, console, program=setup.kernel)
    except subprocess.TimeoutExpired as error:
        outcome = hung_outcome(_HOST_SECONDS, (error.stdout or b"").decode(errors="replace"))
    if not (folder / HOLDS_FILE).exists():
        raise MachineUnfit("the machine did not begin" + describe_tail(outcome.message, "it said"))
    if not outcome.succeeded:
        return Failure(outcome.status, outcome.message)
    return _failure_in(folder)


def _failure_in(folder: Path) -> Failure | None:
    """Returns the failure that the files of a finished run show, or None."""
    checked = subprocess.run(
        [CHECKER, folder / _DISK_FILE], capture_output=True, text=True, check=False
    )
    if checked.returncode:
        return Failure("disk", f"the file system is broken afterwards: {checked.stdout.strip()}")
    try:
        recorded = trace.read(folder / TRACE_FILE)
        trace.validate(recorded)
    except TraceError as error:
        return Failure("trace", f"its trace cannot be: {error}")
    still = [(hold.at_ns, hold.at_ns + hold.length_ns) for hold in holds_in(folder)]
    problem = idle_while_work_waits(recorded, IDLE_NS, still)
    return Failure("idle", problem) if problem else None


def holds_in(folder: Path) -> tuple[Hold, ...]:
    """Returns the abnormal turns of a run."""
    return read_holds(folder / HOLDS_FILE)

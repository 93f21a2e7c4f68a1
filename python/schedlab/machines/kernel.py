# SPDX-License-Identifier: MIT
"""What machines have in common that boot our kernel: its arguments, its disk, how it ends."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path

from schedlab.errors import WrongUsage, parameter
from schedlab.machines.folder import TRACE_FILE, WORKLOAD_PLAYED
from schedlab.machines.outcome import LIMIT, Outcome, outcome_of, read_console
from schedlab.machines.spec import Machine, Parts, RunSpec
from schedlab.units import format_time
from schedlab.workload.delays import boot_arguments
from schedlab.workload.loading import COMMAND, TOOLS, check_room, make_disk
from schedlab.workload.programs import check_known, disk_programs

KERNEL_PARTS: tuple[str, ...] = ("kernel", "disk")
KERNEL_CPUS_MAX = 256
PROGRAM = "program"
"""In the place that a run has for itself: what it has booted, whose addresses its panic names."""
BOOT_ARGUMENTS_MAX = 1023
"""Bytes; kernel/device/device_tree.h."""


@dataclass(frozen=True)
class Boot:
    """One start of such a machine. The program sees of it CPUs, memory, disk and arguments."""

    program: Path
    """Our kernel, or another program that needs none."""
    disk: Path | None
    """None: of no use to what is booted."""
    cpus: int
    memory_mib: int
    arguments: str
    traced: bool = True
    live: bool = False
    """A person watches or types: the machine's time does not run ahead of ours."""
    keeps_typed: bool = False
    """What is typed, and when, is kept in the file TYPED."""
    typed: Path | None = None
    """Such a file, which is typed again instead of what a person types. Both are for machines alone
    that can do so: KernelMachine.types_again."""
    control: int | None = None
    """A socket, open in the process that is started, by which a program pauses the machine: QEMU's
    machine protocol. None: none does, and the console is a person's."""


class KernelMachine(Machine):
    """See Machine."""

    controlled: bool
    """Its clock stands still only if it is told by Boot.control; else, it does when the process is
    stopped by a signal."""
    parts = KERNEL_PARTS
    tools = TOOLS
    needs: tuple[str, ...] = ()
    cpus_max = KERNEL_CPUS_MAX
    tick_ns = 1_000_000
    memory_mib = 512
    shape_note = "policies read it, but all CPUs are equally fast here, and no cache is cold"

    @property
    def programs(self) -> frozenset[str]:
        return disk_programs()

    @property
    def types_again(self) -> bool:
        """It can keep what is typed, and type it again at the same times of the kernel."""
        return False

    @abstractmethod
    def command(self, boot: Boot) -> list[str]:
        """How to start it, from within the run's folder."""

    def check(self, run: RunSpec) -> None:
        """Raises WrongUsage if the command cannot pass through the boot arguments as it is."""
        length = len(self.arguments(run))
        if run.shape and length > BOOT_ARGUMENTS_MAX:
            raise WrongUsage(
                f"it is {length - BOOT_ARGUMENTS_MAX} characters too long to be passed to the"
                " kernel: CPUs of a core, a cache, a node in the order of their numbers take"
                " fewer",
                what=parameter("shape", run.shape.name),
            )
        if run.file:
            check_room(run.workload, run.file, run.memory_mib)
            return
        workload = run.workload
        if not workload.strip():
            raise WrongUsage(
                "name a program of the guest, such as mixed or 'cpu-bound -n 10'",
                what="`workload=`",
            )
        if not workload.isascii() or not workload.isprintable() or '"' in workload:
            raise WrongUsage(
                'only printable ASCII characters without " can be passed on',
                what=parameter("workload", workload),
            )
        if length > BOOT_ARGUMENTS_MAX:
            raise WrongUsage(
                f"the command is {length - BOOT_ARGUMENTS_MAX} characters too long to be passed to"
                " the kernel",
                what="`workload=`",
            )
        check_known(workload, self.programs)

    def arguments(self, run: RunSpec) -> str:
        words = [
            f"policy={run.policy}",
            f"tick={format_time(run.tick_ns)}",
            f"seed={run.seed}",
            f"limit={format_time(run.limit_ns)}",
            f"trace={TRACE_FILE}",
        ]
        if run.settings:
            words.append(f"set={run.settings_text}")
        if run.shape:
            words.append(f"shape={run.shape.text(with_model=False)}")
        words += [*boot_arguments(run.delays), *run.arguments.split()]
        words.append(f'run="{COMMAND if run.file else run.workload}"')
        return " ".join(words)

    def start(self, run: RunSpec, parts: Parts, folder: Path, scratch: Path) -> list[str]:
        """All start from the same disk; but a workload file must be on it."""
        disk = parts["disk"]
        if run.file:
            disk = make_disk(disk, (folder / WORKLOAD_PLAYED).read_bytes(), parts["mkfs"], scratch)
        arguments = self.arguments(run)
        (scratch / PROGRAM).symlink_to(parts["kernel"])
        return self.command(Boot(parts["kernel"], disk, run.cpus, run.memory_mib, arguments))

    def outcome(self, status: int, folder: Path, scratch: Path, console: Path) -> Outcome:
        return outcome_of(status, read_console(console), LIMIT, scratch / PROGRAM)


_PARAMETERS = {"tick": "tick_ns", "seed": "first_seed"}
"""Parameters that set boot arguments of another name."""


def with_more_arguments(arguments: dict[str, str], more: str) -> str:
    """All boot arguments as one text: those of the command's options, by name, and a user's.

    Raises WrongUsage if the kernel would read them otherwise than they are meant.
    """
    if not more.isascii() or not (more.isprintable() or not more) or more.count('"') % 2:
        raise WrongUsage(
            "only printable ASCII characters, and each quote has its second",
            what=parameter("arguments", more),
        )
    for name in arguments:
        if any(word.split("=")[0] == name for word in more.split()):
            parameter_name = _PARAMETERS.get(name, name)
            raise WrongUsage(
                f"{parameter(parameter_name)} sets {name}", what=parameter("arguments", more)
            )
    words = " ".join([*(f"{name}={value}" for name, value in arguments.items()), *more.split(" ")])
    if len(words) > BOOT_ARGUMENTS_MAX:
        raise WrongUsage(
            f"{len(words) - BOOT_ARGUMENTS_MAX} characters too long to be passed to the kernel",
            what="`arguments=`",
        )
    return words.strip()

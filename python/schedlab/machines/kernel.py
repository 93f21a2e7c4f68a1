# SPDX-License-Identifier: MIT
"""Base of machines that boot the schedlab kernel: boot arguments, disk and outcome."""

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path

from schedlab.errors import WrongUsage, format_parameter
from schedlab.machines.folder import BINARY_WORKLOAD_FILE, TRACE_FILE
from schedlab.machines.outcome import LIMIT, Outcome, interpret_exit, read_console
from schedlab.machines.spec import BuiltParts, Machine, RunSpec
from schedlab.units import format_time
from schedlab.workload.delays import boot_arguments
from schedlab.workload.loading import DISK_TOOLS, PLAY_COMMAND, check_capacity, make_disk
from schedlab.workload.programs import check_known, disk_programs

KERNEL_PARTS: tuple[str, ...] = ("kernel", "disk")
KERNEL_CPUS_MAX = 256
PROGRAM_LINK = "program"
"""Link to the booted program in a run's scratch folder; addresses in a panic belong to it."""
BOOT_ARGUMENTS_MAX = 1023
"""Bytes; the limit of kernel/device/device_tree.h."""


@dataclass(frozen=True)
class Boot:
    """The parameters of one boot.

    The booted program can see only the CPUs, the memory, the disk and the arguments.
    """

    program: Path
    """The schedlab kernel, or another program."""
    disk: Path | None
    """None if the program needs no disk."""
    cpus: int
    memory_mib: int
    arguments: str
    traced: bool = True
    live: bool = False
    """True if a person uses the console, so that the machine's time must not run ahead of the host's."""
    keeps_typed: bool = False
    """True to save the console input, with its times, in the file TYPED."""
    typed: Path | None = None
    """A file of console input to repeat.

    This option and `keeps_typed` need a machine with KernelMachine.can_repeat_input.
    """
    control: int | None = None
    """An inherited socket for QEMU's machine protocol, which can pause the machine.

    None: the console belongs to a person.
    """


class KernelMachine(Machine):
    """A machine that boots the schedlab kernel; see Machine."""

    controlled: bool
    """True if the machine is paused through Boot.control; otherwise by a signal that stops its process."""
    parts = KERNEL_PARTS
    tools = DISK_TOOLS
    needs: tuple[str, ...] = ()
    cpus_max = KERNEL_CPUS_MAX
    tick_ns = 1_000_000
    memory_mib = 512
    shape_note = "policies read it, but all CPUs are equally fast here, and no cache is cold"

    @property
    def programs(self) -> frozenset[str]:
        return disk_programs()

    @property
    def can_repeat_input(self) -> bool:
        """Whether the machine can save console input, and repeat it at the same kernel times."""
        return False

    @abstractmethod
    def command(self, boot: Boot) -> list[str]:
        """Returns the command that starts the machine in a run's folder."""

    def check(self, run: RunSpec) -> None:
        """Raises WrongUsage if the workload command does not fit into the boot arguments."""
        length = len(self.arguments(run))
        if run.shape and length > BOOT_ARGUMENTS_MAX:
            raise WrongUsage(
                f"with this shape, the boot arguments have {length - BOOT_ARGUMENTS_MAX} characters too"
                " many",
                what=format_parameter("shape", run.shape.name),
                fix="number the CPUs of each core, cache, node and kind consecutively, or shorten "
                "the workload's command",
            )
        if run.file:
            check_capacity(run.workload, run.file, run.memory_mib)
            return
        workload = run.workload
        if not workload.strip():
            raise WrongUsage(
                "missing",
                what="`workload=`",
                fix="name a program of the guest, such as mixed or 'cpu-bound -n 10'",
            )
        if not workload.isascii() or not workload.isprintable() or '"' in workload:
            raise WrongUsage(
                "contains a double quote or a character that is not printable ASCII",
                what=format_parameter("workload", workload),
                fix="leave out this character",
            )
        if length > BOOT_ARGUMENTS_MAX:
            raise WrongUsage(
                f"the command is {length - BOOT_ARGUMENTS_MAX} characters too long for the kernel",
                what="`workload=`",
                fix="shorten it",
            )
        check_known(workload, self.programs)

    def arguments(self, run: RunSpec) -> str:
        """Returns the kernel's boot arguments."""
        arguments = [
            f"policy={run.policy}",
            f"tick={format_time(run.tick_ns)}",
            f"seed={run.seed}",
            f"limit={format_time(run.limit_ns)}",
            f"trace={TRACE_FILE}",
        ]
        if run.settings:
            arguments.append(f"set={run.settings_text}")
        if run.shape:
            arguments.append(f"shape={run.shape.text(with_model=False)}")
        arguments += [*boot_arguments(run.delays), *run.arguments.split()]
        arguments.append(f'run="{PLAY_COMMAND if run.file else run.workload}"')
        return " ".join(arguments)

    def prepare_command(
        self, run: RunSpec, parts: BuiltParts, folder: Path, scratch: Path
    ) -> list[str]:
        """Returns the command; first adds the workload file to a copy of the disk."""
        disk = parts["disk"]
        if run.file:
            disk = make_disk(
                disk, (folder / BINARY_WORKLOAD_FILE).read_bytes(), parts["mkfs"], scratch
            )
        arguments = self.arguments(run)
        (scratch / PROGRAM_LINK).symlink_to(parts["kernel"])
        return self.command(Boot(parts["kernel"], disk, run.cpus, run.memory_mib, arguments))

    def outcome(self, status: int, folder: Path, scratch: Path, console: Path) -> Outcome:
        return interpret_exit(status, read_console(console), LIMIT, scratch / PROGRAM_LINK)


_PARAMETER_NAMES = {"tick": "tick_ns", "trace": "record"}
"""Names of parameters that differ from their boot arguments' names."""


def join_boot_arguments(arguments: dict[str, str], user_arguments: str) -> str:
    """Returns all boot arguments as one text: schedlab's and the user's own.

    Raises WrongUsage if the kernel would parse them differently.
    """
    if (
        not user_arguments.isascii()
        or not (user_arguments.isprintable() or not user_arguments)
        or user_arguments.count('"') % 2
    ):
        raise WrongUsage(
            "contains characters that are not printable ASCII, or an unmatched quote",
            what=format_parameter("arguments", user_arguments),
            fix="use printable ASCII and close each quote",
        )
    for name in arguments:
        if any(word.split("=")[0] == name for word in user_arguments.split()):
            parameter_name = _PARAMETER_NAMES.get(name, name)
            raise WrongUsage(
                f"contains {name}, which {format_parameter(parameter_name)} sets",
                what=format_parameter("arguments", user_arguments),
                fix=f"leave {name} out",
            )
    words = " ".join(
        [*(f"{name}={value}" for name, value in arguments.items()), *user_arguments.split(" ")]
    )
    if len(words) > BOOT_ARGUMENTS_MAX:
        raise WrongUsage(
            f"{len(words) - BOOT_ARGUMENTS_MAX} characters too long for the kernel",
            what="`arguments=`",
            fix="shorten it",
        )
    return words.strip()

# SPDX-License-Identifier: MIT
"""`./schedlab boot`: boots schedlab's kernel with a shell."""

import os
from pathlib import Path

import click

from schedlab.base.display.terminal import say
from schedlab.base.host.disk import DiskWatch
from schedlab.base.host.supervision import run_interactively
from schedlab.base.toolchain.build import DISK_IMAGE, KERNEL_PROGRAM, build
from schedlab.base.toolchain.policies import (
    DEFAULT_POLICY,
    PolicyChoice,
    check_choices,
    read_catalogue,
)
from schedlab.commands.options import (
    EXISTING_FILE,
    FOLDER,
    POLICIES,
    TICK,
    memory_option,
    trace_limit_option,
)
from schedlab.errors import WrongUsage
from schedlab.machines import KERNEL_MACHINES, Boot, kernel_machine
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.kernel import KERNEL_CPUS_MAX, join_boot_arguments
from schedlab.machines.spike import SPIKE_VARIABLE
from schedlab.units import format_time


@click.command()
@click.option(
    "--cpus",
    default=1,
    show_default=True,
    type=click.IntRange(1, KERNEL_CPUS_MAX),
    help="Number of CPUs.",
)
@click.option("--policy", "policies", default=DEFAULT_POLICY, show_default=True, type=POLICIES)
@click.option("--machine", default="qemu", show_default=True, type=click.Choice(KERNEL_MACHINES))
@click.option("--tick", default="10ms", show_default=True, type=TICK, help="Length of a tick.")
@memory_option
@click.option(
    "--disk",
    type=EXISTING_FILE,
    help="Use this disk image, made by build/mkfs. [default: the image with all programs]",
)
@click.option(
    "--arguments",
    default="",
    help="Add boot arguments, such as 'processes=64 overcommit=0' "
    "(docs/kernel-boot-and-devices.md).",
)
@click.option(
    "--record",
    type=FOLDER,
    help="On spike, write the trace and all input with its times to this new folder.",
)
@click.option(
    "--typed",
    type=EXISTING_FILE,
    help="On spike, repeat the input of such a recording at the same times. The same kernel, disk"
    " and options give the same run, byte for byte (docs/spike.md).",
)
@trace_limit_option
def boot(
    cpus: int,
    policies: tuple[PolicyChoice, ...],
    machine: str,
    tick: int,
    memory: int,
    disk: Path | None,
    arguments: str,
    record: Path | None,
    typed: Path | None,
) -> None:
    """Boot the kernel with a shell in this terminal.

    Changes of its disk are lost when it ends.
    """
    if len(policies) > 1:
        raise WrongUsage(
            "--policy: a machine has one policy; give one, and switch with `policy "
            "NAME` in its shell"
        )
    check_choices(read_catalogue(), policies, {})
    description = {"policy": str(policies[0]), "tick": format_time(tick)}
    if record:
        description["trace"] = TRACE_FILE
    boot_arguments = join_boot_arguments(description, arguments)
    boot_machine = kernel_machine(machine)
    if (record or typed) and not boot_machine.can_repeat_input:
        raise WrongUsage(
            "--record and --typed: only schedlab's own Spike can repeat a session; "
            f"add --machine spike, and unset {SPIKE_VARIABLE}"
        )
    build("kernel", "image")
    start = Boot(
        KERNEL_PROGRAM,
        (disk or DISK_IMAGE).absolute(),
        cpus,
        memory,
        boot_arguments,
        traced=False,
        live=True,
        keeps_typed=bool(record),
        typed=typed and typed.absolute(),
    )
    command = boot_machine.command(start)
    exit_instructions = (
        "Ctrl-A, then X" if machine == "qemu" else "`poweroff` in the shell, or Ctrl-C"
    )
    say("The recorded input is repeated." if typed else f"To leave: {exit_instructions}.")
    if record:
        enter_new_folder(record)
        raise SystemExit(run_interactively(command, DiskWatch(Path())))
    os.execv(command[0], command)


def enter_new_folder(folder: Path) -> None:
    """Makes a folder and changes into it. Raises WrongUsage if the folder exists."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise WrongUsage(f"--record {folder}: the folder exists; name a new one") from None
    os.chdir(folder)

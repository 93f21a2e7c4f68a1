# SPDX-License-Identifier: MIT
"""`./schedlab boot`: our kernel with a shell."""

from __future__ import annotations

import os
from pathlib import Path

import click

from schedlab.commands.options import POLICIES, TICK, memory_option
from schedlab.display.terminal import say
from schedlab.errors import WrongUsage
from schedlab.machines import KERNEL_MACHINES, Boot, kernel_machine
from schedlab.machines.kernel import KERNEL_CPUS_MAX, with_more_arguments
from schedlab.toolchain.build import IMAGE, KERNEL, build
from schedlab.toolchain.policies import STANDARD, PolicyChoice, check_choices, read_catalogue
from schedlab.units import format_time


@click.command()
@click.option(
    "--cpus",
    default=1,
    show_default=True,
    type=click.IntRange(1, KERNEL_CPUS_MAX),
    help="How many CPUs.",
)
@click.option("--policy", "policies", default=STANDARD, show_default=True, type=POLICIES)
@click.option("--machine", default="qemu", show_default=True, type=click.Choice(KERNEL_MACHINES))
@click.option("--tick", default="10ms", show_default=True, type=TICK, help="Length of a tick.")
@memory_option
@click.option(
    "--disk",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A disk that build/mkfs made.  [default: the one with all programs]",
)
@click.option(
    "--arguments",
    default="",
    help="More boot arguments, such as 'processes=64 overcommit=0'"
    " (docs/kernel-boot-and-devices.md).",
)
def boot(
    cpus: int,
    policies: tuple[PolicyChoice, ...],
    machine: str,
    tick: int,
    memory: int,
    disk: Path | None,
    arguments: str,
) -> None:
    """Boot the kernel with a shell in this terminal.

    What is written to its disk is gone when it ends.
    """
    if len(policies) > 1:
        raise WrongUsage(
            "--policy: one machine has one policy; `policy NAME` in its shell switches"
        )
    check_choices(read_catalogue(), policies, {})
    told = {"policy": str(policies[0]), "tick": format_time(tick)}
    words = with_more_arguments(told, arguments)
    build("kernel", "image")
    start = Boot(KERNEL, disk or IMAGE, cpus, memory, words, traced=False, live=True)
    command = kernel_machine(machine).command(start)
    leave = "Ctrl-A, then X" if machine == "qemu" else "`poweroff` in the shell, or Ctrl-C"
    say(f"To leave: {leave}.")
    os.execv(command[0], command)

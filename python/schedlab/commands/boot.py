# SPDX-License-Identifier: MIT
"""`./schedlab boot`: our kernel with a shell."""

from __future__ import annotations

import os
from pathlib import Path

import click

from schedlab.base.display.terminal import say
from schedlab.base.host.disk import DiskWatch
from schedlab.base.host.supervision import attend
from schedlab.base.toolchain.build import IMAGE, KERNEL, build
from schedlab.base.toolchain.policies import STANDARD, PolicyChoice, check_choices, read_catalogue
from schedlab.commands.options import (
    FILE_THERE,
    FOLDER,
    POLICIES,
    TICK,
    memory_option,
    trace_limit_option,
)
from schedlab.errors import WrongUsage
from schedlab.machines import KERNEL_MACHINES, Boot, kernel_machine
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.kernel import KERNEL_CPUS_MAX, with_more_arguments
from schedlab.machines.spike import SPIKE_VARIABLE
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
    type=FILE_THERE,
    help="A disk that build/mkfs made.  [default: the one with all programs]",
)
@click.option(
    "--arguments",
    default="",
    help="More boot arguments, such as 'processes=64 overcommit=0'"
    " (docs/kernel-boot-and-devices.md).",
)
@click.option(
    "--record",
    type=FOLDER,
    help="Of spike: a new folder for the trace, and for what is typed and when.",
)
@click.option(
    "--typed",
    type=FILE_THERE,
    help="Of spike: type again what such a recording has, at the same times. With the same kernel,"
    " disk and options it is the same run, byte for byte (docs/spike.md).",
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

    What is written to its disk is gone when it ends.
    """
    if len(policies) > 1:
        raise WrongUsage(
            "--policy: one machine has one policy; `policy NAME` in its shell switches"
        )
    check_choices(read_catalogue(), policies, {})
    told = {"policy": str(policies[0]), "tick": format_time(tick)}
    if record:
        told["trace"] = TRACE_FILE
    words = with_more_arguments(told, arguments)
    chosen = kernel_machine(machine)
    if (record or typed) and not chosen.types_again:
        raise WrongUsage(
            f"--record and --typed: only schedlab's own Spike repeats what it did: add --machine"
            f" spike, and leave {SPIKE_VARIABLE} unset"
        )
    build("kernel", "image")
    start = Boot(
        KERNEL,
        (disk or IMAGE).absolute(),
        cpus,
        memory,
        words,
        traced=False,
        live=True,
        keeps_typed=bool(record),
        typed=typed and typed.absolute(),
    )
    command = chosen.command(start)
    leave = "Ctrl-A, then X" if machine == "qemu" else "`poweroff` in the shell, or Ctrl-C"
    say("It goes as it was typed." if typed else f"To leave: {leave}.")
    if record:
        enter_new(record)
        raise SystemExit(attend(command, DiskWatch(Path())))
    os.execv(command[0], command)


def enter_new(folder: Path) -> None:
    """Makes a folder, and works in it from here on. Raises WrongUsage if it is there already."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise WrongUsage(f"--record {folder}: it is there already; name a new folder") from None
    os.chdir(folder)

# SPDX-License-Identifier: MIT
"""`./schedlab dev bench`: measures costs. Its commands are modules of schedlab_tools.benchmarks."""

from typing import Any

import click

from schedlab.commands.command_help import LazyCommands
from schedlab.commands.options import json_option

COMMANDS: Any = LazyCommands(
    "schedlab_tools.benchmarks",
    "agreement",
    "conformance",
    "contention",
    "deadlines",
    "linux-agreement",
    "monitor",
    "monitor-model",
    "playground",
    "questions",
    "races",
    "scx-agreement",
    "shares",
    "simulator",
    "study",
    "throughput",
)


@click.group(commands=COMMANDS, invoke_without_command=True)
@click.option("--host", "of_host", is_flag=True, help="Also: how fast this host reads traces.")
@click.option(
    "--write",
    "renews",
    is_flag=True,
    help="Write the counts into bench/budgets.csv, and print changes.",
)
@json_option
@click.pass_context
def bench(context: click.Context, of_host: bool, renews: bool, as_json: bool) -> None:
    """Count the instructions of the kernel's operations, and compare.

    On Spike with one CPU: exact, and the same every time. The baseline is xv6 for RISC-V. Exit
    status 1 if an aim is not met. The commands below measure something else.
    """
    if context.invoked_subcommand is not None:
        return
    from schedlab_tools.benchmarks.instructions import renew_budgets, show

    if renews:
        for sentence in renew_budgets() or ["nothing changed by more than 1 %"]:
            click.echo(sentence)
    else:
        show(of_host, as_json)

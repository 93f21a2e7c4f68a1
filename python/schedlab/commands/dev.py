# SPDX-License-Identifier: MIT
"""`./schedlab dev`: commands for developers of schedlab."""

from typing import Any

import click

from schedlab.commands.command_help import LazyCommands

COMMANDS: Any = LazyCommands(
    "schedlab.commands", "docs", "lint", "soak", bench="schedlab_tools.benchmarks"
)


@click.group(commands=COMMANDS)
def dev() -> None:
    """Check, measure and document schedlab itself."""

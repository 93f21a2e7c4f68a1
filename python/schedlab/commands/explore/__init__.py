# SPDX-License-Identifier: MIT
"""`./schedlab explore`: checks invariants by exhaustive search; one module per command."""

from typing import Any

import click

from schedlab.commands.command_help import LazyCommands

COMMANDS: Any = LazyCommands(__name__, "kernel", "policy")


@click.group(commands=COMMANDS)
def explore() -> None:
    """Search exhaustively for a case that breaks a rule."""

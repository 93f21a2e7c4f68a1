# SPDX-License-Identifier: MIT
"""`./schedlab explore`: what holds in all cases, by search; a module for each of its commands."""

from __future__ import annotations

from typing import Any

import click

from schedlab.commands.guided import Modules

COMMANDS: Any = Modules(__name__, "kernel", "policy")


@click.group(commands=COMMANDS)
def explore() -> None:
    """Search all cases for one that breaks a rule."""

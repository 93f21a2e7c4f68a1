# SPDX-License-Identifier: MIT
"""`./schedlab dev lint`: runs the tests that check the form of all files."""

from __future__ import annotations

import click

from schedlab.base.toolchain.needs import EXTRAS, need_extra, need_if_installed
from schedlab.commands.test import HOUSE, PYTEST_SETTINGS, start


@click.command(context_settings=PYTEST_SETTINGS)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[PYTEST ARGUMENTS]...")
def lint(arguments: tuple[str, ...]) -> None:
    """Check layout, rules and types of all files.

    Checks formatting, ruff, mypy, licence lines, the dependencies between packages, and that generated files are
    current.
    """
    need_extra(*EXTRAS)
    need_if_installed("system-compiler", "formatter")
    start(["-n", "0", "-rs", HOUSE, *arguments])

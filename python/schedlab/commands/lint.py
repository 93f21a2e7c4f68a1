# SPDX-License-Identifier: MIT
"""`./schedlab dev lint`: runs the tests that check the form of all files."""

import click

from schedlab.base.toolchain.needs import EXTRAS, install_if_packaged, need_extra
from schedlab.commands.test import HOUSE_TESTS, PYTEST_SETTINGS, exec_pytest


@click.command(context_settings=PYTEST_SETTINGS)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[PYTEST ARGUMENTS]...")
def lint(arguments: tuple[str, ...]) -> None:
    """Check layout, rules and types of all files.

    Checks formatting, ruff, mypy, licence lines, the dependencies between packages, and that generated files are
    current.
    """
    need_extra(*EXTRAS)
    install_if_packaged("system-compiler", "formatter")
    exec_pytest(["-n", "0", "-rs", HOUSE_TESTS, *arguments])

# SPDX-License-Identifier: MIT
"""`./schedlab test`: runs pytest with the chosen tests."""

import os
import sys
from collections.abc import Sequence

import click

from schedlab.base.display.terminal import say
from schedlab.paths import ROOT

HOUSE_TESTS = "tests/house"
"""Tests of file format and of the layers of packages."""
DESELECTING_ARGUMENTS = (
    "-k",
    "-m",
    "--lf",
    "--last-failed",
    "--ff",
    "--co",
    "--collect-only",
    "--fast",
)
"""Arguments of pytest that may deselect tests. If a path is given, only these deselect."""
PYTEST_SETTINGS = {"ignore_unknown_options": True, "allow_interspersed_args": False}


@click.command(context_settings=PYTEST_SETTINGS)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[PYTEST ARGUMENTS]...")
def test(arguments: tuple[str, ...]) -> None:
    """Run all tests, or some.

    All tests: first builds what they need. Some, named by arguments for pytest: each builds what it needs.
    `--fast` selects tests that boot nothing, need no browser and are short. `./schedlab dev lint` is separate.
    """
    from schedlab.base.host.processor import count_host_cpus, host_name, supports_all_machines
    from schedlab.base.toolchain.build import SIMULATOR_LIBRARY, build, require_checkout
    from schedlab.base.toolchain.needs import (
        EXTRAS,
        LINUX_GUEST_PROGRAMS,
        TEST_PROGRAMS,
        install_if_packaged,
        need,
        need_extra,
    )

    require_checkout("tests")
    need_extra(*EXTRAS)
    if sys.platform == "linux":
        need(
            "system-compiler",
            "dtc",
            "qemu",
            *(LINUX_GUEST_PROGRAMS if supports_all_machines() else ()),
        )
    install_if_packaged(*TEST_PROGRAMS)
    if "--fast" in arguments:
        # A second process would collect all tests again, which costs as much as it saves.
        exec_pytest(["-n", "0", "--ignore", HOUSE_TESTS, *arguments])
    if not supports_all_machines():
        say(
            f"schedlab: this host is {host_name()}: tests of Linux guests fail on it, "
            "and tests of Spike too, unless one is on the PATH (docs/faq.md)"
        )
    if selects_all_tests(arguments):
        build("all", "host-tests", SIMULATOR_LIBRARY)
        arguments = ("--ignore", HOUSE_TESTS, *arguments)
    # One more than the host's processors, since some tests wait for a
    # machine's clock or each other.
    exec_pytest(["-n", str(count_host_cpus() + 1), *arguments])


def selects_all_tests(arguments: Sequence[str]) -> bool:
    """Returns whether these arguments for pytest select all tests."""
    chosen = (word.split("::")[0] for word in arguments)
    return not any(
        word.split("=")[0] in DESELECTING_ARGUMENTS or (ROOT / word).exists()
        for word in chosen
        if word
    )


def exec_pytest(words: list[str]) -> None:
    """Replaces this process with pytest."""
    from schedlab.base.host.isolated import module_command

    say(f"schedlab: pytest {' '.join(words)}")
    command = module_command("pytest", *words)
    os.chdir(ROOT)
    os.execv(command[0], command)

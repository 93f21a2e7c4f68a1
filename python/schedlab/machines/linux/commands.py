# SPDX-License-Identifier: MIT
"""Checks the command line of a Linux workload before a machine starts."""

import re
import subprocess
from difflib import get_close_matches
from functools import cache

from schedlab.errors import WrongUsage
from schedlab.machines.linux import packages
from schedlab.workload.programs import check_options, workload_programs

_ONE_COMMAND = re.compile(r"[\w. -]+")
"""A line with only a command and its arguments, without shell syntax."""
_SHELL_COMMANDS = ("cd", "eval", "exec", "exit", "export", "read", "set", "time", "wait")
"""Commands that are part of the shell."""


def check_command(line: str, available: frozenset[str] | None) -> None:
    """Raises WrongUsage if the line is a plain command that does not exist or lacks an option.

    The line must not be blank. `available`: the machine's programs other than schedlab's; None if
    unknown.
    """
    if not _ONE_COMMAND.fullmatch(line):
        return
    name, *words = line.split()
    if available is not None and name not in {*available, *workload_programs()}:
        similar = get_close_matches(name, {*available, *workload_programs()}, 1)
        suggestion = f"; did you mean {similar[0]!r}?" if similar else "."
        raise WrongUsage(
            f"the guest has no program {name!r}{suggestion} `./schedlab workloads` "
            "lists schedlab's programs; busybox, sysbench, stress-ng and hackbench "
            "are installed too",
            what="`workload=`",
        )
    check_options(name, words)


@cache
def guest_commands() -> frozenset[str] | None:
    """Returns the guest's programs other than schedlab's, or None before its packages are fetched."""
    stored = packages.cached_packages()
    if not stored:
        return None
    list_command = [str(stored.program("busybox")), "--list"]
    applets = subprocess.run(
        list_command, capture_output=True, text=True, check=True
    ).stdout.split()
    programs = (path.name for path in stored.program("busybox").parent.iterdir())
    return frozenset({*applets, *_SHELL_COMMANDS, *programs})

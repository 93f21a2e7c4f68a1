# SPDX-License-Identifier: MIT
"""Checks the command line of a Linux workload before a machine starts."""

from __future__ import annotations

import re
import subprocess
from difflib import get_close_matches
from functools import cache

from schedlab.errors import WrongUsage
from schedlab.machines.linux import packages
from schedlab.workload.programs import check_options, workload_programs

_ONE_COMMAND = re.compile(r"[\w. -]+")
"""A line with only a command and its arguments, without shell syntax."""
_OF_THE_SHELL = ("cd", "eval", "exec", "exit", "export", "read", "set", "time", "wait")


def check_command(line: str, available: frozenset[str] | None) -> None:
    """Raises WrongUsage if a plain command does not exist or lacks an option.

    The line must not be blank.

    `available` has the machine's programs other than schedlab's; None if unknown.
    """
    if not _ONE_COMMAND.fullmatch(line):
        return
    name, *words = line.split()
    if available is not None and name not in {*available, *workload_programs()}:
        close = get_close_matches(name, {*available, *workload_programs()}, 1)
        suggestion = f"; did you mean {close[0]!r}?" if close else "."
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
    listed = [str(stored.program("busybox")), "--list"]
    applets = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()
    programs = (path.name for path in stored.program("busybox").parent.iterdir())
    return frozenset({*applets, *_OF_THE_SHELL, *programs})

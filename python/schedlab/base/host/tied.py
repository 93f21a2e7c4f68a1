# SPDX-License-Identifier: MIT
"""Processes that end with the process that started them, however that ends."""

from __future__ import annotations

import os
import shutil
from functools import cache

_IF_STILL_THERE = 'test "$PPID" = "$0" || exit 1; exec "$@"'
"""The kernel tells of no death that came before it was asked to."""


@cache
def tie(signal: str = "KILL") -> tuple[str, ...]:
    """Returns what stands before a command; between the two, the PID of the process that starts it.

    The command gets the signal at that process's end. Empty where there is no setpriv (of util-linux):
    nothing is tied there.
    """
    path = shutil.which("setpriv")
    return (path, "--pdeathsig", signal, "--", "/bin/sh", "-c", _IF_STILL_THERE) if path else ()


def tied(signal: str = "KILL") -> tuple[str, ...]:
    """Returns what stands before a command that this process starts itself."""
    return (*tie(signal), str(os.getpid())) if tie(signal) else ()

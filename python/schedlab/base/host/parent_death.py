# SPDX-License-Identifier: MIT
"""Ties processes to their parent, so that they are killed when it ends."""

from __future__ import annotations

import os
import shutil
from functools import cache

_RUN_IF_PARENT_LIVES = 'test "$PPID" = "$0" || exit 1; exec "$@"'
"""The kernel sends no signal if the parent ended before the request, so the shell checks the parent."""


@cache
def tie(signal: str = "KILL") -> tuple[str, ...]:
    """Returns a command prefix; the PID of the starting process must follow it.

    The command gets the signal when that process ends. Empty without setpriv (util-linux): nothing
    is tied then.
    """
    path = shutil.which("setpriv")
    return (
        (path, "--pdeathsig", signal, "--", "/bin/sh", "-c", _RUN_IF_PARENT_LIVES) if path else ()
    )


def tied(signal: str = "KILL") -> tuple[str, ...]:
    """Returns the prefix for a command that this process starts."""
    return (*tie(signal), str(os.getpid())) if tie(signal) else ()

# SPDX-License-Identifier: MIT
"""Ties processes to their parent: if the parent ends, they are killed."""

from __future__ import annotations

import os
import shutil
from functools import cache

_RUN_IF_PARENT_LIVES = 'test "$PPID" = "$0" || exit 1; exec "$@"'
"""Shell script that runs a command unless the parent has already ended.

For a parent that ended before the request, the kernel would send no signal.
"""


@cache
def prefix_before_pid(signal: str = "KILL") -> tuple[str, ...]:
    """Returns a command prefix, after which the PID of the starting process must follow.

    The command gets the signal when that process ends. Empty without setpriv (util-linux):
    processes are then not tied.
    """
    path = shutil.which("setpriv")
    return (
        (path, "--pdeathsig", signal, "--", "/bin/sh", "-c", _RUN_IF_PARENT_LIVES) if path else ()
    )


def complete_prefix(signal: str = "KILL") -> tuple[str, ...]:
    """Returns a complete prefix for a command that this process starts."""
    return (*prefix_before_pid(signal), str(os.getpid())) if prefix_before_pid(signal) else ()

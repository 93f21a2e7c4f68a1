# SPDX-License-Identifier: MIT
"""Limits what a machine writes, and keeps some of its disk free."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from schedlab.errors import WrongUsage

TRACE_LIMIT = "SCHEDLAB_TRACE_LIMIT"
"""The environment variable with the limit, in MiB, which child processes inherit."""
TRACE_LIMIT_MIB = 4096
LOOK_SECONDS = 0.2
"""The time between two looks, in which the simulator writes some 100 MiB."""
_MIB = 1 << 20
_RESERVE_BYTES = 256 * _MIB
"""Free space that is kept for metrics and for other programs."""


class DiskWatch:
    """Watches how much is written into some folders, and how much of their disks is free."""

    def __init__(self, *folders: Path) -> None:
        """Raises WrongUsage if the environment's limit is not a number."""
        self._folders = folders
        self._limit_mib = trace_limit_mib()
        self._before = self._used()
        self._reserve = {
            folder: min(_RESERVE_BYTES, _free_bytes(folder) // 2) for folder in folders
        }
        self.problem = ""
        """What the last look has found, and what to do; "": nothing."""

    def has_problem(self) -> bool:
        """Measures again: true if too much was written, or too little of a disk is free."""
        self.problem = ""
        if self._used() - self._before > self._limit_mib * _MIB:
            self.problem = (
                f"the run had written {self._limit_mib:,} MiB and was ended; what was recorded until then is kept."
                f" Raise the limit of traces with {TRACE_LIMIT}=MIB"
            )
        for folder, reserve in self._reserve.items():
            free = _free_bytes(folder)
            if free < reserve:
                self.problem = (
                    f"{folder}: its disk has only {free // _MIB:,} MiB left, and the run was ended; what was recorded"
                    " until then is kept. Free some space, or name a folder of another disk for the results"
                )
        return bool(self.problem)

    def _used(self) -> int:
        """Bytes that all files in the folders take on disk; holes take none."""
        used = 0
        for folder in self._folders:
            for place, _, names in os.walk(folder):
                for name in names:
                    with suppress(OSError):  # it has just been removed
                        used += os.lstat(os.path.join(place, name)).st_blocks * 512
        return used


def _free_bytes(folder: Path) -> int:
    """Free bytes of a folder's disk; the folder need not exist yet."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def trace_limit_mib() -> int:
    """The most that one run may write. Raises WrongUsage if the environment's value is not a number."""
    text = os.environ.get(TRACE_LIMIT, str(TRACE_LIMIT_MIB))
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise WrongUsage(f"{TRACE_LIMIT}={text}: not a number of MiB; set it to one, or unset it")
    return int(text)

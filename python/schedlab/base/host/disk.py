# SPDX-License-Identifier: MIT
"""Limits the disk space that a machine uses, and keeps some space free."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from schedlab.errors import WrongUsage

TRACE_LIMIT_VARIABLE = "SCHEDLAB_TRACE_LIMIT"
"""Environment variable with the limit of a run in MiB; child processes inherit it."""
TRACE_LIMIT_MIB = 4096
CHECK_INTERVAL_S = 0.2
"""Seconds between checks. The simulator writes about 100 MiB in this time."""
_MIB = 1 << 20
_RESERVE_BYTES = 256 * _MIB
"""Free space reserved for metrics and other programs."""


class DiskWatch:
    """Watches how much was written to folders, and how much space their disks have left."""

    def __init__(self, *folders: Path) -> None:
        """Raises WrongUsage if the limit in the environment is not a number."""
        self._folders = folders
        self._limit_mib = trace_limit_mib()
        self._before = self._used_bytes()
        self._reserve = {
            folder: min(_RESERVE_BYTES, _free_bytes(folder) // 2) for folder in folders
        }
        self.problem = ""
        """The problem found by the last check, with a remedy; empty if there is none."""

    def has_problem(self) -> bool:
        """Checks the disk; returns True if too much was written, or too little space remains."""
        self.problem = ""
        if self._used_bytes() - self._before > self._limit_mib * _MIB:
            self.problem = (
                f"the run had written {self._limit_mib:,} MiB and was ended; what was recorded until then is kept."
                f" Raise the limit of traces with {TRACE_LIMIT_VARIABLE}=MIB"
            )
        for folder, reserve in self._reserve.items():
            free = _free_bytes(folder)
            if free < reserve:
                self.problem = (
                    f"{folder}: its disk has only {free // _MIB:,} MiB left, and the run was ended; what was recorded"
                    " until then is kept. Free some space, or name a folder of another disk for the results"
                )
        return bool(self.problem)

    def _used_bytes(self) -> int:
        """Returns the disk space that the folders' files occupy, without holes."""
        used_bytes = 0
        for folder in self._folders:
            for place, _, names in os.walk(folder):
                for name in names:
                    with suppress(OSError):  # it has just been removed
                        used_bytes += os.lstat(os.path.join(place, name)).st_blocks * 512
        return used_bytes


def _free_bytes(folder: Path) -> int:
    """Returns the free bytes of a folder's disk; the folder need not exist yet."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def trace_limit_mib() -> int:
    """Returns the limit of a run in MiB.

    Raises WrongUsage if the environment's value is not a number.
    """
    text = os.environ.get(TRACE_LIMIT_VARIABLE, str(TRACE_LIMIT_MIB))
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise WrongUsage(
            f"{TRACE_LIMIT_VARIABLE}={text}: not a whole number of MiB above 0; set one, or unset it"
        )
    return int(text)

# SPDX-License-Identifier: MIT
"""What this machine's kernel says, as `dmesg --follow` shows it: from now on."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_RECORD_BYTES = 8192
_LINES_MAX = 1000
"""Looked for at once, so that a kernel that says much does not hold others up."""


class KernelLog:
    """/dev/kmsg. It stays empty for users that may not read it."""

    def __init__(self, path: Path) -> None:
        self._descriptor = -1
        with suppress(OSError):
            self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self._descriptor, 0, os.SEEK_END)

    def take(self) -> list[str]:
        lines: list[str] = []
        for _ in range(_LINES_MAX if self._descriptor >= 0 else 0):
            try:
                record = os.read(self._descriptor, _RECORD_BYTES)
            except BlockingIOError:
                break
            except OSError:  # what was next is overwritten already: the following is there
                continue
            if not record:
                break
            lines += (_readable(line) for line in record.decode(errors="replace").splitlines())
        return [line for line in lines if line]

    def close(self) -> None:
        """Twice is once."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _readable(record: str) -> str:
    """Of "6,339,5140900,-;words": the time in seconds, and the words. A line that begins with a blank
    has details of the one before, for programs."""
    head, semicolon, words = record.partition(";")
    fields = head.split(",")
    if not semicolon or record.startswith(" ") or len(fields) < 3 or not fields[2].isdecimal():
        return ""
    return f"[{int(fields[2]) / 1e6:12.6f}] {words}"

# SPDX-License-Identifier: MIT
"""Reads new messages of this machine's kernel, like `dmesg --follow`."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_RECORD_BYTES = 8192
_LINES_MAX = 1000
"""Lines read per call, so that a verbose kernel does not delay other tasks."""


class KernelLog:
    """Reads /dev/kmsg; empty for users without permission."""

    def __init__(self, path: Path) -> None:
        self._descriptor = -1
        with suppress(OSError):
            self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self._descriptor, 0, os.SEEK_END)

    def take_lines(self) -> list[str]:
        lines: list[str] = []
        for _ in range(_LINES_MAX if self._descriptor >= 0 else 0):
            try:
                record = os.read(self._descriptor, _RECORD_BYTES)
            except BlockingIOError:
                break
            except OSError:  # the next message was overwritten; the one after it can be read
                continue
            if not record:
                break
            lines += (
                _readable_message(line) for line in record.decode(errors="replace").splitlines()
            )
        return [line for line in lines if line]

    def close(self) -> None:
        """Closes the file; may be called again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _readable_message(record: str) -> str:
    """Converts "6,339,5140900,-;words" to the time in seconds and the words.

    Returns "" for lines that begin with a blank, which hold details for programs.
    """
    head, semicolon, words = record.partition(";")
    fields = head.split(",")
    if not semicolon or record.startswith(" ") or len(fields) < 3 or not fields[2].isdecimal():
        return ""
    return f"[{int(fields[2]) / 1e6:12.6f}] {words}"

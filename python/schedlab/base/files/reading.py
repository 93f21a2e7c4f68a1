# SPDX-License-Identifier: MIT
"""Files that a user names, read as a whole: regular files alone, and only so much of them.

A device or a pipe may have no end, or wait for ever. Raised is FileRefused, with the file's name and what is wrong.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from schedlab.errors import FileRefused

BYTES_MAX = 64 << 20
"""Far more than a description that people or programs write by themselves."""
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def check_regular(path: Path) -> None:
    """Raises FileRefused for what is no regular file, or is not there."""
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except (OSError, ValueError) as error:  # a path with the character 0 is a ValueError
        raise _unreadable(path, error) from None
    if kind != stat.S_IFREG:
        raise FileRefused(f"it is {_KINDS.get(kind, 'no file')}", what=str(path), fix="name a file")


def read_bytes(path: Path, most: int = BYTES_MAX) -> bytes:
    """Returns the content of a file of at most so many bytes."""
    check_regular(path)
    try:
        # Another file may have come into its place: none is waited for.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise _unreadable(path, error) from None
    if len(content) > most:
        raise FileRefused(
            f"it has more than {most >> 20} MiB", what=str(path), fix="name a smaller file"
        )
    return content


def read_text(path: Path, most: int = BYTES_MAX) -> str:
    """Returns the same of a file in UTF-8."""
    try:
        return read_bytes(path, most).decode()
    except UnicodeDecodeError as error:
        raise FileRefused(f"expected UTF-8: {error.reason}", what=str(path)) from None


def _unreadable(path: Path, error: OSError | ValueError) -> FileRefused:
    why = error.strerror if isinstance(error, OSError) else error
    return FileRefused(f"it cannot be read: {why}", what=str(path))

# SPDX-License-Identifier: MIT
"""Reads files named by the user: only regular files up to a maximum size, in a known format.

Devices and pipes could be endless, or block. Raises FileRefused with the file's name and the
reason.
"""

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedlab import __version__
from schedlab.errors import FileRefused

BYTES_MAX = 64 << 20
"""Default maximum size; much more than any description written by people or programs."""
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def check_regular(path: Path) -> None:
    """Raises FileRefused if the path is not a regular file or does not exist."""
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except (
        OSError,
        ValueError,
    ) as error:  # Python raises ValueError for a path that contains the character 0
        raise _unreadable_error(path, error) from None
    if kind != stat.S_IFREG:
        raise FileRefused(
            f"this is {_KINDS.get(kind, 'not a file')}", what=str(path), fix="name a file"
        )


def read_bytes(path: Path, bytes_max: int = BYTES_MAX) -> bytes:
    """Returns a file's content. Raises FileRefused if it has more than `bytes_max` bytes."""
    check_regular(path)
    try:
        # A pipe may have replaced the file since the check; O_NONBLOCK prevents waiting for it.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            content = file.read(bytes_max + 1)
    except OSError as error:
        raise _unreadable_error(path, error) from None
    if len(content) > bytes_max:
        raise FileRefused(
            f"larger than {bytes_max >> 20} MiB", what=str(path), fix="name a smaller file"
        )
    return content


def read_text(path: Path, bytes_max: int = BYTES_MAX) -> str:
    """Returns the text of a UTF-8 file. Raises FileRefused like read_bytes."""
    try:
        return read_bytes(path, bytes_max).decode()
    except UnicodeDecodeError as error:
        raise FileRefused(
            f"not UTF-8: {error.reason}", what=str(path), fix="save it as UTF-8"
        ) from None


def _unreadable_error(path: Path, error: OSError | ValueError) -> FileRefused:
    why = error.strerror if isinstance(error, OSError) else error
    fix = "check its permissions" if isinstance(error, PermissionError) else "check the path"
    return FileRefused(f"cannot be read: {why}", what=str(path), fix=fix)


_SHOWN_MAX = 40
_FIRST_FORMAT = 1
"""Format version of a file that names none."""


def check_format(path: Path, content: Mapping[str, Any], known: int, kind: str) -> None:
    """Raises FileRefused if `content`, read from `path`, has another format version than `known`.

    `kind`: the kind of file, for the message.
    """
    version = content.get("format", _FIRST_FORMAT)
    if isinstance(version, bool) or version != known:
        shown = json.dumps(version)[:_SHOWN_MAX]
        raise FileRefused(f"{path}: {kind} of format {shown}; {explain_format(content, known)}")


def explain_format(content: Mapping[str, Any], known: int) -> str:
    """Returns a sentence: which format this release reads, and which release reads this file."""
    maker = content.get("schedlab")
    maker_name = json.dumps(maker)[1:-1][:_SHOWN_MAX] if isinstance(maker, str) else ""
    other = f"schedlab {maker_name}, which made it," if maker_name else "the release that made it"
    return f"schedlab {__version__} reads format {known}: use {other} to read it"

# SPDX-License-Identifier: MIT
"""Opens paths that other users cannot redirect, for root's access to files named by others.

Each folder must belong to root, the current user or the user who called sudo. Others must not be
able to write to it, unless it is sticky, as /tmp is. Links are followed only if root or the current
user owns them. The path is opened folder by folder, so that it cannot change between check and use.
linux/loader/trusted_path.c does the same for the server.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from pathlib import Path

from schedlab.errors import SchedlabError

_LINKS_MAX = 40
_STEP = getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC


class Untrusted(SchedlabError):
    """Another user could redirect a path, or owns the file."""


def open_trusted(path: str | Path, flags: int) -> int:
    """Returns the descriptor of an existing file of a trusted user with one hard link.

    Raises Untrusted, or OSError if it cannot be opened.
    """
    folder, name = _folder_of(str(path))
    try:
        file = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        _check_file(str(path), os.fstat(file))
    except BaseException:
        os.close(file)
        raise
    return file


def is_trusted_user(user: int) -> bool:
    """Returns whether the user is root or the current user."""
    return user in (0, os.geteuid())


def _calling_user() -> int:
    """Returns the user who called sudo, or else the current user."""
    text = os.environ.get("SUDO_UID", "")
    return int(text) if os.geteuid() == 0 and text.isdecimal() else os.geteuid()


def _folder_of(path: str) -> tuple[int, str]:
    """Returns a descriptor of a path's folder, and the path's last name."""
    rest = deque(_names(path))
    folder = _first(path)
    links = 0
    try:
        while rest:
            name = rest.popleft()
            following = _step(folder, name)
            if following is None and not rest:
                return folder, name
            if following is None:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            if isinstance(following, int):
                os.close(folder)
                folder = following
                _check_folder(path, name, os.fstat(folder))
                continue
            links += 1
            if links > _LINKS_MAX:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            rest.extendleft(reversed(_names(following)))
            if following.startswith("/"):
                os.close(folder)
                folder = _first(following)
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    except BaseException:
        os.close(folder)
        raise


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _first(path: str) -> int:
    first = "/" if path.startswith("/") else "."
    folder = os.open(first, _STEP | os.O_DIRECTORY)
    _check_folder(path, first, os.fstat(folder))
    return folder


def _step(folder: int, name: str) -> int | str | None:
    """Returns a folder's descriptor, the target of a trusted link, or None for other files."""
    inner = os.open(name, _STEP, dir_fd=folder)
    try:
        status = os.fstat(inner)
        if stat.S_ISDIR(status.st_mode):
            return os.dup(inner)
        if not stat.S_ISLNK(status.st_mode):
            return None
        if not is_trusted_user(status.st_uid):
            raise _untrusted(name, "is a link that belongs to another user", status)
        return os.readlink("", dir_fd=inner)
    finally:
        os.close(inner)


def _check_folder(path: str, name: str, status: os.stat_result) -> None:
    """Raises Untrusted if another user could create files in the folder."""
    mode = status.st_mode
    if not _has_trusted_owner(status):
        raise _untrusted(path, f"leads through '{name}', a folder of another user", status)
    # A group with the owner's number is the owner's private group.
    group = mode & stat.S_IWGRP and status.st_gid not in (0, status.st_uid)
    if (mode & stat.S_IWOTH or group) and not mode & stat.S_ISVTX:
        raise _untrusted(path, f"leads through '{name}', where other users can write", status)


def _check_file(path: str, status: os.stat_result) -> None:
    if not _has_trusted_owner(status):
        raise _untrusted(path, "belongs to another user", status)
    if stat.S_ISREG(status.st_mode) and status.st_nlink != 1:
        raise _untrusted(path, "has several hard links", status)


def _has_trusted_owner(status: os.stat_result) -> bool:
    return is_trusted_user(status.st_uid) or status.st_uid == _calling_user()


def _untrusted(path: str, what: str, status: os.stat_result) -> Untrusted:
    return Untrusted(
        f"{path} {what} (its owner is user {status.st_uid}): name a path below a folder that root or"
        " you own, and others cannot write to"
    )

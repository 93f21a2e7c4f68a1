# SPDX-License-Identifier: MIT
"""Opens paths that other users cannot redirect, so that root can safely use files that others
named.

Each folder on the path must belong to root, the current user or the user who called sudo. Others
must not be able to write to it, unless it is sticky, as /tmp is. Links are followed only if root or
the current user owns them. The path is opened folder by folder, so that it cannot change between
check and use. linux/loader/trusted_path.c does the same for the policy server.
"""

import errno
import os
import stat
from collections import deque
from pathlib import Path

from schedlab.errors import SchedlabError

_LINKS_MAX = 40
_STEP_FLAGS = getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC


class Untrusted(SchedlabError):
    """Another user could redirect the path, or owns the file."""


def open_trusted(path: str | Path, flags: int) -> int:
    """Opens an existing file and returns its descriptor.

    The file must belong to a trusted user and have one hard link. Raises Untrusted, or OSError if
    it cannot be opened.
    """
    folder, name = _open_parent(str(path))
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


def _open_parent(path: str) -> tuple[int, str]:
    """Returns a descriptor of the folder that contains the path's last entry, and that entry's name."""
    remaining = deque(_path_names(path))
    folder = _open_first_folder(path)
    links = 0
    try:
        while remaining:
            name = remaining.popleft()
            next_step = _open_step(folder, name)
            if next_step is None and not remaining:
                return folder, name
            if next_step is None:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            if isinstance(next_step, int):
                os.close(folder)
                folder = next_step
                _check_folder(path, name, os.fstat(folder))
                continue
            links += 1
            if links > _LINKS_MAX:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            remaining.extendleft(reversed(_path_names(next_step)))
            if next_step.startswith("/"):
                os.close(folder)
                folder = _open_first_folder(next_step)
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    except BaseException:
        os.close(folder)
        raise


def _path_names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _open_first_folder(path: str) -> int:
    first = "/" if path.startswith("/") else "."
    folder = os.open(first, _STEP_FLAGS | os.O_DIRECTORY)
    _check_folder(path, first, os.fstat(folder))
    return folder


def _open_step(folder: int, name: str) -> int | str | None:
    """Opens one entry of a path.

    Returns a descriptor of a folder, the target of a trusted link, or None for other files.
    """
    entry = os.open(name, _STEP_FLAGS, dir_fd=folder)
    try:
        status = os.fstat(entry)
        if stat.S_ISDIR(status.st_mode):
            return os.dup(entry)
        if not stat.S_ISLNK(status.st_mode):
            return None
        if not is_trusted_user(status.st_uid):
            raise _untrusted_error(name, "is a link that belongs to another user", status)
        return os.readlink("", dir_fd=entry)
    finally:
        os.close(entry)


def _check_folder(path: str, name: str, status: os.stat_result) -> None:
    """Raises Untrusted if another user could replace entries of the folder."""
    mode = status.st_mode
    if not _has_trusted_owner(status):
        raise _untrusted_error(path, f"leads through '{name}', a folder of another user", status)
    # By convention, a group with the number of the owner has no other members.
    is_group_writable = mode & stat.S_IWGRP and status.st_gid not in (0, status.st_uid)
    if (mode & stat.S_IWOTH or is_group_writable) and not mode & stat.S_ISVTX:
        raise _untrusted_error(path, f"leads through '{name}', where other users can write", status)


def _check_file(path: str, status: os.stat_result) -> None:
    if not _has_trusted_owner(status):
        raise _untrusted_error(path, "belongs to another user", status)
    if stat.S_ISREG(status.st_mode) and status.st_nlink != 1:
        raise _untrusted_error(path, "has several hard links", status)


def _has_trusted_owner(status: os.stat_result) -> bool:
    return is_trusted_user(status.st_uid) or status.st_uid == _calling_user()


def _untrusted_error(path: str, problem: str, status: os.stat_result) -> Untrusted:
    return Untrusted(
        f"{path} {problem} (its owner is user {status.st_uid}): name a path below a folder that root or"
        " you own, and others cannot write to"
    )

# SPDX-License-Identifier: MIT
"""Writes files atomically, hashes files, and locks folders."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """Yields a temporary path for a new file, which replaces `path` after the block.

    If the block raises, `path` is unchanged.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield new
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def file_hash(path: Path) -> str:
    """Returns the SHA-256 of a file."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def alone(place: Path) -> Iterator[None]:
    """Holds a folder's lock while a process fills it; other processes wait and then use the result.

    Deletes `fetch-*` left by killed processes.
    """
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for remains in place.glob("fetch-*"):
            shutil.rmtree(remains) if remains.is_dir() else remains.unlink()
        yield

# SPDX-License-Identifier: MIT
"""Files that are there whole, or not at all; and what is in them, in a few characters."""

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
    """Gives a place beside `path` for a new file, which is at `path` after the block; or gone, with what
    was there left as it was, if the block raises."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield new
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def file_hash(path: Path) -> str:
    """SHA-256."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def alone(place: Path) -> Iterator[None]:
    """Lets one process at a time fill a folder: what another has begun is finished, and then serves this
    one, too. What a process that was killed has left (`fetch-*`) is gone."""
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for remains in place.glob("fetch-*"):
            shutil.rmtree(remains) if remains.is_dir() else remains.unlink()
        yield

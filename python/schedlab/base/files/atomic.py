# SPDX-License-Identifier: MIT
"""Writes files atomically, hashes files, and locks folders."""

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yields a temporary path for a new file, which replaces `path` after the block.

    If the block raises an exception, `path` stays as it was.
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
def lock_folder(path: Path) -> Iterator[None]:
    """Holds the lock of a folder while filling it; other processes wait, and then use the result.

    Deletes `fetch-*` folders that killed processes have left.
    """
    path.mkdir(parents=True, exist_ok=True)
    with (path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for leftover in path.glob("fetch-*"):
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        yield


def fetch_once(path: Path, fetch: Callable[[Path], Path]) -> Path:
    """Returns a folder that is fetched at the first call; other processes wait, and then use it.

    `fetch` gets a temporary folder, and returns the folder in it that becomes `path`.
    """
    with lock_folder(path.parent):
        if not path.exists():
            with tempfile.TemporaryDirectory(dir=path.parent, prefix="fetch-") as scratch:
                fetch(Path(scratch)).rename(path)
    return path

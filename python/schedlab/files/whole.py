# SPDX-License-Identifier: MIT
"""Files that are there whole, or not at all; and what is in them, in a few characters."""

from __future__ import annotations

import hashlib
import os
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

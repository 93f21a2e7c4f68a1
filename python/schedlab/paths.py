# SPDX-License-Identifier: MIT
"""Locates the checkout, the caches and the folders of runs."""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
INSTALLED = (_PACKAGE / "checkout").is_dir()
"""True if pip installed this package, which then contains a part of the checkout and its compiled programs."""
ROOT = _PACKAGE / "checkout" if INSTALLED else _PACKAGE.parents[1]
"""The checkout."""
COMMAND = "schedlab" if INSTALLED else "./schedlab"
"""The command that starts schedlab."""
BUILD = ROOT / "build"
RUNS = Path("runs").absolute() if INSTALLED else ROOT / "runs"
STUDIES = ROOT / "studies"
"""Contains one folder per study, named by its number."""


def new_runs_folder(name: str) -> Path:
    """Creates a new folder in runs/, named by the current time.

    It is created immediately, so that a command in the same second uses another one. If it is still
    empty at the end of the program, it is removed.
    """
    stem = f"{datetime.now():%Y%m%d-%H%M%S}-{name}"
    RUNS.mkdir(parents=True, exist_ok=True)
    for number in count(1):
        place = RUNS / (stem if number == 1 else f"{stem}-{number}")
        with suppress(FileExistsError):
            place.mkdir()
            break
    atexit.register(_remove_if_empty, place)
    return place


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()
        folder.parent.rmdir()


SHARED = "SCHEDLAB_SHARED_CACHE"
"""The variable that names a shared cache, which another user filled as XDG_CACHE_HOME."""


def cache_folder() -> Path:
    """Returns the folder for data stored between program starts, apart from the launcher's."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "schedlab"


def shared_cache() -> Path | None:
    """Returns the read-only cache that many users share, or None if none is named."""
    base = os.environ.get(SHARED, "")
    return Path(base) / "schedlab" if base.startswith("/") else None


def in_caches(name: str) -> Path:
    """Returns the path of a cached item: in the user's own cache, unless only the shared one contains it."""
    user_cache, shared = cache_folder() / name, shared_cache()
    return (
        shared / name
        if shared and not user_cache.exists() and (shared / name).exists()
        else user_cache
    )

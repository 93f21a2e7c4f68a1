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
IS_INSTALLED = (_PACKAGE / "checkout").is_dir()
"""True if pip installed this package, which then contains a copy of part of a checkout."""
ROOT = _PACKAGE / "checkout" if IS_INSTALLED else _PACKAGE.parents[1]
"""Path of the checkout, or of its copy in an installed package."""
COMMAND_NAME = "schedlab" if IS_INSTALLED else "./schedlab"
"""The command that starts schedlab, for messages."""
BUILD_FOLDER = ROOT / "build"
RUNS_FOLDER = Path("runs").absolute() if IS_INSTALLED else ROOT / "runs"
STUDIES_FOLDER = ROOT / "studies"
"""Contains one folder per study, named by its number."""


def new_runs_folder(name: str) -> Path:
    """Creates a new folder in runs/, named by the current time.

    It is created at once, so that two commands in the same second get different folders. If it is
    empty when the program ends, it is removed.
    """
    stem = f"{datetime.now():%Y%m%d-%H%M%S}-{name}"
    RUNS_FOLDER.mkdir(parents=True, exist_ok=True)
    for number in count(1):
        place = RUNS_FOLDER / (stem if number == 1 else f"{stem}-{number}")
        with suppress(FileExistsError):
            place.mkdir()
            break
    atexit.register(_remove_if_empty, place)
    return place


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()
        folder.parent.rmdir()


SHARED_CACHE_VARIABLE = "SCHEDLAB_SHARED_CACHE"
"""Environment variable that names a shared cache, which another user has filled as XDG_CACHE_HOME."""


def cache_folder() -> Path:
    """Returns the folder for data that is kept between commands. The launcher's environment is elsewhere."""
    user_cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(user_cache) / "schedlab"


def shared_cache() -> Path | None:
    """Returns the read-only cache that many users share, or None if none is named."""
    named_cache = os.environ.get(SHARED_CACHE_VARIABLE, "")
    return Path(named_cache) / "schedlab" if named_cache.startswith("/") else None


def find_in_caches(name: str) -> Path:
    """Returns the path of an item in the user's cache, or in the shared cache if only the shared cache contains it."""
    user_cache, shared = cache_folder() / name, shared_cache()
    return (
        shared / name
        if shared and not user_cache.exists() and (shared / name).exists()
        else user_cache
    )

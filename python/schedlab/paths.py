# SPDX-License-Identifier: MIT
"""Where things are."""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
INSTALLED = (_PACKAGE / "checkout").is_dir()
"""Whether pip has installed this package, which then holds a part of the checkout, with what is compiled in it."""
ROOT = _PACKAGE / "checkout" if INSTALLED else _PACKAGE.parents[1]
"""The checkout."""
COMMAND = "schedlab" if INSTALLED else "./schedlab"
"""How a user starts it."""
BUILD = ROOT / "build"
RUNS = Path("runs").absolute() if INSTALLED else ROOT / "runs"
STUDIES = ROOT / "studies"
"""A folder for each, named by its number."""


def new_runs_folder(name: str) -> Path:
    """A new folder in runs/, in the order of time.

    It is there at once, so that a command of the same second takes another, and it is gone at the
    end of the program if nothing was put into it.
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
"""The variable that names a folder which was XDG_CACHE_HOME when another user started schedlab."""


def cache_folder() -> Path:
    """What is kept between starts, besides what the launcher keeps."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "schedlab"


def shared_cache() -> Path | None:
    """Returns the cache that many users share, to which nothing is written, or None if none is named."""
    base = os.environ.get(SHARED, "")
    return Path(base) / "schedlab" if base.startswith("/") else None


def in_caches(name: str) -> Path:
    """The place of what is kept under this name: in the user's own cache, unless the shared one alone has it."""
    user_cache, shared = cache_folder() / name, shared_cache()
    return (
        shared / name
        if shared and not user_cache.exists() and (shared / name).exists()
        else user_cache
    )

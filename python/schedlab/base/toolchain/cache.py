# SPDX-License-Identifier: MIT
"""Lists and deletes schedlab's files in the cache, by their names.

Files with other names are never deleted.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from schedlab.paths import cache_folder

_KEY, _SHORT = r"[0-9a-f]{64}", r"[0-9a-f]{16}"


@dataclass(frozen=True)
class Part:
    """A part of the cache; `entries` are regular expressions of complete paths relative to the cache."""

    about: str
    again: str
    """How the part is restored."""
    entries: tuple[str, ...]


PARTS = {
    "python": Part(
        "Python environments, except the one in use",
        "the next command fetches its own",
        (rf"python/({_KEY}|{_SHORT})(-3\.\d+)?",),
    ),
    "spike": Part(
        "Spike, and what drives it",
        "the next run on it fetches it",
        (
            r"spike/[0-9a-z.]+-[0-9a-f]{12}",
            r"spike/spike-driver-[0-9a-f]{12}-[\d.]+",
            r"gnu/libstdc\+\+-12",
        ),
    ),
    "zig": Part(
        "what the compiler has made for itself",
        "the next build makes it",
        ("zig",),
    ),
    "linux": Part(
        "the Linux guest: packages and images",
        "the next guest fetches them, perhaps in newer versions",
        (
            rf"linux/trees/{_SHORT}",
            r"linux/images/[0-9a-f]{24}\.cpio",
            r"linux/packages\.lock\.json",
        ),
    ),
    "charts": Part(
        "scripts that draw charts",
        "the next report makes them",
        (rf"(charts|vega)-{_SHORT}\.js",),
    ),
    "peers": Part(
        "simulators that benchmarks compare with",
        "their benchmark fetches them",
        (rf"peers/[a-z0-9_-]+-{_SHORT}-3\.\d+",),
    ),
    "logs": Part(
        "logs of installations and of faults; how long runs took",
        "they are created again",
        (r"errors/schedlab-error-[a-z0-9_]+\.log", r"install\.log", r"durations\.json"),
    ),
}
_REMOVED = r"(\.removed-\d+)?"
"""Suffix of entries whose deletion was interrupted."""
_NEVER_REMOVED = (r"(.*/)?lock", r"(install|python)\.lock", r"dask", r"tmp")
"""Entries that stay: locks, and working folders of Dask and running commands."""


@dataclass(frozen=True)
class Entry:
    """An entry of the cache."""

    path: Path
    bytes: int
    """Bytes on disk."""


def entries(part: str) -> list[Entry]:
    """Returns the entries of a part that are not in use."""
    patterns = [re.compile(f"({pattern}){_REMOVED}") for pattern in PARTS[part].entries]
    return [
        Entry(path, _size(path))
        for path, name in _all()
        if any(pattern.fullmatch(name) for pattern in patterns) and not _is_in_use(path)
    ]


def strangers() -> list[str]:
    """Returns the names of files in the cache that are not schedlab's."""
    ours = [
        re.compile(f"({pattern}){_REMOVED}") for part in PARTS.values() for pattern in part.entries
    ]
    ours += [re.compile(pattern) for pattern in _NEVER_REMOVED]
    return [name for _, name in _all() if not any(pattern.fullmatch(name) for pattern in ours)]


def remove(entry: Entry) -> None:
    """Deletes an entry, or only the link if it is one. Raises OSError."""
    if entry.path.is_dir() and not entry.path.is_symlink():
        # Rename it first, because a half-deleted folder would look complete.
        doomed = entry.path.with_name(f"{entry.path.name}.removed-{os.getpid()}")
        entry.path.rename(doomed)
        shutil.rmtree(doomed)
    else:
        entry.path.unlink(missing_ok=True)


def _all() -> Iterator[tuple[Path, str]]:
    """Yields the entries of the cache and of its folders of parts, with relative names."""
    holders = {
        str(Path(entry).parent) for part in PARTS.values() for entry in part.entries if "/" in entry
    }
    yield from _in(cache_folder(), "", holders | {str(Path(holder).parent) for holder in holders})


def _in(folder: Path, name: str, holders: set[str]) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        relative = f"{name}{path.name}"
        if relative in holders and path.is_dir() and not path.is_symlink():
            yield from _in(path, f"{relative}/", holders)
        else:
            yield path, relative


def _is_in_use(path: Path) -> bool:
    """Returns whether this process, or another visible one, runs a program in this folder."""
    real = path.resolve()
    running = [Path(sys.prefix).resolve(), *_programs()]
    return any(program_path == real or real in program_path.parents for program_path in running)


def _programs() -> Iterator[Path]:
    """Yields the programs of all running commands, without resolving the last link, which leads to
    the system's Python.
    """
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            program = process.read_bytes().split(b"\0")[0].decode()
        except (OSError, UnicodeDecodeError):
            continue
        if program.startswith("/"):
            yield Path(program).parent.resolve() / Path(program).name


def _size(path: Path) -> int:
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size
    inside = (Path(place) / name for place, _, files in os.walk(path) for name in files)
    return sum(entry.lstat().st_blocks * 512 for entry in inside)

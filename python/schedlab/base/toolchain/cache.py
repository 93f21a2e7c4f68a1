# SPDX-License-Identifier: MIT
"""Lists and deletes schedlab's files in the user's cache.

Recognises them by their names, and never deletes files with other names.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from schedlab.paths import cache_folder

_HASH, _SHORT_HASH = r"[0-9a-f]{64}", r"[0-9a-f]{16}"


@dataclass(frozen=True)
class Part:
    """A kind of files in the cache. `entries`: regular expressions of their paths in the cache."""

    about: str
    again: str
    """How the files come back after they were deleted."""
    entries: tuple[str, ...]


CACHE_PARTS = {
    "python": Part(
        "Python environments, except the one in use",
        "the next command fetches its own",
        (rf"python/({_HASH}|{_SHORT_HASH})(-3\.\d+)?",),
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
            rf"linux/trees/{_SHORT_HASH}",
            r"linux/images/[0-9a-f]{24}\.cpio",
            r"linux/packages\.lock\.json",
        ),
    ),
    "sched_ext": Part(
        "sched_ext schedulers, ready for the simulator",
        "the next run makes them again",
        (rf"sched_ext/{_SHORT_HASH}\.(btf|image|json)",),
    ),
    "charts": Part(
        "scripts that draw charts",
        "the next report makes them",
        (rf"(charts|vega)-{_SHORT_HASH}\.js",),
    ),
    "peers": Part(
        "simulators that benchmarks compare with",
        "their benchmark fetches them",
        (rf"peers/[a-z0-9_-]+-{_SHORT_HASH}-3\.\d+",),
    ),
    "logs": Part(
        "logs of installations and of faults; how long runs took",
        "they are created again",
        (r"errors/schedlab-error-[a-z0-9_]+\.log", r"install\.log", r"durations\.json"),
    ),
}
_REMOVAL_SUFFIX = r"(\.removed-\d+)?"
"""Suffix of an entry that is being deleted, or whose deletion was interrupted."""
_PROTECTED_ENTRIES = (r"(.*/)?lock", r"(install|python)\.lock", r"dask", r"tmp")
"""Entries that are never deleted: locks, and temporary folders of Dask and running commands."""


@dataclass(frozen=True)
class Entry:
    """A file or folder in the cache."""

    path: Path
    bytes: int
    """Bytes that it occupies on the disk."""


def entries(part: str) -> list[Entry]:
    """Returns the entries of one kind (a key of PARTS) that are not in use."""
    patterns = [
        re.compile(f"({pattern}){_REMOVAL_SUFFIX}") for pattern in CACHE_PARTS[part].entries
    ]
    return [
        Entry(path, _disk_bytes(path))
        for path, name in _all_entries()
        if any(pattern.fullmatch(name) for pattern in patterns) and not _is_in_use(path)
    ]


def unknown_files() -> list[str]:
    """Returns the names of files in the cache that schedlab did not make."""
    known_patterns = [
        re.compile(f"({pattern}){_REMOVAL_SUFFIX}")
        for part in CACHE_PARTS.values()
        for pattern in part.entries
    ]
    known_patterns += [re.compile(pattern) for pattern in _PROTECTED_ENTRIES]
    return [
        name
        for _, name in _all_entries()
        if not any(pattern.fullmatch(name) for pattern in known_patterns)
    ]


def remove(entry: Entry) -> None:
    """Deletes an entry, or only the link if it is one. Raises OSError."""
    if entry.path.is_dir() and not entry.path.is_symlink():
        # Renamed first: an interrupted deletion must not leave a folder that looks complete.
        renamed_path = entry.path.with_name(f"{entry.path.name}.removed-{os.getpid()}")
        entry.path.rename(renamed_path)
        shutil.rmtree(renamed_path)
    else:
        entry.path.unlink(missing_ok=True)


def _all_entries() -> Iterator[tuple[Path, str]]:
    """Yields all entries of the cache and of the folders in it that hold entries, with their names."""
    parent_names = {
        str(Path(entry).parent)
        for part in CACHE_PARTS.values()
        for entry in part.entries
        if "/" in entry
    }
    yield from _cached_entries(
        cache_folder(),
        "",
        parent_names | {str(Path(parent_name).parent) for parent_name in parent_names},
    )


def _cached_entries(folder: Path, name: str, parent_names: set[str]) -> Iterator[tuple[Path, str]]:
    """Yields the cache's entries below `folder`, each with its path in the cache."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        relative = f"{name}{path.name}"
        if relative in parent_names and path.is_dir() and not path.is_symlink():
            yield from _cached_entries(path, f"{relative}/", parent_names)
        else:
            yield path, relative


def _is_in_use(path: Path) -> bool:
    """Returns whether a visible process executes a program in this folder."""
    real = path.resolve()
    running = [Path(sys.prefix).resolve(), *_running_programs()]
    return any(program_path == real or real in program_path.parents for program_path in running)


def _running_programs() -> Iterator[Path]:
    """Yields the programs that running processes execute.

    The last link of a path is not resolved, because it leads to the system's Python.
    """
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            program = process.read_bytes().split(b"\0")[0].decode()
        except (OSError, UnicodeDecodeError):
            continue
        if program.startswith("/"):
            yield Path(program).parent.resolve() / Path(program).name


def _disk_bytes(path: Path) -> int:
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size
    files_inside = (Path(place) / name for place, _, files in os.walk(path) for name in files)
    return sum(entry.lstat().st_blocks * 512 for entry in files_inside)

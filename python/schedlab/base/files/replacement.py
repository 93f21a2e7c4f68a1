# SPDX-License-Identifier: MIT
"""Decides which files schedlab may replace: only unchanged files that it made.

A folder made by schedlab has a list of its files with hashes, in the format of sha256sum. Files
that are missing in the list or have changed belong to the user.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from schedlab.base.files.atomic import file_hash, written
from schedlab.errors import FileRefused, WrongUsage, parameter

LIST = "made.sha256"
"""The list's name; `sha256sum --check made.sha256` reads it."""


NAME_BYTES_MAX = 255


def below(folder: Path, name: str) -> Path:
    """Returns the path of an entry in a folder, for a name read from a file.

    Raises FileRefused if the name leads out of the folder or is invalid.
    """
    single = name not in ("", ".", "..") and not set(name) & {"/", "\0"}
    if not single or len(name.encode(errors="surrogatepass")) > NAME_BYTES_MAX:
        raise FileRefused(f"{folder}: {name[:80]!r} cannot be a file name")
    return folder / name


def write_list(folder: Path) -> None:
    """Writes the list of all files in the folder."""
    _write(folder, {name: file_hash(folder / name) for name in entries(folder)})


def add_to_list(path: Path) -> None:
    """Adds a new file to its folder's list."""
    _write(path.parent, {**(read_list(path.parent) or {}), path.name: file_hash(path)})


def read_list(folder: Path) -> dict[str, str] | None:
    """Returns hashes by names relative to the folder, or None without a readable list."""
    if not (folder / LIST).is_file():  # a pipe would never end
        return None
    try:
        lines = (folder / LIST).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines) if name}


def strange(folder: Path) -> str:
    """Returns why a folder may not be replaced; "" if schedlab made all of it."""
    names = entries(folder)
    if not names:
        return ""
    listed = read_list(folder)
    if listed is None:
        return f"it has no {LIST}, which lists the files that schedlab made"
    for name, path in names.items():
        if name not in listed:
            return f"{name} in it is not by schedlab"
        if path.is_symlink() or not path.is_file() or file_hash(path) != listed[name]:
            return f"{name} in it is not as schedlab has made it"
    return ""


def remove(folder: Path) -> None:
    """Deletes schedlab's files; the folder remains if it contains others."""
    listed = read_list(folder) or {}
    for name, path in entries(folder).items():
        if not path.is_symlink() and path.is_file() and listed.get(name) == file_hash(path):
            path.unlink()
    (folder / LIST).unlink(missing_ok=True)
    for place, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            os.rmdir(place)


def check_folder(name: str, place: Path) -> None:
    """Raises WrongUsage if the folder may not be replaced; `name` is the parameter that named it."""
    if not os.path.lexists(place):
        return
    if not place.is_dir():
        raise WrongUsage("this is a file", what=parameter(name, place), fix="name a folder")
    why = strange(place)
    if why:
        raise WrongUsage(
            f"the folder would be replaced, but {why}",
            what=parameter(name, place),
            fix="name another folder, or move this one away",
        )


def check_file(name: str, place: Path, ours: bool = False) -> None:
    """Raises WrongUsage if the file cannot be written or may not be replaced.

    `ours` means that schedlab chose the name, so that the folder's list decides. A file named by
    the user is never replaced.
    """
    place = place.absolute()
    if not place.parent.is_dir():
        raise WrongUsage(
            f"the folder {place.parent} does not exist",
            what=parameter(name, place),
            fix="create it first",
        )
    if place.is_dir():
        raise WrongUsage(
            "this is a folder", what=parameter(name, place), fix="name the file to write"
        )
    if not os.path.lexists(place):
        return
    listed = (ours and read_list(place.parent)) or {}
    if place.is_symlink() or not place.is_file() or listed.get(place.name) != file_hash(place):
        raise WrongUsage(
            "the file exists and is not replaced",
            what=parameter(name, place),
            fix="name another file, or move this one away",
        )


def entries(folder: Path) -> dict[str, Path]:
    """Returns all files except the list, by names relative to the folder."""
    by_name = {}
    for place, folders, files in os.walk(folder):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        for name in (*files, *links):
            path = Path(place) / name
            by_name[str(path.relative_to(folder))] = path
    by_name.pop(LIST, None)
    return dict(sorted(by_name.items()))


def _write(folder: Path, listed: dict[str, str]) -> None:
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(listed.items()))
    with written(folder / LIST) as new:
        new.write_text(lines, "utf-8")

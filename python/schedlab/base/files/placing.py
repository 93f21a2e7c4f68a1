# SPDX-License-Identifier: MIT
"""What may be replaced: only what schedlab made, and as it made it.

A folder that schedlab fills has a list of what is in it, with hashes, in the format of sha256sum. What
the list does not have, or has otherwise, is not schedlab's.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from schedlab.base.files.whole import file_hash, written
from schedlab.errors import FileRefused, WrongUsage, parameter

LIST = "made.sha256"
"""`sha256sum --check made.sha256` reads it, too."""


NAME_BYTES_MAX = 255


def below(folder: Path, name: str) -> Path:
    """Returns the path of an entry of a folder, by a name that came from a file.

    Raises FileRefused if the name leads out of the folder, or no file can have it.
    """
    single = name not in ("", ".", "..") and not set(name) & {"/", "\0"}
    if not single or len(name.encode(errors="surrogatepass")) > NAME_BYTES_MAX:
        raise FileRefused(f"{folder}: {name[:80]!r} cannot be the name of an entry in it")
    return folder / name


def write_list(folder: Path) -> None:
    """Writes the list of all files that are in the folder now."""
    _write(folder, {name: file_hash(folder / name) for name in entries(folder)})


def add_to_list(path: Path) -> None:
    """Adds a file that was put later into a folder of schedlab's."""
    _write(path.parent, {**(read_list(path.parent) or {}), path.name: file_hash(path)})


def read_list(folder: Path) -> dict[str, str] | None:
    """Returns hashes by names relative to the folder, or None if it has no list that can be read."""
    if not (folder / LIST).is_file():  # a pipe would never end
        return None
    try:
        lines = (folder / LIST).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines) if name}


def strange(folder: Path) -> str:
    """What keeps a folder from being replaced, in words; "": all of it is as schedlab made it."""
    names = entries(folder)
    if not names:
        return ""
    listed = read_list(folder)
    if listed is None:
        return f"it has no {LIST}, by which schedlab knows what it has made"
    for name, path in names.items():
        if name not in listed:
            return f"{name} in it is not by schedlab"
        if path.is_symlink() or not path.is_file() or file_hash(path) != listed[name]:
            return f"{name} in it is not as schedlab has made it"
    return ""


def remove(folder: Path) -> None:
    """Takes away what schedlab made; the folder stays if something else is in it."""
    listed = read_list(folder) or {}
    for name, path in entries(folder).items():
        if not path.is_symlink() and path.is_file() and listed.get(name) == file_hash(path):
            path.unlink()
    (folder / LIST).unlink(missing_ok=True)
    for place, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            os.rmdir(place)


def check_folder(name: str, place: Path) -> None:
    """Raises WrongUsage if the folder may not be replaced. `name`: the parameter that named it."""
    if not os.path.lexists(place):
        return
    if not place.is_dir():
        raise WrongUsage("that is a file", what=parameter(name, place), fix="name a folder")
    why = strange(place)
    if why:
        raise WrongUsage(
            f"the folder would be replaced, but {why}",
            what=parameter(name, place),
            fix="name another one, or move that one away",
        )


def check_file(name: str, place: Path, ours: bool = False) -> None:
    """Raises WrongUsage if the file cannot be written, or is there and may not be replaced.

    `ours`: its name and its folder are of schedlab's choice, so that the list tells whether the
    file is, too. A file that the user has named is never replaced.
    """
    place = place.absolute()
    if not place.parent.is_dir():
        raise WrongUsage(
            f"there is no folder {place.parent}", what=parameter(name, place), fix="make it first"
        )
    if place.is_dir():
        raise WrongUsage("a folder", what=parameter(name, place), fix="name the file to write")
    if not os.path.lexists(place):
        return
    listed = (ours and read_list(place.parent)) or {}
    if place.is_symlink() or not place.is_file() or listed.get(place.name) != file_hash(place):
        raise WrongUsage(
            "there is such a file already, which is not replaced",
            what=parameter(name, place),
            fix="name another one, or move that one away",
        )


def entries(folder: Path) -> dict[str, Path]:
    """All but folders and the list itself, by their names relative to the folder."""
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

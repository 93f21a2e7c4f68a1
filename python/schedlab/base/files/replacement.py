# SPDX-License-Identifier: MIT
"""Decides which files schedlab may replace: only unchanged files that it made itself.

Each folder made by schedlab contains a list of its files with their hashes, in the format of
sha256sum. Files that are not in the list, or have changed, belong to the user.
"""

import os
from contextlib import suppress
from pathlib import Path

from schedlab.base.files.atomic import atomic_write, file_hash
from schedlab.errors import FileRefused, WrongUsage, format_parameter

LIST_NAME = "made.sha256"
"""Name of the list, which `sha256sum --check made.sha256` can read."""


NAME_BYTES_MAX = 255


def path_in_folder(folder: Path, name: str) -> Path:
    """Returns the path of an entry in a folder, for a name that was read from a file.

    Raises FileRefused if the name is invalid or leads out of the folder.
    """
    is_file_name = name not in ("", ".", "..") and not set(name) & {"/", "\0"}
    if not is_file_name or len(name.encode(errors="surrogatepass")) > NAME_BYTES_MAX:
        raise FileRefused(
            f"lists {name[:80]!r}, which cannot be a file name",
            what=str(folder),
            fix="make this folder again",
        )
    return folder / name


def write_list(folder: Path) -> None:
    """Writes the list of all files in the folder."""
    _write_hashes(folder, {name: file_hash(folder / name) for name in list_files(folder)})


def add_to_list(path: Path) -> None:
    """Adds a new file to its folder's list."""
    _write_hashes(path.parent, {**(read_list(path.parent) or {}), path.name: file_hash(path)})


def read_list(folder: Path) -> dict[str, str] | None:
    """Returns the hash of each file in the list by its name; None without a readable list."""
    if not (folder / LIST_NAME).is_file():  # a pipe would never end
        return None
    try:
        lines = (folder / LIST_NAME).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines) if name}


def why_not_replaceable(folder: Path) -> str:
    """Returns why a folder may not be replaced; "" if schedlab made everything in it."""
    names = list_files(folder)
    if not names:
        return ""
    hashes = read_list(folder)
    if hashes is None:
        return f"it has no {LIST_NAME}, which lists the files that schedlab made"
    for name, path in names.items():
        if name not in hashes:
            return f"{name} in it is not by schedlab"
        if path.is_symlink() or not path.is_file() or file_hash(path) != hashes[name]:
            return f"{name} in it is not as schedlab has made it"
    return ""


def remove(folder: Path) -> None:
    """Deletes schedlab's files in a folder, and the folder itself if it is then empty."""
    hashes = read_list(folder) or {}
    for name, path in list_files(folder).items():
        if not path.is_symlink() and path.is_file() and hashes.get(name) == file_hash(path):
            path.unlink()
    (folder / LIST_NAME).unlink(missing_ok=True)
    for place, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            os.rmdir(place)


def check_folder(name: str, place: Path) -> None:
    """Raises WrongUsage if the folder `place` may not be replaced.

    `name`: the parameter that named it.
    """
    if not os.path.lexists(place):
        return
    if not place.is_dir():
        raise WrongUsage("this is a file", what=format_parameter(name, place), fix="name a folder")
    why = why_not_replaceable(place)
    if why:
        raise WrongUsage(
            f"the folder would be replaced, but {why}",
            what=format_parameter(name, place),
            fix="name another folder, or move this one away",
        )


def check_file(name: str, place: Path, has_default_name: bool = False) -> None:
    """Raises WrongUsage if the file `place` cannot be written or may not be replaced.

    `has_default_name`: schedlab chose the file's name, so it may be replaced if it is in the folder's list. A
    file named by the user is never replaced.
    """
    place = place.absolute()
    if not place.parent.is_dir():
        raise WrongUsage(
            f"the folder {place.parent} does not exist",
            what=format_parameter(name, place),
            fix="create it first",
        )
    if place.is_dir():
        raise WrongUsage(
            "this is a folder", what=format_parameter(name, place), fix="name the file to write"
        )
    if not os.path.lexists(place):
        return
    hashes = (has_default_name and read_list(place.parent)) or {}
    if place.is_symlink() or not place.is_file() or hashes.get(place.name) != file_hash(place):
        raise WrongUsage(
            "the file exists and is not replaced",
            what=format_parameter(name, place),
            fix="name another file, or move this one away",
        )


def list_files(folder: Path) -> dict[str, Path]:
    """Returns all files in a folder except the list, by their names relative to the folder."""
    by_name = {}
    for place, folders, files in os.walk(folder):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        for name in (*files, *links):
            path = Path(place) / name
            by_name[str(path.relative_to(folder))] = path
    by_name.pop(LIST_NAME, None)
    return dict(sorted(by_name.items()))


def _write_hashes(folder: Path, hashes: dict[str, str]) -> None:
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(hashes.items()))
    with atomic_write(folder / LIST_NAME) as new:
        new.write_text(lines, "utf-8")

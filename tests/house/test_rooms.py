# SPDX-License-Identifier: MIT
"""Tests that packages import only what docs/architecture.md permits, and that no cycle exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from conftest import ROOT

PACKAGE = "python/schedlab"
IMPORTED = {"schedlab": "python", "schedlab_tools": "tools"}
"""Parent folder of each Python package."""
C_ROOTS = ("", "kernel", "user", "linux")
"""Include folders, in addition to the folder of the file."""


@cache
def rooms() -> dict[str, tuple[str, ...]]:
    """Returns, per package folder, the permitted packages in the table's order."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| `([\w/]+)/` \|.*\|([^|]*)\|$", text, re.MULTILINE)
    return {name: tuple(re.findall(r"`([\w/]+)`", known)) for name, known in rows}


def room_of(path: str) -> str:
    """Returns the innermost package of a file, or ""."""
    return max((room for room in rooms() if path.startswith(f"{room}/")), key=len, default="")


def modules_of(path: Path) -> Iterator[str]:
    """Yields the project files or folders that a Python file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            package = name.partition(".")[0]
            if package in IMPORTED:
                yield f"{IMPORTED[package]}/{name.replace('.', '/')}"


def included_by(path: Path) -> Iterator[str]:
    for name in re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE):
        folders = [path.parent, *(ROOT / root for root in C_ROOTS)]
        for candidate in (folder / name for folder in folders):
            if candidate.is_file():
                yield str(candidate.resolve().relative_to(ROOT))
                break


def used_by(path: Path) -> Iterator[str]:
    return modules_of(path) if path.suffix == ".py" else included_by(path)


def allowed(room: str, other: str) -> bool:
    """Returns whether a package may import another; a listed package permits its subpackages.

    Python packages are listed without the path of the top package.
    """
    known = rooms()[room]
    places = [place for name in known for place in (name, f"{PACKAGE}/{name}")]
    return other == room or any(other == place or other.startswith(f"{place}/") for place in places)


@pytest.mark.parametrize("room", sorted(rooms()))
def test_a_room_knows_what_it_may(room: str) -> None:
    files = [
        path
        for ending in ("*.py", "*.[chS]", "*.cc")
        for path in sorted((ROOT / room).rglob(ending))
        if room_of(str(path.relative_to(ROOT))) == room
    ]
    assert files
    strange = [
        f"{path.relative_to(ROOT)} uses {used}"
        for path in files
        for used in used_by(path)
        if (other := room_of(used)) and not allowed(room, other)
    ]
    assert strange == []


def test_packages_import_only_lower_ones() -> None:
    """The kernel's packages are exempt, because they form one program."""
    places = {name: number for number, name in enumerate(rooms())}
    for room, known in rooms().items():
        for name in known:
            other = f"{PACKAGE}/{name}" if f"{PACKAGE}/{name}" in places else name
            if other in places:
                assert places[other] < places[room], f"{room} knows {other}"


def test_imports_have_no_cycle() -> None:
    """Only Python counts, including imports within functions."""
    files = {
        str(path.relative_to(ROOT).with_suffix("")).removesuffix("/__init__"): path
        for folder in IMPORTED.values()
        for path in (ROOT / folder).rglob("*.py")
    }
    used = {
        name: {
            module if module in files else module.rpartition("/")[0] for module in modules_of(path)
        }
        & files.keys() - {name, PACKAGE}
        for name, path in files.items()
    }
    while leaves := [name for name, others in used.items() if not others & used.keys()]:
        for name in leaves:
            del used[name]
    assert used == {}


def test_few_modules_are_loose() -> None:
    loose = {path.name for path in (ROOT / PACKAGE).glob("*.py")}
    assert loose == {
        *("__init__.py", "__main__.py", "api.py", "environment.py", "errors.py", "paths.py"),
        "units.py",
    }

# SPDX-License-Identifier: MIT
"""Tests what no type checker sees: imports of programs in texts and of scripts, and names of patched functions."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ROOT
from test_style import tracked_files

_IMPORT = re.compile(r"^\W*from (schedlab[\w.]*) import ([\w, ]+?)(?:\\n|$|;)", re.MULTILINE)
_PATCHES = ("setattr", "delattr", "object")


def _exists(module: str, name: str) -> bool:
    """Returns whether a module or a class contains this name, or the package this module."""
    for path in (f"{module}.{name}", f"{module}"):
        try:
            found = importlib.import_module(path)
        except ImportError:
            continue
        return path != module or hasattr(found, name) or name in found.__annotations__
    return False


def _is_module(path: str) -> bool:
    """Returns whether the path names a module, not a class or another object."""
    try:
        importlib.import_module(path)
    except ImportError:
        return False
    return True


def _texts(path: Path) -> Iterator[str]:
    """Yields the texts of a module, or a document's whole text."""
    if path.suffix != ".py":
        yield path.read_text()
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _patched_names(path: Path) -> Iterator[tuple[str, str]]:
    """Yields the module and the name of each `monkeypatch.setattr(module, "name", ...)`."""
    tree = ast.parse(path.read_text())
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("schedlab"):
            modules |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(attr=called),
                args=[ast.Name(id=module), ast.Constant(value=str(name)), *_],
            ) if called in _PATCHES and module in modules:
                yield modules[module], name


@pytest.mark.parametrize("folder", ["tests", "docs", "tools", "python"])
def test_programs_in_texts_import_what_exists(folder: str) -> None:
    files = [
        path
        for path in tracked_files()
        if path.relative_to(ROOT).parts[0] == folder and path.suffix in {".py", ".md", ".sh"}
    ]
    assert files
    missing = [
        f"{path.relative_to(ROOT)}: {module} has no {name.strip()}"
        for path in files
        for text in _texts(path)
        for module, names in _IMPORT.findall(text)
        for name in names.split(",")
        if not _exists(module, name.split(" as ")[0].strip())
    ]
    assert missing == []


def test_patched_names_exist() -> None:
    files = [path for path in (ROOT / "tests").rglob("*.py") if path.name.startswith("test_")]
    patched = [
        (path, module, name)
        for path in files
        for module, name in _patched_names(path)
        if _is_module(module)
    ]
    assert len(patched) > 100
    missing = [
        f"{path.relative_to(ROOT)}: {module} has no {name}"
        for path, module, name in patched
        if not _exists(module, name)
    ]
    assert missing == []


_SCRIPT_IMPORT = re.compile(r"(?:import|export) \{([^}]*)\} from \"(\.[^\"]+)\"")
_SCRIPT_EXPORT = re.compile(
    r"^export (?:async )?(?:function\*?|const|let|class) (\w+)", re.MULTILINE
)
_SCRIPT_EXPORTS = re.compile(r"^export \{([^}]*)\}", re.MULTILINE)


def _exports(script: Path) -> set[str]:
    text = script.read_text()
    listed = [name for names in _SCRIPT_EXPORTS.findall(text) for name in names.split(",")]
    return {*_SCRIPT_EXPORT.findall(text), *(name.split(" as ")[-1].strip() for name in listed)}


def test_scripts_import_what_exists() -> None:
    imports = [
        (script, script.parent / target, name.split(" as ")[0].strip())
        for script in tracked_files()
        if script.suffix == ".js"
        for names, target in _SCRIPT_IMPORT.findall(script.read_text())
        for name in names.split(",")
        if name.strip() and (script.parent / target).exists()  # others are made by a build
    ]
    assert len(imports) > 100
    missing = [
        f"{script.relative_to(ROOT)}: {target.name} has no {name}"
        for script, target, name in imports
        if name not in _exports(target)
    ]
    assert missing == []

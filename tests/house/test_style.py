# SPDX-License-Identifier: MIT
"""Tests the form of all files as docs/contributing.md defines it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from conftest import ROOT
from schedlab.base.toolchain.needs import EXTRAS
from schedlab.environment import LOCK_FILE, read_extra_libraries

C_FOLDERS = (
    "abi",
    "bench",
    "kernel",
    "linux",
    "model",
    "page",
    "policies",
    "sim",
    "spike",
    "tests",
    "tools",
    "user",
    "workloads",
)
WITHOUT_LICENCE_LINE = {".gitignore", ".gitattributes", "LICENSE", "help.txt"}
AS_THEY_ARE = (
    ROOT / "tests" / "hostile",
    ROOT / "tests" / "formats" / "0.1.0",
    ROOT / "docs" / "gallery" / "traces.txt",
    ROOT / "docs" / "screens.txt",
)
"""Inputs and generated lists that a licence line would change."""
WITHOUT_COMMENTS = {".json", ".md", ".lock", ".csv", ".png", ".svg", ".xz"}


def sources(*suffixes: str) -> list[Path]:
    """Returns the project's files with these endings."""
    paths = [path for folder in C_FOLDERS for path in (ROOT / folder).rglob("*")]
    return sorted(path for path in paths if path.suffix in suffixes)


def check(*command: str) -> None:
    result = subprocess.run(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert result.returncode == 0, f"\n{result.stdout}"


PYTHON_FOLDERS = ("python", "sim/python", "tools", "tests")


def test_python_layout() -> None:
    check(sys.executable, "-m", "ruff", "format", "--diff", *PYTHON_FOLDERS)


def test_python_rules() -> None:
    check(sys.executable, "-m", "ruff", "check", *PYTHON_FOLDERS)


def test_python_types() -> None:
    if sys.version_info[:2] != (3, 11):
        pytest.skip("types are checked with the libraries that the lock file has for Python 3.11")
    check(sys.executable, "-m", "mypy", "--strict")


def test_c_layout() -> None:
    formatter = "clang-format-19"  # other versions use another layout
    if not shutil.which(formatter):
        pytest.skip(f"{formatter} is not here")
    files = [str(path) for path in sources(".c", ".h", ".cc")]
    assert files
    check(formatter, "--dry-run", "-Werror", *files)


# Host programs only, because the C library may define any such name in its next version.
HOST_FOLDERS = ("linux/loader", "linux/guest", "model", "sim", "tools", "workloads")
RESERVED = re.compile(
    r"^\s*#\s*define\s+((?:SCHED_|CLOCK_|TIMER_|SIG[A-Z]|SA_|F_|O_|S_|E[A-Z\d])\w*)", re.MULTILINE
)


def test_no_macro_has_a_name_that_the_hosts_headers_reserve() -> None:
    """A macro below `#ifndef` is exempt, because it applies only without the header's macro."""
    taken = [
        f"{path.relative_to(ROOT)}: {name}"
        for folder in HOST_FOLDERS
        for path in sorted((ROOT / folder).rglob("*.[ch]"))
        for name in RESERVED.findall(path.read_text())
        if f"#ifndef {name}\n" not in path.read_text()
    ]
    assert taken == []


def tracked_files() -> list[Path]:
    result = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True, check=False
    )
    if result.returncode:
        pytest.skip("not a git checkout")
    paths = (ROOT / name for name in result.stdout.split("\0") if name)
    return [path for path in paths if path.is_file()]


def test_all_files_have_a_licence_line() -> None:
    lacking = []
    for path in tracked_files():
        if path.name in WITHOUT_LICENCE_LINE or path.suffix in WITHOUT_COMMENTS:
            continue
        if any(path.is_relative_to(folder) for folder in AS_THEY_ARE):
            continue
        head = path.read_bytes()[:400].decode(errors="replace").splitlines()[:4]
        if not any("SPDX-License-Identifier: MIT" in line for line in head):
            lacking.append(str(path.relative_to(ROOT)))
    assert lacking == []


def wishes() -> dict[str, str]:
    """Returns the libraries that pyproject.toml names, with the reason for each."""
    text = (ROOT / "pyproject.toml").read_text().partition("[tool.")[0]
    return dict(re.findall(r'^    "([\w-]+)[^"]*", *# (.*)$', text, re.MULTILINE))


def test_every_library_has_a_reason_and_hashes() -> None:
    """If this fails, run `python/update-lock`."""
    locked = LOCK_FILE.read_text()
    assert len(wishes()) > 20
    for library, why in wishes().items():
        assert why.strip(), f"say why {library} is needed"
        assert f"\n{library}==" in locked
    entries = [line for line in locked.splitlines() if line and line[0] not in " #"]
    assert entries
    assert all(line.endswith("\\") for line in entries)


def test_schedlab_needs_no_library_of_its_tests() -> None:
    """Only maintainers' tools need these libraries; the launcher fetches them on demand."""
    taken = "".join(read_extra_libraries(extra) for extra in ("", *EXTRAS) if extra != "test")
    names = re.compile(r"^([\w-]+)==", re.MULTILINE)
    of_tests = {*names.findall(read_extra_libraries("test"))} - {*names.findall(taken)}
    modules = packages_distributions()
    imported = {
        (str(path.relative_to(ROOT)), library)
        for path in (ROOT / "python" / "schedlab").rglob("*.py")
        for name in re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(), re.M)
        for library in modules.get(name, ())
        if library.lower() in of_tests
    }
    assert imported == set()

# SPDX-License-Identifier: MIT
"""No test starts a machine or a browser unless its marker says so: then, whoever leaves a marker out
leaves all of that out.

Each program that this process starts is looked at before it begins; of those that a child of it
starts, only what the command line names.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

MACHINES = {"spike": "spike", "qemu-system-riscv64": "qemu", "qemu-system-x86_64": "linux"}
"""Markers, by how the names of programs begin."""
OF_COMMANDS = {"spike": "spike", "qemu": "qemu", "linux": "linux", "linux-free": "linux"}
"""Markers, by the name of a machine in `./schedlab run` and its like."""
QUESTION_WORDS = 3
"""A machine that starts with fewer words is asked for its version or the like."""
WRONG_USAGE = 2

_current: list[pytest.Item] = []


class Unmarked(BaseException):
    """A test without the marker of what it starts. No test catches it by chance."""


@contextmanager
def watched(item: pytest.Item) -> Iterator[None]:
    """Until its end, what is started is this test's, or that of the fixtures it needs."""
    _current.append(item)
    try:
        yield
    finally:
        _current.pop()


def needed_marker(program: str, words: Sequence[str]) -> str | None:
    """Returns the marker that starting a program takes, or None if it is no machine or browser."""
    if "playwright" in Path(program).parts:
        return "browser"
    for name, marker in MACHINES.items():
        if Path(program).name.startswith(name) and len(words) >= QUESTION_WORDS:
            return None if _is_script(program) else marker
    return None


def check(marker: str | None, what: str) -> None:
    """Raises Unmarked if the test that runs has no such marker."""
    if marker and _current and not _current[-1].get_closest_marker(marker):
        raise Unmarked(f"{_current[-1].nodeid} starts {what}: mark it `{marker}`")


def check_command(words: Sequence[str], status: int) -> None:
    """The same for a command of schedlab that has ended; one that was refused started nothing."""
    if status != WRONG_USAGE and "--machine" in words:
        machine = words[words.index("--machine") + 1]
        check(OF_COMMANDS.get(machine), f"{machine} by ./schedlab {' '.join(words)}")


def _is_script(program: str) -> bool:
    """Stand-ins are."""
    path = shutil.which(program)
    if not path:
        return True
    with Path(path).open("rb") as file:
        return file.read(2) == b"#!"


def _started(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen" and _current:
        executable, words = arguments[0], arguments[1]
        names = [words] if isinstance(words, (str, bytes, os.PathLike)) else list(words)
        program = os.fsdecode(executable if executable else names[0])
        check(needed_marker(program, [os.fsdecode(name) for name in names]), program)


def watch_starts() -> None:
    """From now on, as long as this process lives."""
    sys.addaudithook(_started)

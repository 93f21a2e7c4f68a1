# SPDX-License-Identifier: MIT
"""Checks that a test starts a machine or a browser only with the matching marker. Deselecting a
marker then deselects all such tests.

Each program that this process starts is checked before it begins. For the programs that its
children start, only the command line is checked.
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
"""Markers, by the prefix of program names."""
OF_COMMANDS = {"spike": "spike", "qemu": "qemu", "linux": "linux", "linux-free": "linux"}
"""Markers, by the name of a machine in `./schedlab run` and similar commands."""
QUESTION_WORDS = 3
"""A machine started with fewer words only prints its version or help."""
WRONG_USAGE = 2

_current: list[pytest.Item] = []


class Unmarked(BaseException):
    """A test lacks the marker of the program that it starts. Tests must not catch this by
    accident.
    """


@contextmanager
def watched(item: pytest.Item) -> Iterator[None]:
    """Within the block, started programs belong to this test or to its fixtures."""
    _current.append(item)
    try:
        yield
    finally:
        _current.pop()


def needed_marker(program: str, words: Sequence[str]) -> str | None:
    """Returns the marker required to start a program, or None if it is not a machine or browser."""
    if "playwright" in Path(program).parts:
        return "browser"
    for name, marker in MACHINES.items():
        if Path(program).name.startswith(name) and len(words) >= QUESTION_WORDS:
            return None if _is_script(program) else marker
    return None


def check(marker: str | None, what: str) -> None:
    """Raises Unmarked if the running test has no such marker."""
    if marker and _current and not _current[-1].get_closest_marker(marker):
        raise Unmarked(f"{_current[-1].nodeid} starts {what}: mark it `{marker}`")


def check_command(words: Sequence[str], status: int) -> None:
    """Checks a schedlab command that has ended; a refused command has started nothing."""
    if status != WRONG_USAGE and "--machine" in words:
        machine = words[words.index("--machine") + 1]
        check(OF_COMMANDS.get(machine), f"{machine} by ./schedlab {' '.join(words)}")


def _is_script(program: str) -> bool:
    """Returns True for scripts, which are stand-ins."""
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
    """Watches all later starts of this process."""
    sys.addaudithook(_started)

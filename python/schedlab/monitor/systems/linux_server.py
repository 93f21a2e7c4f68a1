# SPDX-License-Identifier: MIT
"""Who serves policies on this machine (`schedlab-linux serve`), and how he is spoken with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from schedlab.monitor.system import Refused

CONTROL = Path("/run/schedlab")
PROGRAM = "schedlab-linux"


@dataclass(frozen=True)
class Server:
    """One that runs."""

    pid: int
    trace: Path | None
    """None: it writes none."""
    control: Path


def find_server(proc: Path = Path("/proc")) -> Server | None:
    """The one that serves, by its command line: a machine has one at most."""
    for folder in proc.glob("[0-9]*"):
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if len(words) > 1 and Path(words[0]).name == PROGRAM and words[1] == "serve":
                return _server(folder, words)
    return None


def _server(folder: Path, words: list[str]) -> Server:
    trace, control = _value(words, "--trace"), _value(words, "--control")
    here = Path(os.readlink(folder / "cwd")) if trace and not trace.startswith("/") else Path("/")
    return Server(
        int(folder.name),
        here / trace if trace else None,
        Path(control) if control else CONTROL,
    )


def _value(words: list[str], option: str) -> str:
    """What follows an option, the last one of that name; "": it is not there."""
    found = ""
    for number, word in enumerate(words):
        if word == option:
            found = "".join(words[number + 1 : number + 2])
        elif word.startswith(f"{option}="):
            found = word.partition("=")[2]
    return found


def threads_of(pid: int, proc: Path = Path("/proc")) -> Iterator[int]:
    """None, if it has ended."""
    with suppress(OSError):
        yield from map(int, os.listdir(proc / str(pid) / "task"))


class ControlFiles:
    """The folder of sched_status and its like. All of it may wait for the server: in a thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str) -> str:
        """Refused: it cannot be read."""
        try:
            return (self.folder / name).read_text(errors="replace")
        except OSError as error:
            raise Refused(f"{name} cannot be read: {self._why(error)}") from None

    def write(self, name: str, line: str, what: str) -> None:
        """One command. Refused: the server says no, and why."""
        try:
            descriptor = os.open(self.folder / name, os.O_WRONLY)
            try:
                os.write(descriptor, line.encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            raise Refused(f"{what}: {self._problem() or self._why(error)}") from None

    def _problem(self) -> str:
        """What the server says of the last command that failed."""
        with suppress(OSError):
            return (self.folder / "sched_problem").read_text(errors="replace").strip()
        return ""

    def _why(self, error: OSError) -> str:
        if isinstance(error, PermissionError):
            return f"only root may use {self.folder}: start the monitor with sudo"
        if isinstance(error, FileNotFoundError) or error.errno in _GONE:
            return f"nobody serves at {self.folder} any more"
        return error.strerror or str(error)


_GONE = (107, 103)
"""ENOTCONN, ECONNABORTED: of a file system whose server has died."""

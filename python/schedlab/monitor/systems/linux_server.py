# SPDX-License-Identifier: MIT
"""The server of policies on this machine (`schedlab-linux serve`), and how it is spoken with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from schedlab.base.files.trusted_path import is_trusted_user, open_trusted
from schedlab.errors import MachineUnfit
from schedlab.machines.linux.parts import LINUX
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


@dataclass(frozen=True)
class Places:
    """Where the facts about the server are; a test has other places."""

    proc: Path = Path("/proc")
    kernel_log: Path = Path("/dev/kmsg")
    lock: Path = Path("/run/schedlab-linux.lock")
    """Only root can make it, and the server has it locked (linux/loader/machine.c)."""
    program: Path = LINUX / PROGRAM
    root: Path = Path("/")
    """Where the kernel shows what it has."""


HERE = Places()


def find_server(places: Places) -> Server | None:
    """Returns the one that serves: a machine has one at most, which holds the lock.

    What it was called with is believed only of a program of ours that a trusted user runs: any
    process can say that it is called `schedlab-linux serve`. MachineUnfit: it is not that.
    """
    pid = _holder(places)
    if pid is None:
        return None
    folder = places.proc / str(pid)
    try:
        _check_process(pid, folder, places.program)
        words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        return _server(folder, words)
    except (FileNotFoundError, ProcessLookupError):
        return None  # it has just ended


def _holder(places: Places) -> int | None:
    """Returns the holder of the lock, by the kernel's table of locks, which every user may read."""
    try:
        lock = os.stat(places.lock, follow_symlinks=False)
        table = (places.proc / "locks").read_text()
    except OSError:
        return None
    file = f"{os.major(lock.st_dev):02x}:{os.minor(lock.st_dev):02x}:{lock.st_ino}"
    for line in table.splitlines():
        words = line.split()
        # 1: POSIX  ADVISORY  WRITE 4711 00:19:1234 0 EOF; with "->" one that only waits for it.
        if len(words) > 5 and words[1] == "POSIX" and words[3] == "WRITE" and words[5] == file:
            return int(words[4])
    return None


def _check_process(pid: int, folder: Path, program: Path) -> None:
    """MachineUnfit: its user is not trusted, or it runs another program."""
    status = (folder / "status").read_text()
    users = next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1:]
    # All four of them: a program that is set-user-ID root runs for the user who began it.
    if not all(is_trusted_user(int(user)) for user in users):
        raise MachineUnfit(
            f"process {pid} claims to serve policies on this machine, but belongs to user {users[0]},"
            " who is neither root nor you: what it says is not believed"
        )
    try:
        running = os.stat(folder / "exe")
    except PermissionError:
        return  # of root, whose processes only root may look into
    if not _is_program(folder / "exe", running, program):
        raise MachineUnfit(
            f"process {pid} serves policies on this machine, but is another program than {program}:"
            f" watch it with the monitor that it came with, or end it by `{PROGRAM} stop`"
        )


def _is_program(link: Path, running: os.stat_result, program: Path) -> bool:
    """Is it the same file, or the one that was in its place before it was built anew?"""
    try:
        if os.path.samestat(running, os.stat(program)):
            return True
    except FileNotFoundError:
        pass
    return running.st_nlink == 0 and os.readlink(link) == f"{program} (deleted)"


def _server(folder: Path, words: list[str]) -> Server:
    trace, control = _value(words, "--trace"), _value(words, "--control")
    base = Path(os.readlink(folder / "cwd")) if trace and not trace.startswith("/") else Path("/")
    return Server(
        int(folder.name),
        base / trace if trace else None,
        Path(control) if control else CONTROL,
    )


def _value(words: list[str], option: str) -> str:
    """Returns what follows an option, the last one of that name, or "" if it is not there."""
    value = ""
    for number, word in enumerate(words):
        if word == option:
            value = "".join(words[number + 1 : number + 2])
        elif word.startswith(f"{option}="):
            value = word.partition("=")[2]
    return value


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
            return self._text(name)
        except OSError as error:
            raise Refused(f"{name} cannot be read: {self._why(error)}") from None

    def write(self, name: str, line: str, what: str) -> None:
        """One command. Refused: the server says no, and why."""
        try:
            descriptor = open_trusted(self.folder / name, os.O_WRONLY)
            try:
                os.write(descriptor, line.encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            raise Refused(f"{what}: {self._problem() or self._why(error)}") from None

    def _text(self, name: str) -> str:
        with open(open_trusted(self.folder / name, os.O_RDONLY), errors="replace") as file:
            return file.read()

    def _problem(self) -> str:
        """Returns what the server says of the last command that failed."""
        with suppress(OSError):
            return self._text("sched_problem").strip()
        return ""

    def _why(self, error: OSError) -> str:
        if isinstance(error, PermissionError):
            return f"only root may use {self.folder}: start the monitor with sudo"
        if isinstance(error, FileNotFoundError) or error.errno in _GONE:
            return f"no server runs at {self.folder} any more"
        return error.strerror or str(error)


_GONE = (107, 103)
"""ENOTCONN, ECONNABORTED: of a file system whose server has died."""

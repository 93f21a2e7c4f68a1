# SPDX-License-Identifier: MIT
"""Finds the policy server of this machine (`schedlab-linux serve`) and exchanges commands with it."""

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
    """A running policy server."""

    pid: int
    trace: Path | None
    """None if it writes no trace."""
    control: Path


@dataclass(frozen=True)
class Places:
    """Paths of the files that describe the server; tests use other paths."""

    proc: Path = Path("/proc")
    kernel_log: Path = Path("/dev/kmsg")
    lock: Path = Path("/run/schedlab-linux.lock")
    """The lock file, which root creates and the server locks (linux/loader/machine.c)."""
    program: Path = LINUX / PROGRAM
    root: Path = Path("/")
    """The root of the kernel's file systems."""


THIS_HOST = Places()


def find_server(places: Places) -> Server | None:
    """Returns the running server, or None. A machine has at most one server, which holds the lock.

    The command line is trusted only if a trusted user runs schedlab's own program, because any
    process can claim to be `schedlab-linux serve`. Raises MachineUnfit otherwise.

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
        return None  # the server has just ended


def _holder(places: Places) -> int | None:
    """Returns the PID of the lock's holder from the kernel's lock table, which every user can read."""
    try:
        lock = os.stat(places.lock, follow_symlinks=False)
        table = (places.proc / "locks").read_text()
    except OSError:
        return None
    file = f"{os.major(lock.st_dev):02x}:{os.minor(lock.st_dev):02x}:{lock.st_ino}"
    for line in table.splitlines():
        words = line.split()
        # 1: POSIX  ADVISORY  WRITE 4711 00:19:1234 0 EOF; "->" marks a process that waits for the
        # lock.
        if len(words) > 5 and words[1] == "POSIX" and words[3] == "WRITE" and words[5] == file:
            return int(words[4])
    return None


def _check_process(pid: int, folder: Path, program: Path) -> None:
    """Raises MachineUnfit if the process's user is not trusted, or if it runs another program."""
    status = (folder / "status").read_text()
    users = next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1:]
    # All four user IDs: a set-user-ID root program belongs to the user who started it.
    if not all(is_trusted_user(int(user)) for user in users):
        raise MachineUnfit(
            f"process {pid} claims to serve policies on this machine, but belongs to "
            f"user {users[0]}, who is neither root nor you; its answers are not "
            "trusted"
        )
    try:
        running = os.stat(folder / "exe")
    except PermissionError:
        return  # only root may inspect root's processes
    if not _is_program(folder / "exe", running, program):
        raise MachineUnfit(
            f"process {pid} serves policies on this machine, but is another program "
            f"than {program}; use the monitor that it came with, or end it with "
            f"`{PROGRAM} stop`"
        )


def _is_program(link: Path, running: os.stat_result, program: Path) -> bool:
    """Returns whether the process runs this file, or the file that a rebuild has replaced."""
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
    """Returns the value of an option's last occurrence, or ""."""
    value = ""
    for number, word in enumerate(words):
        if word == option:
            value = "".join(words[number + 1 : number + 2])
        elif word.startswith(f"{option}="):
            value = word.partition("=")[2]
    return value


def threads_of(pid: int, proc: Path = Path("/proc")) -> Iterator[int]:
    """Yields the thread IDs of a process; none if it has ended."""
    with suppress(OSError):
        yield from map(int, os.listdir(proc / str(pid) / "task"))


class ControlFiles:
    """The folder of sched_status, sched_tunables and sched_problem.

    All operations may wait for the server, so they must run in a thread.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str) -> str:
        """Returns a file's text. Raises Refused if it cannot be read."""
        try:
            return self._text(name)
        except OSError as error:
            raise Refused(f"{name} cannot be read: {self._why(error)}") from None

    def write(self, name: str, line: str, what: str) -> None:
        """Writes one command. Raises Refused with the server's reason if the server rejects it."""
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
        """Returns the server's message about the last failed command."""
        with suppress(OSError):
            return self._text("sched_problem").strip()
        return ""

    def _why(self, error: OSError) -> str:
        if isinstance(error, PermissionError):
            return f"only root may use {self.folder}: start the monitor with sudo"
        if isinstance(error, FileNotFoundError) or error.errno in _CLOSED_ERRORS:
            return f"the server at {self.folder} has ended"
        return error.strerror or str(error)


_CLOSED_ERRORS = (107, 103)
"""ENOTCONN, ECONNABORTED: errors of a file system whose server has died."""

# SPDX-License-Identifier: MIT
"""Finds the policy server of this machine (`schedlab-linux serve`) and exchanges commands with it."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from schedlab.base.files.trusted_path import is_trusted_user, open_trusted
from schedlab.errors import MachineUnfit
from schedlab.machines.linux.parts import LINUX_BUILD
from schedlab.monitor.system import Refused

CONTROL_FOLDER = Path("/run/schedlab")
PROGRAM = "schedlab-linux"


@dataclass(frozen=True)
class PolicyServer:
    """A running policy server."""

    pid: int
    trace: Path | None
    """The trace file that the server writes; None if it writes none."""
    control_folder: Path


@dataclass(frozen=True)
class HostPaths:
    """Paths of the host that the monitor reads; tests use other paths."""

    proc: Path = Path("/proc")
    kernel_log: Path = Path("/dev/kmsg")
    lock: Path = Path("/run/schedlab-linux.lock")
    """The lock file, which root creates and the server locks (linux/loader/machine.c)."""
    program: Path = LINUX_BUILD / PROGRAM
    root: Path = Path("/")
    """The root of the kernel's file systems."""


THIS_HOST = HostPaths()


def find_server(places: HostPaths) -> PolicyServer | None:
    """Returns the running policy server, or None; a host has at most one, which holds the lock.

    Any process can claim to be `schedlab-linux serve`. So the server's command line is trusted only
    if a trusted user runs schedlab's own program; otherwise raises MachineUnfit.
    """
    pid = _lock_holder(places)
    if pid is None:
        return None
    folder = places.proc / str(pid)
    try:
        _check_process(pid, folder, places.program)
        words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        return _parse_server(folder, words)
    except (FileNotFoundError, ProcessLookupError):
        return None  # the server has just ended


def _lock_holder(places: HostPaths) -> int | None:
    """Returns the PID of the process that holds the lock, from /proc/locks, or None."""
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
    """Raises MachineUnfit if the process's user is not trusted, or if its program is not schedlab's."""
    status = (folder / "status").read_text()
    users = next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1:]
    # All four user IDs: a set-user-ID root program belongs to the user who started it.
    if not all(is_trusted_user(int(user)) for user in users):
        raise MachineUnfit(
            f"process {pid} claims to serve policies on this machine, but belongs to "
            f"user {users[0]}, who is neither root nor you; end it with `sudo kill {pid}`"
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
    """Returns whether the process runs `program`, or a deleted file that `program` has replaced."""
    try:
        if os.path.samestat(running, os.stat(program)):
            return True
    except FileNotFoundError:
        pass
    return running.st_nlink == 0 and os.readlink(link) == f"{program} (deleted)"


def _parse_server(folder: Path, words: list[str]) -> PolicyServer:
    trace, control = _option_value(words, "--trace"), _option_value(words, "--control")
    base = Path(os.readlink(folder / "cwd")) if trace and not trace.startswith("/") else Path("/")
    return PolicyServer(
        int(folder.name),
        base / trace if trace else None,
        Path(control) if control else CONTROL_FOLDER,
    )


def _option_value(words: list[str], option: str) -> str:
    """Returns the value of an option's last occurrence in a command line, or ""."""
    value = ""
    for number, word in enumerate(words):
        if word == option:
            value = "".join(words[number + 1 : number + 2])
        elif word.startswith(f"{option}="):
            value = word.partition("=")[2]
    return value


def thread_ids(pid: int, proc: Path = Path("/proc")) -> Iterator[int]:
    """Yields the thread IDs of a process; none if it has ended."""
    with suppress(OSError):
        yield from map(int, os.listdir(proc / str(pid) / "task"))


class ControlFiles:
    """The folder with sched_status, sched_tunables and sched_problem, the server's control files.

    All operations may wait for the server, so they must run in a thread.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str) -> str:
        """Returns a file's text. Raises Refused if it cannot be read."""
        try:
            return self._read_text(name)
        except OSError as error:
            raise Refused(f"{name} cannot be read: {self._error_reason(error)}") from None

    def write(self, name: str, line: str, action: str) -> None:
        """Writes one command. Raises Refused with the server's reason if the server rejects it."""
        try:
            descriptor = open_trusted(self.folder / name, os.O_WRONLY)
            try:
                os.write(descriptor, line.encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            raise Refused(
                f"{action}: {self._server_message() or self._error_reason(error)}"
            ) from None

    def _read_text(self, name: str) -> str:
        with open(open_trusted(self.folder / name, os.O_RDONLY), errors="replace") as file:
            return file.read()

    def _server_message(self) -> str:
        """Returns the server's message about the last command that failed."""
        with suppress(OSError):
            return self._read_text("sched_problem").strip()
        return ""

    def _error_reason(self, error: OSError) -> str:
        if isinstance(error, PermissionError):
            return f"only root may use {self.folder}: start the monitor with sudo"
        if isinstance(error, FileNotFoundError) or error.errno in _CLOSED_ERRORS:
            return f"the server at {self.folder} has ended; start it again"
        return error.strerror or str(error)


_CLOSED_ERRORS = (107, 103)
"""ENOTCONN, ECONNABORTED: errors of a FUSE file system whose server has ended."""

# SPDX-License-Identifier: MIT
"""Where a submission is compiled, and the kernel made of it runs: bubblewrap, with nothing of this host but the tools.

A submission in the simulator needs none of this: it is in a WebAssembly machine (schedlab.courses.submissions.apart).
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from schedlab.base.toolchain.needs import need_if_there
from schedlab.base.toolchain.tools import output
from schedlab.errors import MachineUnfit

TOOLS = ("/usr/bin", "/usr/lib", "/usr/lib64", "/usr/libexec")
"""Directories of the host that every program in the sandbox sees."""
LINKS = {"/bin": "usr/bin", "/lib": "usr/lib", "/lib64": "usr/lib64"}
OUT, WORK = "/schedlab-out", "/schedlab-in"
"""The places, in the sandbox, of what comes out of it and of what goes in."""
_CPU_SECONDS = 60
"""Limit for each process of the sandbox. Hitting it is the submission's fault."""
_HOST_SECONDS = 600
"""Limit in host time, which stopped processes do not use up. Hitting it is the host's fault."""
_POLL_SECONDS = 1
_MEMORY = 3 << 30
_FILE_BYTES = 64 << 20
_FILES = 256
_SAID_MAX = 1 << 16
_NOT_STARTED = (126, 127)
"""Exit statuses of a shell whose program cannot be run or is not there."""
_LIBRARY = re.compile(r"(?:^\s*|=> )(/.+) \(0x", re.MULTILINE)
"""A file in a line of ldd."""


@dataclass(frozen=True)
class Done:
    """What a program in the sandbox has come to."""

    status: int
    """Its exit status; negative: a signal's number."""
    said: str
    """What it printed, cut off at 64 KiB."""


@cache
def lacking() -> str:
    """Returns why there can be no sandbox here, with the cure, or "" if there can be one."""
    if sys.platform != "linux":
        return "this host has none, which bubblewrap makes on Linux"
    if not shutil.which("bwrap"):
        return "bwrap is not on the PATH: install bubblewrap"
    tried = subprocess.run(
        [*_wrapped({}, None), "/usr/bin/true"], capture_output=True, text=True, check=False
    )
    if tried.returncode == 0:
        return ""
    words = tried.stderr.strip().splitlines()
    why = words[-1] if words else f"status {tried.returncode}"
    return (
        f"this host lets no program have user namespaces ({why}): allow them (of a container: the option"
        " --security-opt seccomp=unconfined, or --privileged; of a host: sysctl kernel.unprivileged_userns_clone=1,"
        " or kernel.apparmor_restrict_unprivileged_userns=0)"
    )


def need_sandbox() -> None:
    """Raises MachineUnfit if there can be none here."""
    need_if_there("sandbox")
    if why := lacking():
        raise MachineUnfit(
            f"submissions are compiled in a sandbox, and {why}",
            fix="Or, for submissions that you would compile yourself: `trusted=True`",
        )


class Sandbox:
    """Runs scripts that see the host's tools, some files, and a directory of their own for what they make.

    `trusted`: they run outside of the sandbox, within the limits alone.
    """

    def __init__(
        self,
        out: Path,
        files: Mapping[str, Path],
        trusted: bool,
        programs: Sequence[str] = (),
        headers: Path | None = None,
    ) -> None:
        """`out` becomes OUT. `files`: what scripts see, by its place in WORK. `programs`: what scripts start, by name
        or path; each may lie anywhere on the host. `headers`: the folder of a compiler's own headers. Raises
        MachineUnfit if a program is missing."""
        self.out = out
        self._files = files
        self._programs = tuple(programs)
        self._headers = headers
        self._trusted = trusted
        for program in programs:
            program_path(program)
        if trusted:
            for name, file in files.items():
                place = out / "work" / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(file.resolve())

    def run(self, script: str) -> Done:
        """Runs a script of sh, in which OUT and WORK are the places. Raises MachineUnfit if the host is to blame for
        what came of it: a program could not be started, or the host's time is up."""
        if self._trusted:
            places = {WORK: "work", OUT: "."}  # of the directory in which it runs
            script = re.sub(f"{WORK}|{OUT}", lambda match: places[match[0]], script)
            return _limited(["/bin/sh", "-c", script], self.out)
        status_read, status_write = os.pipe()
        with open(status_read, "rb") as report:
            try:
                command = _wrapped(
                    self._files, self.out, self._programs, self._headers, status_write
                )
                done = _limited([*command, "/bin/sh", "-c", script], self.out, status_write)
            finally:
                os.close(status_write)
            if done.status > 0 and b"exit-code" not in report.read():
                raise MachineUnfit(f"the sandbox could not be started: {done.said.strip()}")
        return done


def program_path(program: str) -> Path:
    """Returns the absolute path of a program that was given by name or path, in a directory without symbolic links.
    Raises MachineUnfit if there is none."""
    executable = shutil.which(program)
    if not executable:
        raise MachineUnfit(f"{program} is not on the PATH: install it")
    path = Path(executable).absolute()
    return path.parent.resolve() / path.name


def _is_seen(path: Path) -> bool:
    """Whether a file is in the sandbox anyway."""
    return any(path.parent.resolve().is_relative_to(folder) for folder in TOOLS)


def _links(path: Path) -> Iterator[Path]:
    """The path, and what it leads to by symbolic links, one after the other."""
    yield path
    while path.is_symlink():
        path = path.parent / os.readlink(path)
        yield path


@cache
def _needed_files(program: str) -> tuple[Path, ...]:
    """Files outside of TOOLS that a program needs: those of its path, and its shared libraries."""
    path = program_path(program)
    if _is_seen(path) and all(map(_is_seen, _links(path))):
        return ()
    listed = output("ldd", str(path.resolve()))
    libraries = [Path(name) for name in _LIBRARY.findall(listed)]
    files = [link for file in (path, *libraries) for link in _links(file)]
    return tuple(file for file in files if not _is_seen(file))


def _wrapped(
    files: Mapping[str, Path],
    out: Path | None,
    programs: Sequence[str] = (),
    headers: Path | None = None,
    status_file: int | None = None,
) -> list[str]:
    """bwrap and its options: no network, no processes or files of the host, one directory to write to. `status_file`:
    a file descriptor to which bwrap writes whether the command ran."""
    needed = [file for program in programs for file in _needed_files(program)]
    if headers and not _is_seen(headers):
        needed.append(headers)
    folders = dict.fromkeys(str(program_path(program).parent) for program in programs)
    libraries = dict.fromkeys(str(file.parent) for file in needed if ".so" in file.name)
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
    command += ["--cap-drop", "ALL", "--setenv", "LC_ALL", "C"]
    command += ["--setenv", "PATH", ":".join(dict.fromkeys([*folders, "/usr/bin"]))]
    if libraries:
        # Without /proc a program does not find libraries relative to itself.
        command += ["--setenv", "LD_LIBRARY_PATH", ":".join(libraries)]
    if status_file is not None:
        command += ["--json-status-fd", str(status_file)]
    for place in TOOLS:
        command += ["--ro-bind-try", place, place]
    for place, target in LINKS.items():
        command += ["--symlink", target, place]
    # Before what is needed, which may lie there.
    command += ["--size", str(_FILE_BYTES), "--tmpfs", "/tmp"]
    for needed_file in dict.fromkeys(needed):
        command += ["--ro-bind", str(needed_file.resolve()), str(needed_file)]
    for name, file in files.items():
        command += ["--ro-bind", str(file.resolve()), f"{WORK}/{name}"]
    if out is not None:
        command += ["--bind", str(out), OUT, "--chdir", OUT]
    return command


def _limits() -> list[str]:
    """What is begun behind this, and all that it begins, has so much of the host. macOS limits no memory."""
    limits = {"t": _CPU_SECONDS, "f": _FILE_BYTES // 512, "n": _FILES, "c": 0}
    if sys.platform == "linux":
        limits["v"] = _MEMORY // 1024
    set_all = " && ".join(f"ulimit -{name} {most}" for name, most in limits.items())
    return ["/bin/sh", "-c", f'{set_all} && exec "$@"', "sh"]


def _limited(command: Sequence[str], folder: Path, *inherited: int) -> Done:
    """Raises MachineUnfit if the command could not be started or used up the host's time."""
    with (folder / ".said").open("w+b") as console:
        process = subprocess.Popen(
            [*_limits(), *command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            start_new_session=True,
            pass_fds=inherited,
        )
        try:
            status = _wait(process)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        console.seek(0)
        text = console.read(_SAID_MAX).decode(errors="replace")
    (folder / ".said").unlink()
    if status in _NOT_STARTED:
        raise MachineUnfit(f"a program could not be started: {text.strip()}")
    return Done(status, text)


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Returns the exit status. Raises MachineUnfit after _HOST_SECONDS, without those in which the process was
    stopped or the host was suspended."""
    polls = 0
    while polls * _POLL_SECONDS < _HOST_SECONDS:
        try:
            return process.wait(_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            polls += not _is_stopped(process.pid)
    raise MachineUnfit(
        f"the sandbox did not end within {_HOST_SECONDS} s and used less than"
        f" {_CPU_SECONDS} s of CPU time: the host is overloaded",
        fix="try again later, with fewer `jobs=`",
    )


def _is_stopped(pid: int) -> bool:
    """Whether a signal has stopped the process."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"
    return False

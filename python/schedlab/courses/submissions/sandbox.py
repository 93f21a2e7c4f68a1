# SPDX-License-Identifier: MIT
"""Runs compilers and submissions' kernels in bubblewrap, which hides everything of the host except tools.

Submissions in the simulator do not need it: they run in a WebAssembly machine
(schedlab.courses.submissions.wasm_policy).
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

from schedlab.base.toolchain.needs import need_if_installed
from schedlab.base.toolchain.tools import output
from schedlab.errors import MachineUnfit

TOOLS = ("/usr/bin", "/usr/lib", "/usr/lib64", "/usr/libexec")
"""Host directories visible to every program in the sandbox."""
LINKS = {"/bin": "usr/bin", "/lib": "usr/lib", "/lib64": "usr/lib64"}
OUT, WORK = "/schedlab-out", "/schedlab-in"
"""Paths of outputs and inputs in the sandbox."""
_CPU_SECONDS = 60
"""Limit for each process; exceeding it is the submission's fault."""
_HOST_SECONDS = 600
"""Limit in host time without stopped periods; exceeding it is the host's fault."""
_POLL_SECONDS = 1
_MEMORY = 3 << 30
_FILE_BYTES = 64 << 20
_FILES = 256
_OUTPUT_LIMIT = 1 << 16
_NOT_STARTED = (126, 127)
"""Exit statuses of a shell whose program is missing or cannot be run."""
_LIBRARY = re.compile(r"(?:^\s*|=> )(/.+) \(0x", re.MULTILINE)
"""A file in the output of ldd."""


@dataclass(frozen=True)
class Done:
    """The outcome of a program in the sandbox."""

    status: int
    """Exit status, negative for a signal."""
    output: str
    """The output, cut at 64 KiB."""


@cache
def missing_requirement() -> str:
    """Returns why this host cannot have a sandbox, with a remedy; "" if it can."""
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
    """Raises MachineUnfit if this host cannot have a sandbox."""
    need_if_installed("sandbox")
    if why := missing_requirement():
        raise MachineUnfit(
            f"submissions are compiled in a sandbox, but {why}",
            fix="if you would compile these submissions yourself, add `trusted=True`",
        )


class Sandbox:
    """Runs scripts that see the host's tools, some files and one writable directory.

    `trusted` runs them outside of the sandbox, with the same limits.
    """

    def __init__(
        self,
        out: Path,
        files: Mapping[str, Path],
        trusted: bool,
        programs: Sequence[str] = (),
        headers: Path | None = None,
    ) -> None:
        """Prepares a sandbox. Raises MachineUnfit if a program is missing.

        `out` becomes OUT. `files` are visible at their paths in WORK. `programs` are programs of
        scripts, by name or path. `headers` is the folder of the compiler's headers.
        """
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
        """Runs a shell script that uses OUT and WORK as paths.

        Raises MachineUnfit for faults of the host: a program could not start, or the host's time
        limit was reached.
        """
        if self._trusted:
            places = {WORK: "work", OUT: "."}  # relative to the script's directory
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
                raise MachineUnfit(f"the sandbox could not be started: {done.output.strip()}")
        return done


def program_path(program: str) -> Path:
    """Returns a program's absolute path with a resolved directory.

    Raises MachineUnfit if it is missing.
    """
    executable = shutil.which(program)
    if not executable:
        raise MachineUnfit(f"{program} is not on the PATH: install it")
    path = Path(executable).absolute()
    return path.parent.resolve() / path.name


def _is_seen(path: Path) -> bool:
    """Returns whether the sandbox shows a file in any case."""
    return any(path.parent.resolve().is_relative_to(folder) for folder in TOOLS)


def _links(path: Path) -> Iterator[Path]:
    """Yields a path and each target of its symbolic links."""
    yield path
    while path.is_symlink():
        path = path.parent / os.readlink(path)
        yield path


@cache
def _needed_files(program: str) -> tuple[Path, ...]:
    """Returns the files outside of TOOLS that a program needs: its path and its shared libraries."""
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
    """Returns bwrap's command: no network, no processes or files of the host, one writable directory.

    bwrap writes to the descriptor `status_file` whether the command ran.
    """
    needed = [file for program in programs for file in _needed_files(program)]
    if headers and not _is_seen(headers):
        needed.append(headers)
    folders = dict.fromkeys(str(program_path(program).parent) for program in programs)
    libraries = dict.fromkeys(str(file.parent) for file in needed if ".so" in file.name)
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
    command += ["--cap-drop", "ALL", "--setenv", "LC_ALL", "C"]
    command += ["--setenv", "PATH", ":".join(dict.fromkeys([*folders, "/usr/bin"]))]
    if libraries:
        # Without /proc, programs do not find libraries relative to their own path.
        command += ["--setenv", "LD_LIBRARY_PATH", ":".join(libraries)]
    if status_file is not None:
        command += ["--json-status-fd", str(status_file)]
    for place in TOOLS:
        command += ["--ro-bind-try", place, place]
    for place, target in LINKS.items():
        command += ["--symlink", target, place]
    # Must precede the needed files, which may be in /tmp.
    command += ["--size", str(_FILE_BYTES), "--tmpfs", "/tmp"]
    for needed_file in dict.fromkeys(needed):
        command += ["--ro-bind", str(needed_file.resolve()), str(needed_file)]
    for name, file in files.items():
        command += ["--ro-bind", str(file.resolve()), f"{WORK}/{name}"]
    if out is not None:
        command += ["--bind", str(out), OUT, "--chdir", OUT]
    return command


def _limits() -> list[str]:
    """Returns a command prefix that limits the resources of all child processes; macOS does not limit memory."""
    limits = {"t": _CPU_SECONDS, "f": _FILE_BYTES // 512, "n": _FILES, "c": 0}
    if sys.platform == "linux":
        limits["v"] = _MEMORY // 1024
    set_all = " && ".join(f"ulimit -{name} {most}" for name, most in limits.items())
    return ["/bin/sh", "-c", f'{set_all} && exec "$@"', "sh"]


def _limited(command: Sequence[str], folder: Path, *inherited: int) -> Done:
    """Runs a command with limits.

    Raises MachineUnfit if it could not start or used up the host's time.
    """
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
        text = console.read(_OUTPUT_LIMIT).decode(errors="replace")
    (folder / ".said").unlink()
    if status in _NOT_STARTED:
        raise MachineUnfit(f"a program could not be started: {text.strip()}")
    return Done(status, text)


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Returns the exit status. Raises MachineUnfit after _HOST_SECONDS.

    Seconds during which the process was stopped or the host suspended do not count.
    """
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
    """Returns whether a signal has stopped the process."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"
    return False

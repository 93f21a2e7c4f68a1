# SPDX-License-Identifier: MIT
"""Runs compilers and submissions' kernels in bubblewrap, which hides everything of the host except tools.

Submissions in the simulator do not need it: they run in a WebAssembly machine
(schedlab.courses.submissions.wasm_policy).
"""

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

from schedlab.base.toolchain.needs import install_if_packaged
from schedlab.base.toolchain.tools import program_output, run_captured
from schedlab.errors import MachineUnfit

TOOL_FOLDERS = ("/usr/bin", "/usr/lib", "/usr/lib64", "/usr/libexec")
"""Host directories visible to every program in the sandbox."""
TOOL_LINKS = {"/bin": "usr/bin", "/lib": "usr/lib", "/lib64": "usr/lib64"}
OUT_PATH, WORK_PATH = "/schedlab-out", "/schedlab-in"
"""Paths of outputs and inputs in the sandbox."""
_CPU_SECONDS_MAX = 60
"""Limit for each process; exceeding it is the submission's fault."""
_HOST_SECONDS_MAX = 600
"""Limit in host time without stopped periods; exceeding it is the host's fault."""
_POLL_SECONDS = 1
_MEMORY_BYTES_MAX = 3 << 30
_FILE_BYTES_MAX = 64 << 20
_OPEN_FILES_MAX = 256
_OUTPUT_BYTES_MAX = 1 << 16
_NOT_STARTED_STATUSES = (126, 127)
"""Exit statuses of a shell whose program is missing or cannot be run."""
_LIBRARY_PATTERN = re.compile(r"(?:^\s*|=> )(/.+) \(0x", re.MULTILINE)
"""A file in the output of ldd."""


@dataclass(frozen=True)
class SandboxResult:
    """The outcome of a program in the sandbox."""

    status: int
    """Exit status, negative for a signal."""
    output: str
    """The output, cut at 64 KiB."""


@cache
def missing_requirement() -> str:
    """Returns why this host cannot have a sandbox, with a remedy; "" if it can."""
    if sys.platform != "linux":
        return "this host cannot have one: use Linux with bubblewrap"
    if not shutil.which("bwrap"):
        return "bwrap is not on the PATH: install bubblewrap"
    result = run_captured([*_bwrap_command({}, None), "/usr/bin/true"])
    if result.returncode == 0:
        return ""
    error_lines = result.stderr.strip().splitlines()
    why = error_lines[-1] if error_lines else f"status {result.returncode}"
    return (
        f"this host lets no program have user namespaces ({why}): allow them (of a container: the option"
        " --security-opt seccomp=unconfined, or --privileged; of a host: sysctl kernel.unprivileged_userns_clone=1,"
        " or kernel.apparmor_restrict_unprivileged_userns=0)"
    )


def need_sandbox() -> None:
    """Raises MachineUnfit if this host cannot have a sandbox."""
    install_if_packaged("sandbox")
    if why := missing_requirement():
        raise MachineUnfit(
            f"submissions are compiled in a sandbox, but {why}",
            fix="or add `trusted=True` if you trust these submissions",
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
                path = out / "work" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(file.resolve())

    def run(self, script: str) -> SandboxResult:
        """Runs a shell script that uses OUT and WORK as paths.

        Raises MachineUnfit for faults of the host: a program could not start, or the host's time
        limit was reached.
        """
        if self._trusted:
            places = {WORK_PATH: "work", OUT_PATH: "."}  # relative to the script's directory
            script = re.sub(f"{WORK_PATH}|{OUT_PATH}", lambda match: places[match[0]], script)
            return _run_limited(["/bin/sh", "-c", script], self.out)
        status_read, status_write = os.pipe()
        with open(status_read, "rb") as status_report:
            try:
                command = _bwrap_command(
                    self._files, self.out, self._programs, self._headers, status_write
                )
                result = _run_limited([*command, "/bin/sh", "-c", script], self.out, status_write)
            finally:
                os.close(status_write)
            if result.status > 0 and b"exit-code" not in status_report.read():
                raise MachineUnfit(
                    f"the sandbox could not be started: {result.output.strip()}",
                    fix="see docs/grading.md for what the host must allow",
                )
        return result


def program_path(program: str) -> Path:
    """Returns a program's absolute path with a resolved directory.

    Raises MachineUnfit if it is missing.
    """
    executable = shutil.which(program)
    if not executable:
        raise MachineUnfit(f"{program} is not on the PATH: install it")
    path = Path(executable).absolute()
    return path.parent.resolve() / path.name


def _is_visible(path: Path) -> bool:
    """Returns whether the sandbox shows a file in any case."""
    return any(path.parent.resolve().is_relative_to(folder) for folder in TOOL_FOLDERS)


def _resolve_links(path: Path) -> Iterator[Path]:
    """Yields a path and each target of its symbolic links."""
    yield path
    while path.is_symlink():
        path = path.parent / os.readlink(path)
        yield path


@cache
def _needed_files(program: str) -> tuple[Path, ...]:
    """Returns the files outside of TOOL_FOLDERS that a program needs: its path and its shared libraries."""
    path = program_path(program)
    if _is_visible(path) and all(map(_is_visible, _resolve_links(path))):
        return ()
    ldd_output = program_output("ldd", str(path.resolve()))
    libraries = [Path(name) for name in _LIBRARY_PATTERN.findall(ldd_output)]
    files = [link for file in (path, *libraries) for link in _resolve_links(file)]
    return tuple(file for file in files if not _is_visible(file))


def _bwrap_command(
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
    if headers and not _is_visible(headers):
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
    for folder in TOOL_FOLDERS:
        command += ["--ro-bind-try", folder, folder]
    for folder, target in TOOL_LINKS.items():
        command += ["--symlink", target, folder]
    # Must precede the needed files, which may be in /tmp.
    command += ["--size", str(_FILE_BYTES_MAX), "--tmpfs", "/tmp"]
    for needed_file in dict.fromkeys(needed):
        command += ["--ro-bind", str(needed_file.resolve()), str(needed_file)]
    for name, file in files.items():
        command += ["--ro-bind", str(file.resolve()), f"{WORK_PATH}/{name}"]
    if out is not None:
        command += ["--bind", str(out), OUT_PATH, "--chdir", OUT_PATH]
    return command


def _limit_command() -> list[str]:
    """Returns a command prefix that limits the resources of all child processes; macOS does not limit memory."""
    limits = {"t": _CPU_SECONDS_MAX, "f": _FILE_BYTES_MAX // 512, "n": _OPEN_FILES_MAX, "c": 0}
    if sys.platform == "linux":
        limits["v"] = _MEMORY_BYTES_MAX // 1024
    limit_settings = " && ".join(f"ulimit -{name} {most}" for name, most in limits.items())
    return ["/bin/sh", "-c", f'{limit_settings} && exec "$@"', "sh"]


def _run_limited(command: Sequence[str], folder: Path, *inherited: int) -> SandboxResult:
    """Runs a command with limits.

    Raises MachineUnfit if it could not start or used up the host's time.
    """
    with (folder / ".said").open("w+b") as output_file:
        process = subprocess.Popen(
            [*_limit_command(), *command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output_file,
            stderr=output_file,
            start_new_session=True,
            pass_fds=inherited,
        )
        try:
            status = _wait_for_exit(process)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output_file.seek(0)
        text = output_file.read(_OUTPUT_BYTES_MAX).decode(errors="replace")
    (folder / ".said").unlink()
    if status in _NOT_STARTED_STATUSES:
        raise MachineUnfit(
            f"a program could not be started: {text.strip()}",
            fix="run `./schedlab doctor` to see what is missing",
        )
    return SandboxResult(status, text)


def _wait_for_exit(process: subprocess.Popen[bytes]) -> int:
    """Returns the exit status. Raises MachineUnfit after _HOST_SECONDS_MAX.

    Seconds during which the process was stopped or the host suspended do not count.
    """
    polls = 0
    while polls * _POLL_SECONDS < _HOST_SECONDS_MAX:
        try:
            return process.wait(_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            polls += not _is_stopped(process.pid)
    raise MachineUnfit(
        f"the sandbox did not end within {_HOST_SECONDS_MAX} s and used less than"
        f" {_CPU_SECONDS_MAX} s of CPU time: the host is overloaded",
        fix="try again later, with fewer `jobs=`",
    )


def _is_stopped(pid: int) -> bool:
    """Returns whether a signal has stopped the process."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"
    return False

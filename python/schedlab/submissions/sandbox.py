# SPDX-License-Identifier: MIT
"""Where a submission is compiled, and the kernel made of it runs: bubblewrap, with nothing of this host but the tools.

A submission in the simulator needs none of this: it is in a WebAssembly machine (schedlab.submissions.apart).
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from schedlab.errors import MachineUnfit

TOOLS = ("/usr/bin", "/usr/lib", "/usr/lib64", "/usr/libexec")
LINKS = {"/bin": "usr/bin", "/lib": "usr/lib", "/lib64": "usr/lib64"}
OUT, WORK = "/schedlab-out", "/schedlab-in"
"""The places, in the sandbox, of what comes out of it and of what goes in."""
_CPU_SECONDS, _HOST_SECONDS = 60, 180
_MEMORY = 3 << 30
_FILE_BYTES = 64 << 20
_FILES = 256
_SAID_MAX = 1 << 16


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
    if why := lacking():
        raise MachineUnfit(
            f"submissions are compiled in a sandbox, and {why}. Or, for submissions that you would compile yourself:"
            " --trust"
        )


class Sandbox:
    """Runs programs that see the host's tools, some files, and a folder of their own for what they make.

    `trusted`: they are run as they are, within the limits alone.
    """

    def __init__(
        self, out: Path, files: Mapping[str, Path], trusted: bool, tools: Sequence[str] = ()
    ) -> None:
        """`files`: what they see, by its place in WORK. `out`: is OUT. `tools`: folders of programs besides the usual
        ones, which are where they are."""
        self.out = out
        self._files = files
        self._tools = tools
        self._trusted = trusted
        if trusted:
            for name, file in files.items():
                place = out / "work" / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(file.resolve())

    def tools(self) -> tuple[str, ...]:
        """Folders of the host that programs see."""
        return (*TOOLS, *_compilers(), *self._tools)

    def run(self, script: str) -> Done:
        """Runs a script of sh, in which OUT and WORK are the places."""
        if self._trusted:
            places = {WORK: f"{self.out}/work", OUT: str(self.out)}
            script = re.sub(f"{WORK}|{OUT}", lambda found: places[found[0]], script)
            command = ["/bin/sh", "-c", script]
        else:
            command = [*_wrapped(self._files, self.out, self._tools), "/bin/sh", "-c", script]
        return _limited(command, self.out)


def _wrapped(files: Mapping[str, Path], out: Path | None, tools: Sequence[str] = ()) -> list[str]:
    """bwrap and its options: no network, no processes or files of the host, one folder to write to."""
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
    command += ["--cap-drop", "ALL", "--setenv", "PATH", "/usr/bin", "--setenv", "LC_ALL", "C"]
    for place in (*TOOLS, *_compilers(), *tools):
        command += ["--ro-bind-try", place, place]
    for place, target in LINKS.items():
        command += ["--symlink", target, place]
    command += ["--size", str(_FILE_BYTES), "--tmpfs", "/tmp"]
    for name, file in files.items():
        command += ["--ro-bind", str(file.resolve()), f"{WORK}/{name}"]
    if out is not None:
        command += ["--bind", str(out), OUT, "--chdir", OUT]
    return command


@cache
def _compilers() -> tuple[str, ...]:
    """Folders outside of /usr that the compiler lies in, if it does."""
    from schedlab.toolchain.tools import compiler

    found = shutil.which(compiler().clang)
    folder = Path(found).resolve().parents[1] if found else Path("/usr")
    return () if folder.is_relative_to("/usr") else (str(folder),)


def _limits() -> list[str]:
    """What is begun behind this, and all that it begins, has so much of the host and no more."""
    return [
        "prlimit",
        f"--cpu={_CPU_SECONDS}",
        f"--as={_MEMORY}",
        f"--fsize={_FILE_BYTES}",
        f"--nofile={_FILES}",
        "--core=0",
        "--",
    ]


def _limited(command: Sequence[str], folder: Path) -> Done:
    with (folder / ".said").open("w+b") as said:
        process = subprocess.Popen(
            [*_limits(), *command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        try:
            status = process.wait(_HOST_SECONDS)
        except subprocess.TimeoutExpired:
            status = -signal.SIGKILL
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        said.seek(0)
        text = said.read(_SAID_MAX).decode(errors="replace")
    (folder / ".said").unlink()
    return Done(status, text)

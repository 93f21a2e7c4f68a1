# SPDX-License-Identifier: MIT
"""Published schedulers of sched_ext that are installed on this host (scx_rusty, scx_lavd and others): to run
a workload under one of them, as a measure for our own. The policy `scx:rusty` is the program scx_rusty.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from schedlab.base.files.whole import file_hash
from schedlab.base.toolchain.policies import Policy, PolicyChoice
from schedlab.errors import MachineUnfit, WrongUsage, parameter
from schedlab.machines.linux.elf import LOADER
from schedlab.machines.linux.kernel import Kernel

PUBLISHED = Policy(
    "scx",
    "scx:NAME, the published scheduler scx_NAME, on Linux alone: a program that is installed on this host",
    "programs of the sched_ext project, and others like them",
    number=None,
)
"""No C file of ours, nor one program: which there are is the host's."""
_CURE = (
    "install it (the package scx-scheds of Arch Linux, or of Fedora's COPR kernel-cachyos-addons;"
    " elsewhere `cargo install scx_{name}`), so that it is on the PATH"
)
_FOLDER = "scheduler"
IN_GUEST = f"./{_FOLDER}/start"
"""The program that starts it in a guest."""
_START = """#!/bin/sh
here=$(dirname "$0")
mkdir -p /boot
cp "$here/config" /boot/config-{release}
exec {loader} "$here/program"
"""


def is_published(policy: PolicyChoice) -> bool:
    return policy.name == PUBLISHED.name


def program_of(policy: PolicyChoice) -> Path:
    """Returns where the program is. Raises WrongUsage with the way to get it if it is not installed."""
    if not policy.preset:
        names = ", ".join(f"scx:{name}" for name in installed()) or "none"
        raise WrongUsage(
            f"which one? Installed on this host: {names}", what=parameter("policy", policy)
        )
    path = shutil.which(f"scx_{policy.preset}")
    if path is None:
        cure = _CURE.format(name=policy.preset)
        raise WrongUsage(
            f"scx_{policy.preset} is not installed here", what=parameter("policy", policy), fix=cure
        )
    return Path(path).resolve()


def remark_on(policy: PolicyChoice) -> str:
    """Returns a comment of the shell that says which program it is, to the byte."""
    program = program_of(policy)
    return f" # {program.name}, SHA-256 {file_hash(program)}"


def installed() -> list[str]:
    """Returns the names that may follow `scx:`."""
    folders = (Path(folder) for folder in os.get_exec_path() if folder)
    names = {path.name for folder in folders for path in folder.glob("scx_*") if _can_run(path)}
    return sorted(name.removeprefix("scx_") for name in names)


def _can_run(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def files_for_guest(program: Path, kernel: Kernel) -> dict[str, bytes | Path]:
    """Returns the program with its libraries, which need not be those of the guest, by names below /job; and
    the configuration of the guest's kernel, which libbpf looks for in /boot."""
    libraries = dict(_libraries(program))
    files: dict[str, bytes | Path] = {f"{_FOLDER}/program": program}
    files |= {f"{_FOLDER}/lib/{name}": path for name, path in libraries.items()}
    files[f"{_FOLDER}/config"] = kernel.config_text().encode()
    loader = f'"$here/lib/{LOADER}" --library-path "$here/lib"' if LOADER in libraries else ""
    start = _START.format(release=shlex.quote(kernel.release), loader=loader)
    files[IN_GUEST.removeprefix("./")] = start.encode()
    return files


def _libraries(program: Path) -> Iterator[tuple[str, Path]]:
    """The libraries by their names; none if it is linked statically."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        name, _, location = line.strip().partition(" => ")
        if location.startswith("not found"):
            raise MachineUnfit(
                f"{program} does not run on this host: its library {name} is missing"
            )
        match = re.match(r"(/\S+)", location or name)
        if match:
            path = Path(match[1])
            yield path.name if not location else name, path

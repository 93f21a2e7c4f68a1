# SPDX-License-Identifier: MIT
"""Runs workloads with sched_ext schedulers installed on this host (scx_rusty, scx_lavd and others).

The policy `scx:rusty` is the program scx_rusty.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from schedlab.base.files.atomic import file_hash
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
"""A placeholder policy without a C file; the available programs depend on the host."""
_CURE = (
    "install it (the package scx-scheds of Arch Linux, or of Fedora's COPR kernel-cachyos-addons;"
    " elsewhere `cargo install scx_{name}`), so that it is on the PATH"
)
_FOLDER = "scheduler"
IN_GUEST = f"./{_FOLDER}/start"
"""The program that starts the scheduler in a guest."""
_START = """#!/bin/sh
here=$(dirname "$0")
mkdir -p /boot
cp "$here/config" /boot/config-{release}
exec {loader} "$here/program"
"""


def is_published(policy: PolicyChoice) -> bool:
    return policy.name == PUBLISHED.name


def program_of(policy: PolicyChoice) -> Path:
    """Returns a scheduler's program. Raises WrongUsage with instructions if it is not installed."""
    if not policy.preset:
        names = ", ".join(f"scx:{name}" for name in installed()) or "none"
        raise WrongUsage(
            "the scheduler is missing",
            what=parameter("policy", policy),
            fix=f"name an installed one: {names}",
        )
    path = shutil.which(f"scx_{policy.preset}")
    if path is None:
        cure = _CURE.format(name=policy.preset)
        raise WrongUsage(
            f"scx_{policy.preset} is not installed here", what=parameter("policy", policy), fix=cure
        )
    return Path(path).resolve()


def remark_on(policy: PolicyChoice) -> str:
    """Returns a shell comment with the program's name and SHA-256."""
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
    """Returns the scheduler, its libraries and the kernel's configuration, by names below /job.

    The libraries may differ from the guest's. libbpf reads the configuration from /boot.
    """
    libraries = dict(_libraries(program))
    files: dict[str, bytes | Path] = {f"{_FOLDER}/program": program}
    files |= {f"{_FOLDER}/lib/{name}": path for name, path in libraries.items()}
    files[f"{_FOLDER}/config"] = kernel.config_text().encode()
    loader = f'"$here/lib/{LOADER}" --library-path "$here/lib"' if LOADER in libraries else ""
    start = _START.format(release=shlex.quote(kernel.release), loader=loader)
    files[IN_GUEST.removeprefix("./")] = start.encode()
    return files


def _libraries(program: Path) -> Iterator[tuple[str, Path]]:
    """Yields the program's libraries by name; none if it is linked statically."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        name, _, location = line.strip().partition(" => ")
        if location.startswith("not found"):
            raise MachineUnfit(
                f"{program}: cannot run on this host: the library {name} is missing; install it"
            )
        match = re.match(r"(/\S+)", location or name)
        if match:
            path = Path(match[1])
            yield path.name if not location else name, path

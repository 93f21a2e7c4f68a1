# SPDX-License-Identifier: MIT
"""Runs workloads with sched_ext schedulers installed on this host (scx_rusty, scx_lavd and others).

The policy `scx:rusty` is the program scx_rusty.
"""

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from schedlab.base.files.atomic import file_hash
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.errors import MachineUnfit, WrongUsage, format_parameter
from schedlab.machines.linux.elf import LOADER_NAME
from schedlab.machines.linux.kernel import Kernel
from schedlab.sched_ext.extraction import installed_schedulers

_INSTALL_FIX = (
    "install it (the package scx-scheds of Arch Linux, or of Fedora's COPR kernel-cachyos-addons;"
    " elsewhere `cargo install scx_{name}`), so that it is on the PATH"
)
_FOLDER = "scheduler"
GUEST_START_PROGRAM = f"./{_FOLDER}/start"
"""The program that starts the scheduler in a guest."""
_START_SCRIPT = """#!/bin/sh
here=$(dirname "$0")
mkdir -p /boot
cp "$here/config" /boot/config-{release}
exec {loader} "$here/program"
"""


def find_scheduler_program(policy: PolicyChoice) -> Path:
    """Returns a scheduler's program. Raises WrongUsage with instructions if it is not installed."""
    if not policy.preset:
        names = ", ".join(f"scx:{name}" for name in installed_schedulers())
        install_fix = f"name one, such as scx:bpfland, and {_INSTALL_FIX.format(name='bpfland')}"
        raise WrongUsage(
            "the scheduler is missing",
            what=format_parameter("policy", policy),
            fix=f"name an installed one: {names}" if names else install_fix,
        )
    path = shutil.which(f"scx_{policy.preset}")
    if path is None:
        fix = _INSTALL_FIX.format(name=policy.preset)
        raise WrongUsage(
            f"scx_{policy.preset} is not installed here",
            what=format_parameter("policy", policy),
            fix=fix,
        )
    return Path(path).resolve()


def scheduler_comment(policy: PolicyChoice) -> str:
    """Returns a shell comment with the program's name and SHA-256."""
    program = find_scheduler_program(policy)
    return f" # {program.name}, SHA-256 {file_hash(program)}"


def files_for_guest(program: Path, kernel: Kernel) -> dict[str, bytes | Path]:
    """Returns the scheduler, its libraries and the kernel's configuration, by their names in /job.

    The libraries come along because the guest's may differ. libbpf reads the configuration from
    /boot.
    """
    libraries = dict(_libraries(program))
    files: dict[str, bytes | Path] = {f"{_FOLDER}/program": program}
    files |= {f"{_FOLDER}/lib/{name}": path for name, path in libraries.items()}
    files[f"{_FOLDER}/config"] = kernel.config_text().encode()
    loader = (
        f'"$here/lib/{LOADER_NAME}" --library-path "$here/lib"' if LOADER_NAME in libraries else ""
    )
    start = _START_SCRIPT.format(release=shlex.quote(kernel.release), loader=loader)
    files[GUEST_START_PROGRAM.removeprefix("./")] = start.encode()
    return files


def _libraries(program: Path) -> Iterator[tuple[str, Path]]:
    """Yields the program's libraries by name; none if it is linked statically."""
    result = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    for line in result.stdout.splitlines():
        name, _, location = line.strip().partition(" => ")
        if location.startswith("not found"):
            raise MachineUnfit(
                f"{program}: cannot run on this host: the library {name} is missing; install it"
            )
        match = re.match(r"(/\S+)", location or name)
        if match:
            path = Path(match[1])
            yield path.name if not location else name, path

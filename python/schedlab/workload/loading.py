# SPDX-License-Identifier: MIT
"""How a workload reaches our kernel: on a copy of the disk, from where the program `play` reads it
(docs/workloads.md)."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path

from schedlab.errors import WrongUsage, parameter
from schedlab.workload.model import WorkloadFile

TOOLS = ("mkfs",)
"""Parts of schedlab.base.toolchain.build.PARTS: what adds a file to a disk."""
FILE = "workload"
"""Its name on the disk."""
COMMAND = f"play /{FILE}"
CHANNELS_MAX = 128
"""abi/system_calls.h."""
PROCESSES_MAX = 65536 - 8
"""The slots of kernel/process/process_table.c, less those that start the workload."""
PROCESS_KIB = 30
"""A process of `play` that waits takes 29 KiB: what 64 MiB more of memory have room for, counted
until a fork failed."""
OTHER_MIB = 40
"""Memory for all else: the kernel, the disk of `make image`, programs that are not the workload's.
"""


def check_room(name: str, file: WorkloadFile, memory_mib: int) -> None:
    """Raises WrongUsage, before anything is started, for what the kernel has too little of."""
    channels = len(file.channels) + 1
    if channels > CHANNELS_MAX:
        raise WrongUsage(
            f"it needs {channels} channels (a lock, a condition and a task that is suspended"
            f" are one each), and the kernel has {CHANNELS_MAX}",
            what=parameter("workload", name),
            fix="`machine='sim'` has more",
        )
    total = file.total()
    if math.isinf(total):
        return  # it is unknown how many there are at once: the kernel says when it has no more room
    needed = math.ceil(total * PROCESS_KIB / 1024) + OTHER_MIB
    if total > PROCESSES_MAX:
        raise WrongUsage(
            f"it has {total:.0f} processes, and the kernel has room for {PROCESSES_MAX}",
            what=parameter("workload", name),
            fix="`machine='sim'` has more",
        )
    if needed > memory_mib:
        raise WrongUsage(
            f"its {total:.0f} processes may need {needed} MiB",
            what=parameter("workload", name),
            fix=f"say {parameter('memory_mib', needed)}, or `machine='sim'`",
        )


def make_disk(disk: Path, workload: bytes, mkfs: Path, scratch: Path) -> Path:
    """Returns a copy of the disk with the workload on it, in a folder for what is thrown away."""
    file, loaded = scratch / FILE, scratch / "disk.img"
    file.write_bytes(workload)
    add_to_disk(loaded, disk, [file], mkfs)
    return loaded


def add_to_disk(loaded: Path, disk: Path, files: list[Path], mkfs: Path) -> None:
    """Makes a copy of the disk with these files, which are removed. Raises WrongUsage if there is no room."""
    command: list[str | Path] = [mkfs, loaded, "--add", disk, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise WrongUsage(
            f"it cannot be put onto the disk: {done.stderr.strip()}",
            what="`workload=`",
            fix="`machine='sim'` does without",
        )
    for file in files:
        file.unlink()

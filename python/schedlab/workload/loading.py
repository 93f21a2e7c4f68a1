# SPDX-License-Identifier: MIT
"""Puts a workload on a copy of the schedlab kernel's disk, where the program `play` reads it (docs/workloads.md)."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path

from schedlab.errors import WrongUsage, parameter
from schedlab.workload.model import WorkloadFile

TOOLS = ("mkfs",)
"""Parts of schedlab.base.toolchain.build.PARTS that add a file to a disk."""
FILE = "workload"
"""The file's name on the disk."""
COMMAND = f"play /{FILE}"
CHANNELS_MAX = 128
"""As in abi/system_calls.h."""
PROCESSES_MAX = 65536 - 8
"""The slots in kernel/process/process_table.c, minus those for the processes that start the workload."""
PROCESS_KIB = 30
"""Memory per waiting process of `play`, in KiB. Measured 29 KiB: 64 MiB of additional memory,
divided by the additional processes until a fork failed.
"""
OTHER_MIB = 40
"""Memory for everything else, in MiB: the kernel, the disk of `make image`, and other programs."""


def check_room(name: str, file: WorkloadFile, memory_mib: int) -> None:
    """Raises WrongUsage before the run if the kernel has too few channels or slots, or too little memory."""
    channels = len(file.channels) + 1
    if channels > CHANNELS_MAX:
        raise WrongUsage(
            f"needs {channels} channels (one for each lock, condition and suspended "
            f"task), and the kernel has {CHANNELS_MAX}",
            what=parameter("workload", name),
            fix="use `machine='sim'`, which has more",
        )
    total = file.total()
    if math.isinf(total):
        # the number of simultaneous processes is unknown; the kernel reports when it is full
        return
    needed = math.ceil(total * PROCESS_KIB / 1024) + OTHER_MIB
    if total > PROCESSES_MAX:
        raise WrongUsage(
            f"has {total:.0f} processes, and the kernel has room for {PROCESSES_MAX}",
            what=parameter("workload", name),
            fix="use `machine='sim'`, which has more",
        )
    if needed > memory_mib:
        raise WrongUsage(
            f"its {total:.0f} processes may need {needed} MiB",
            what=parameter("workload", name),
            fix=f"add {parameter('memory_mib', needed)}, or use `machine='sim'`",
        )


def make_disk(disk: Path, workload: bytes, mkfs: Path, scratch: Path) -> Path:
    """Returns a copy of the disk with the workload, in the temporary folder `scratch`."""
    file, loaded = scratch / FILE, scratch / "disk.img"
    file.write_bytes(workload)
    add_to_disk(loaded, disk, [file], mkfs)
    return loaded


def add_to_disk(loaded: Path, disk: Path, files: list[Path], mkfs: Path) -> None:
    """Copies the disk and moves these files onto the copy. Raises WrongUsage if they do not fit."""
    command: list[str | Path] = [mkfs, loaded, "--add", disk, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise WrongUsage(
            f"cannot be written to the disk image: {done.stderr.strip()}",
            what="`workload=`",
            fix="use `machine='sim'`, which needs no disk",
        )
    for file in files:
        file.unlink()

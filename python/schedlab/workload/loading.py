# SPDX-License-Identifier: MIT
"""Puts a workload on a copy of the schedlab kernel's disk, for the program `play` (docs/workloads.md)."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path

from schedlab.errors import WrongUsage, format_parameter
from schedlab.workload.model import WorkloadFile

DISK_TOOLS = ("mkfs",)
"""Program that adds a file to a disk, by its name in schedlab.base.toolchain.build.BUILT_FILES."""
WORKLOAD_FILE_NAME = "workload"
"""Name of the workload's file on the disk."""
PLAY_COMMAND = f"play /{WORKLOAD_FILE_NAME}"
CHANNELS_MAX = 128
"""As in abi/system_calls.h."""
PROCESSES_MAX = 65536 - 8
"""Maximum number of processes of a workload: the kernel's, minus the processes that start the workload.

See kernel/process/process_table.c.
"""
PROCESS_KIB = 30
"""Memory in KiB per waiting process of `play`.

Measured: 29 KiB, as 64 MiB of additional memory ÷ number of additional processes until a fork
failed.
"""
BASE_MEMORY_MIB = 40
"""Memory in MiB for the kernel, its disk and other programs."""


def check_channels(name: str, file: WorkloadFile) -> None:
    """Raises WrongUsage if the program `play` has too few channels for a workload."""
    channels = len(file.channels) + 1
    if channels > CHANNELS_MAX:
        raise WrongUsage(
            f"needs {channels} channels (one for each lock, condition and suspended "
            f"task), and `play` has {CHANNELS_MAX}",
            what=format_parameter("workload", name),
            fix="use `machine='sim'`, which has more",
        )


def check_capacity(name: str, file: WorkloadFile, memory_mib: int) -> None:
    """Raises WrongUsage if the kernel has too few channels or processes, or too little memory, for
    a workload.
    """
    check_channels(name, file)
    total = file.total()
    if math.isinf(total):
        # the number of simultaneous processes is unknown; the kernel reports if there are too many
        return
    needed = math.ceil(total * PROCESS_KIB / 1024) + BASE_MEMORY_MIB
    if total > PROCESSES_MAX:
        raise WrongUsage(
            f"has {total:.0f} processes, and the kernel has room for {PROCESSES_MAX}",
            what=format_parameter("workload", name),
            fix="use `machine='sim'`, which has more",
        )
    if needed > memory_mib:
        raise WrongUsage(
            f"its {total:.0f} processes may need {needed} MiB",
            what=format_parameter("workload", name),
            fix=f"add {format_parameter('memory_mib', needed)}, or use `machine='sim'`",
        )


def make_disk(disk: Path, workload: bytes, mkfs: Path, scratch: Path) -> Path:
    """Returns a copy of the disk with the workload, in the temporary folder `scratch`."""
    file, loaded_disk = scratch / WORKLOAD_FILE_NAME, scratch / "disk.img"
    file.write_bytes(workload)
    add_to_disk(loaded_disk, disk, [file], mkfs)
    return loaded_disk


def add_to_disk(loaded_disk: Path, disk: Path, files: list[Path], mkfs: Path) -> None:
    """Copies the disk and moves the files onto the copy. Raises WrongUsage if they do not fit."""
    command: list[str | Path] = [mkfs, loaded_disk, "--add", disk, *files]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise WrongUsage(
            f"cannot be written to the disk image: {result.stderr.strip()}",
            what="`workload=`",
            fix="use `machine='sim'`, which needs no disk",
        )
    for file in files:
        file.unlink()

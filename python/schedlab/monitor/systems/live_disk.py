# SPDX-License-Identifier: MIT
"""Makes the disk of a live machine: the standard disk plus the palette's workloads.

Each workload is a file for the program `play`. All are compiled at each start: 50 files take 0.2 s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from schedlab.base.toolchain.policies import unknown
from schedlab.errors import WrongUsage, parameter
from schedlab.monitor.system import Refused, Setup
from schedlab.workload.loading import add_to_disk, check_room
from schedlab.workload.palette import palette
from schedlab.workload.text import bytes_of
from schedlab.workload.workload_files import read

DISK = "disk.img"


@dataclass(frozen=True)
class LiveDisk:
    """The disk image and its workloads."""

    image: Path
    files: Mapping[str, str]
    """File names on the disk, by palette names."""
    problems: Mapping[str, str]
    """Error messages by the names of workloads that are not on the disk."""

    def command(self, name: str) -> str:
        """Returns the command that starts a workload. Raises Refused if the workload is not on the disk."""
        if name in self.files:
            return f"play /{self.files[name]}"
        raise Refused(self.problems.get(name) or unknown("workload", name, self.files))


def make_live_disk(setup: Setup, folder: Path, parts: Mapping[str, Path]) -> LiveDisk:
    """Makes the disk in `folder`. Raises WrongUsage if a requested workload cannot be stored on the disk."""
    entries = palette(setup.files)
    check_names_known(setup.workloads, entries)
    files: dict[str, str] = {}
    problems: dict[str, str] = {}
    for number, entry in enumerate(entries.values()):
        place = f"workload-{number}"
        try:
            workload = read(entry.file)
            check_room(entry.file.stem, workload, setup.memory_mib)
            (folder / place).write_bytes(bytes_of(workload, setup.seed, setup.tick_ns))
            files[entry.name] = place
        except WrongUsage as error:
            if entry.kind == "own" or entry.name in setup.workloads:
                raise
            problems[entry.name] = str(error)
    image = folder / DISK
    compiled = [folder / place for place in files.values()]
    add_to_disk(image, parts["disk"], compiled, parts["mkfs"])
    return LiveDisk(image, files, problems)


def check_names_known(names: Iterable[str], known: Iterable[str]) -> None:
    """Raises WrongUsage if the palette lacks a workload."""
    known = list(known)
    for name in names:
        if name not in known:
            raise WrongUsage(unknown("workload", name, known), what=parameter("workload", name))

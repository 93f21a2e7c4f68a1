# SPDX-License-Identifier: MIT
"""The disk of a machine that is watched: that of all runs, with the palette's workloads on it, each
as a file that the program `play` acts out.

All of them are compiled at each start: 50 files take 0.2 s.
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
    """A disk that was made."""

    image: Path
    files: Mapping[str, str]
    """The palette's names, and what the workload is called on the disk."""
    problems: Mapping[str, str]
    """Those that are not on it, and why."""

    def command(self, name: str) -> str:
        """Returns what starts a workload. Refused: it is not there."""
        if name in self.files:
            return f"play /{self.files[name]}"
        raise Refused(self.problems.get(name) or unknown("workload", name, self.files))


def make_live_disk(setup: Setup, folder: Path, parts: Mapping[str, Path]) -> LiveDisk:
    """Makes it in `folder`. WrongUsage: what the user asked for cannot be on it."""
    entries = palette(setup.files)
    check_wanted(setup.workloads, entries)
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


def check_wanted(names: Iterable[str], known: Iterable[str]) -> None:
    """WrongUsage: a workload is not of the palette."""
    known = list(known)
    for name in names:
        if name not in known:
            raise WrongUsage(unknown("workload", name, known), what=parameter("workload", name))

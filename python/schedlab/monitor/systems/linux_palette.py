# SPDX-License-Identifier: MIT
"""The palette's workloads as files for the program `play` of Linux, which acts them out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from schedlab.errors import WrongUsage, parameter
from schedlab.monitor.system import Refused, Setup
from schedlab.monitor.systems.live_disk import check_wanted
from schedlab.workload.loading import CHANNELS_MAX
from schedlab.workload.palette import Entry, palette
from schedlab.workload.text import bytes_of
from schedlab.workload.workload_files import read


@dataclass
class Compiled:
    """What can be started."""

    files: dict[str, Path] = field(default_factory=dict)
    """Files by their names in the palette."""
    problems: dict[str, str] = field(default_factory=dict)
    """Those that cannot, and why."""

    def file(self, name: str) -> Path:
        """Refused: it is not there."""
        if name in self.files:
            return self.files[name]
        known = ", ".join(self.files)
        raise Refused(
            self.problems.get(name) or f"there is no workload {name!r}; there are {known}"
        )


def compile_palette(setup: Setup, folder: Path, tick_ns: int) -> Compiled:
    """Writes the files into `folder`. WrongUsage: what the user asked for cannot be one of them."""
    entries = palette(setup.files)
    check_wanted(setup.workloads, entries)
    folder.mkdir(exist_ok=True)
    compiled = Compiled()
    for number, entry in enumerate(entries.values()):
        try:
            place = folder / str(number)  # whatever characters its name has
            place.write_bytes(_compiled(entry, setup.seed, tick_ns))
            compiled.files[entry.name] = place
        except WrongUsage as error:
            if entry.kind == "own" or entry.name in setup.workloads:
                raise
            compiled.problems[entry.name] = str(error)
    return compiled


def _compiled(entry: Entry, seed: int, tick_ns: int) -> bytes:
    workload = read(entry.file)
    if len(workload.channels) >= CHANNELS_MAX:
        raise WrongUsage(
            f"it needs {len(workload.channels) + 1} channels, and `play` has {CHANNELS_MAX}",
            what=parameter("workload", entry.name),
            fix="`machine='sim'` has more",
        )
    return bytes_of(workload, seed, tick_ns)

# SPDX-License-Identifier: MIT
"""Compiles the palette's workloads to files for the Linux program `play`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from schedlab.errors import WrongUsage, parameter
from schedlab.monitor.system import Refused, Setup
from schedlab.monitor.systems.live_disk import check_names_known
from schedlab.workload.loading import CHANNELS_MAX
from schedlab.workload.palette import Entry, palette
from schedlab.workload.text import bytes_of
from schedlab.workload.workload_files import read


@dataclass
class Compiled:
    """The compiled workloads, and the reasons why others could not be compiled."""

    files: dict[str, Path] = field(default_factory=dict)
    """Files by palette names."""
    problems: dict[str, str] = field(default_factory=dict)
    """Error messages by the names of workloads that cannot be compiled."""

    def file(self, name: str) -> Path:
        """Returns a workload's file. Raises Refused if there is none."""
        if name in self.files:
            return self.files[name]
        known = ", ".join(self.files)
        raise Refused(
            self.problems.get(name) or f"there is no workload {name!r}; there are {known}"
        )


def compile_palette(setup: Setup, folder: Path, tick_ns: int) -> Compiled:
    """Compiles the workloads into `folder`.

    Raises WrongUsage if a requested workload, or a workload file of the user, cannot be compiled.
    """
    entries = palette(setup.files)
    check_names_known(setup.workloads, entries)
    folder.mkdir(exist_ok=True)
    compiled = Compiled()
    for number, entry in enumerate(entries.values()):
        try:
            place = folder / str(number)  # a number, because workload names may have any characters
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
            f"needs {len(workload.channels) + 1} channels, but `play` has {CHANNELS_MAX}",
            what=parameter("workload", entry.name),
            fix="use `machine='sim'`, which has more",
        )
    return bytes_of(workload, seed, tick_ns)

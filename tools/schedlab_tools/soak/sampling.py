# SPDX-License-Identifier: MIT
"""What a tree of processes has of the host at a moment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

TOLD = re.compile(r"^(?:\[[^\]]*\] )?soak ((?:\w+=-?\d+(?:\.\d+)? ?)+)\r?$")
"""A line by which a program tells figures of its own: soak free_pages=27747 processes=2."""

HOST_FIGURES = ("memory_bytes", "open_files", "processes", "threads")
"""Memory is what would come back to the host if the processes ended (the unique set size)."""


def tree(root: psutil.Process) -> list[psutil.Process]:
    """The process and all that descend from it, except those that have ended."""
    with suppress(psutil.Error):
        found = [root, *root.children(recursive=True)]
        return [each for each in found if each.status() != psutil.STATUS_ZOMBIE]
    return []


def host_figures(root: psutil.Process) -> dict[str, float]:
    """HOST_FIGURES of a process and its descendants; {} if it has ended.

    A process that ends meanwhile counts as far as it was read.
    """
    found = dict.fromkeys(HOST_FIGURES, 0.0)
    processes = tree(root)
    for process in processes:
        with suppress(psutil.Error), process.oneshot():
            found["memory_bytes"] += process.memory_full_info().uss
            found["open_files"] += process.num_fds()
            found["threads"] += process.num_threads()
            found["processes"] += 1
    return found if found["processes"] else {}


@dataclass
class Told:
    """Figures that a part tells in its log, read as the log grows."""

    log: Path
    _position: int = 0
    _rest: bytes = field(default=b"")

    def read(self) -> Iterator[dict[str, float]]:
        """The figures of each line since the last call."""
        with suppress(FileNotFoundError), self.log.open("rb") as stream:
            stream.seek(self._position)
            data = stream.read()
            self._position += len(data)
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                found = TOLD.match(line.decode(errors="replace"))
                if found:
                    pairs = (pair.split("=") for pair in found[1].split())
                    yield {name: float(value) for name, value in pairs}

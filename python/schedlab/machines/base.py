# SPDX-License-Identifier: MIT
"""What a machine is to the rest of schedlab."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from schedlab.machines.outcome import Outcome
from schedlab.machines.spec import RunSpec

Parts = Mapping[str, Path]
"""What runs start from, by the names of schedlab.runs.parts."""


@dataclass(frozen=True)
class Release:
    """The program that is the machine."""

    path: str
    version: str
    origin: str


class Machine(Protocol):
    """A computer, emulated or simulated, that carries out runs, each by one process of this host."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.name == getattr(other, "name", None)

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    name: str
    repeatable: bool
    """The same run gives the same trace, byte for byte."""
    parts: tuple[str, ...]
    """What it starts from, by the names of schedlab.runs.parts: the program that it runs first."""
    tools: tuple[str, ...]
    """What it needs besides that for a workload file."""
    cpus_max: int
    tick_ns: int
    memory_mib: int
    """What it has of these, unless it is told otherwise."""

    @property
    def note(self) -> str:
        """What tables say of all its runs; "": nothing."""
        ...

    @property
    def shape_note(self) -> str:
        """What is to be said to a user who gives it a shape; "": nothing, work takes as long as that says."""
        ...

    @property
    def programs(self) -> frozenset[str] | None:
        """The programs that it can run; None: there may be others than are known here."""
        ...

    def check(self, run: RunSpec) -> None:
        """Raises WrongUsage, if the run is of something that this machine cannot do."""
        ...

    def arguments(self, run: RunSpec) -> str:
        """What is run and how, in its own words. Nothing of the host is in it: no path, no date."""
        ...

    def release(self) -> Release:
        """The program to start, installed if need be. MachineUnfit says what is wrong with it."""
        ...

    def start(self, run: RunSpec, parts: Parts, folder: Path, scratch: Path) -> list[str]:
        """The command that carries out a run, from within its folder, in which its files are.

        What it needs besides them is made in `scratch`, which is there until the run has ended.
        """
        ...

    def outcome(self, status: int, folder: Path, scratch: Path, console: Path) -> Outcome:
        """What came of it, by the command's exit status (negative: a signal) and what it left.

        The trace is in `folder` after that, if there is one, and all that was printed in `console`.
        `scratch` is that of `start`.
        """
        ...

    def host_cpus(self, cpus: int) -> int:
        """CPUs of the host that it keeps busy."""
        ...

    def host_limit(self, cpus: int, limit_ns: int) -> float:
        """Returns the seconds of the host after which it must be hanging: it ends by itself after
        `limit_ns` of its own time."""
        ...


@runtime_checkable
class Branching(Protocol):
    """A machine whose runs can fork at a moment, and go on in several ways."""

    def branched(
        self, command: list[str], at_ns: int, folders: Mapping[Path, str], jobs: int
    ) -> list[str]:
        """Returns the command of `start`, so that the run goes on in each of these folders from that
        time of its kernel on, `jobs` of them side by side. A folder's text is told to its kernel at
        that moment.

        Each has its console and its trace afterwards, and `branch_status` says how it has ended.
        """
        ...

    def branch_status(self, folder: Path) -> int | None:
        """Returns the exit status of a branch, as that of a command, and leaves nothing in its folder
        but what a run leaves; None if it did not end by itself."""
        ...

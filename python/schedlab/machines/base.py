# SPDX-License-Identifier: MIT
"""What a machine is to the rest of schedlab."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

TRACE_FILE = "trace.bin"
"""Where a machine leaves the trace, in the folder that it runs in."""

KERNEL_PARTS: tuple[str, ...] = ("kernel", "disk")
KERNEL_CPUS_MAX = 64
KERNEL_LIMIT = 102
"""abi/machine_status.h."""


@dataclass(frozen=True)
class Boot:
    """One start of a machine. The program sees of it only CPUs, memory, disk and arguments."""

    program: Path
    """What runs: our kernel; or the simulator, which has the policies within."""
    disk: Path | None
    """None: of no use to what is booted."""
    cpus: int
    memory_mib: int
    arguments: str
    traced: bool = True
    interactive: bool = False


@dataclass(frozen=True)
class Release:
    """The program that is the machine."""

    path: str
    version: str
    origin: str


class Machine(Protocol):
    """A simulator or emulator of a computer; or the simulator without one."""

    name: str
    repeatable: bool
    """The same boot gives the same trace, byte for byte."""

    parts: tuple[str, ...]
    """What it starts from, of schedlab.build.PARTS: the program first."""
    cpus_max: int
    limit_status: int
    """Its exit status after it has ended itself at its limit."""

    def release(self) -> Release:
        """The program to start, installed if need be. MachineUnfit says what is wrong with it."""
        ...

    def command(self, boot: Boot) -> list[str]:
        """How to start it, from within the run's folder."""
        ...

    def host_cpus(self, cpus: int) -> int:
        """CPUs of the host that it keeps busy."""
        ...

    def host_limit(self, cpus: int, limit_ns: int) -> float:
        """Seconds of the host after which it must hang: it ends itself at `limit_ns` of its own."""
        ...

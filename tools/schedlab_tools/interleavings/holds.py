# SPDX-License-Identifier: MIT
"""Turns of other than normal length, as the driver of Spike keeps and takes them (spike/holds.h)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from schedlab.errors import FileRefused

TURN_NS = 500
"""A round's length: as many instructions of a CPU, a nanosecond each."""


@dataclass(frozen=True)
class Hold:
    """A CPU has a part of its turn, and then stands still. The place is told by what the CPU has done, not by the time:
    it is the same one if others are left out that came before."""

    cpu: int
    boundaries: int
    """Locks that it was about to take or has given back."""
    instructions: int
    """Since the last of them."""
    called: bool
    """It slept or burnt there, and has just been called."""
    rounds: int
    """For how long it stands still."""
    address: int
    """Where it stands still."""
    caller: int
    """Where its function returns to, if that is what the register has which tells so."""
    at_ns: int
    """The kernel's time then; 0 before its clock begins."""

    @property
    def length_ns(self) -> int:
        """For how long it stands still."""
        return self.rounds * TURN_NS

    def __str__(self) -> str:
        words = (self.cpu, self.boundaries, self.instructions, int(self.called), self.rounds)
        return f"{' '.join(map(str, words))} {self.address:x} {self.caller:x} {self.at_ns}"


def read_holds(path: Path) -> tuple[Hold, ...]:
    """Reads a list. Raises FileRefused for what is none."""
    try:
        return tuple(map(_hold, path.read_text().splitlines()))
    except (OSError, ValueError) as error:
        raise FileRefused(
            f"{path}: no list of turns as explore kernel writes them: {error}"
        ) from None


def _hold(line: str) -> Hold:
    cpu, boundaries, instructions, called, rounds, *places, at_ns = line.split()
    address, caller = places
    return Hold(
        int(cpu),
        int(boundaries),
        int(instructions),
        called == "1",
        int(rounds),
        int(address, 16),
        int(caller, 16),
        int(at_ns),
    )


def write_holds(path: Path, holds: Iterable[Hold]) -> None:
    """Writes a list."""
    path.write_text("".join(f"{hold}\n" for hold in holds))

# SPDX-License-Identifier: MIT
"""Represents abnormal turns, as Spike's driver reads and writes them (spike/holds.h)."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from schedlab.errors import FileRefused

TURN_NS = 500
"""Length of a round: this many instructions per CPU, one nanosecond each."""


@dataclass(frozen=True)
class Hold:
    """A CPU that is held after a part of its turn.

    The place is defined by what the CPU has done, not by the time. It therefore stays the same if
    earlier holds are removed.
    """

    cpu: int
    boundaries: int
    """Number of locks that it was about to take or had released."""
    instructions: int
    """Instructions since the last lock operation."""
    called: bool
    """True if it was sleeping or burning there and has just been called."""
    rounds: int
    """Duration of the hold in rounds."""
    address: int
    """Address where it is held."""
    caller: int
    """Return address of its function, if the register contains it."""
    at_ns: int
    """The kernel's time of the hold; 0 before its clock starts."""

    @property
    def length_ns(self) -> int:
        """Duration of the hold in nanoseconds."""
        return self.rounds * TURN_NS

    def __str__(self) -> str:
        """Returns the hold as a line of the file."""
        words = (self.cpu, self.boundaries, self.instructions, int(self.called), self.rounds)
        return f"{' '.join(map(str, words))} {self.address:x} {self.caller:x} {self.at_ns}"


def read_holds(path: Path) -> tuple[Hold, ...]:
    """Reads a list of holds. Raises FileRefused for other files."""
    try:
        return tuple(map(_parse_hold, path.read_text().splitlines()))
    except (OSError, ValueError) as error:
        raise FileRefused(
            f"{path}: no list of turns as explore kernel writes them: {error}"
        ) from None


def _parse_hold(line: str) -> Hold:
    """Parses a line. Raises ValueError."""
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
    """Writes a list of holds."""
    path.write_text("".join(f"{hold}\n" for hold in holds))

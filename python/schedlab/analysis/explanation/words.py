# SPDX-License-Identifier: MIT
"""Describes the parts of a wait in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from schedlab.analysis.explanation.blame import Blame, Cause
from schedlab.analysis.tables.trace_tables import TraceTables

_BLOCKED_WORDS = {
    "sleep": "slept",
    "disk": "waited for the disk",
    "console": "waited for the console",
    "ended": "had ended",
}


@dataclass(frozen=True)
class WaitShare:
    """All parts of a wait that have the same explanation, added up."""

    duration_ns: int
    parts: int
    """Number of parts."""
    words: str
    """The explanation."""
    chain: tuple[int, ...]
    cause: Cause
    life: int | None
    cpu: int | None
    reason: str


class LifeNames(Protocol):
    """Maps processes (lives) to display names."""

    def __getitem__(self, life: int, /) -> str: ...


class ProcessNames:
    """Display names of processes: group and PID."""

    def __init__(self, tables: TraceTables) -> None:
        """Reads the names from the tables of a trace."""
        table = tables.processes
        self._table = table
        self._names: Mapping[int, str] = {
            life: f"{group} {pid}"
            for life, group, pid in zip(table["life"], table["group"], table["pid"], strict=True)
        }

    def name_by(self, life: int, by: str) -> str:
        """Returns the group, name or pid of a process as text."""
        return str(self._table[by][life])

    def pid(self, life: int) -> int:
        """Returns the PID of a process."""
        return int(self._table["pid"][life])

    def __getitem__(self, life: int) -> str:
        """Returns the display name of a process: its group and PID."""
        return self._names[life]


def sum_equal_parts(blames: Sequence[Blame], names: ProcessNames) -> list[WaitShare]:
    """Returns the parts of a wait with equal ones summed up, the longest first."""
    sums: dict[tuple[object, ...], list[Blame]] = {}
    for part in blames:
        key = (part.chain, part.cause, part.life, part.cpu, part.reason)
        sums.setdefault(key, []).append(part)
    shares = [
        WaitShare(
            sum(part.duration_ns for part in parts),
            len(parts),
            describe_blame(parts[0], names),
            parts[0].chain,
            parts[0].cause,
            parts[0].life,
            parts[0].cpu,
            parts[0].reason,
        )
        for parts in sums.values()
    ]
    return sorted(shares, key=lambda share: (-share.duration_ns, share.words))


def describe_blame(part: Blame, names: LifeNames) -> str:
    """Returns a part of a wait as a clause: "cpu 7 ran on CPU 0"; "pipe 5 waited for cpu 7, which slept"."""
    chain = [names[life] for life in part.chain]
    subject = " waited for ".join(chain[:1] + [f"{name}, which" for name in chain[1:]])
    if part.cause == Cause.BLOCKED:
        return f"{subject or 'it'} {_BLOCKED_WORDS.get(part.reason, f'waited for: {part.reason}')}"
    if part.cause == Cause.UNKNOWN:
        return f"{subject or 'it'}: unknown, not in the trace"
    if part.chain and part.life == part.chain[-1]:
        return f"{subject} ran on CPU {part.cpu}"
    meanwhile = _cpu_activity(part, names)
    return f"{subject} waited while {meanwhile}" if chain else meanwhile


def _cpu_activity(part: Blame, names: LifeNames) -> str:
    if part.life is not None:
        return f"{names[part.life]} ran on CPU {part.cpu}"
    doing = "idled" if part.cause == Cause.IDLE else "was in the scheduler"
    return f"CPU {part.cpu} {doing}"

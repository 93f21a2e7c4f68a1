# SPDX-License-Identifier: MIT
"""What processes of a replay do or have otherwise than in the recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Otherwise:
    """Processes go by the numbers of their lives (schedlab.metrics.lives)."""

    idle: frozenset[int] = frozenset()
    """They compute nothing; all else they do, since others may wait for it."""
    attributes: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """Attributes that processes have from their fork on, whatever they set themselves."""

    def body(self, life: int, lines: list[str]) -> list[str]:
        """What a process does, of what it did."""
        own = self.attributes.get(life, {})
        if life in self.idle:
            lines = [line for line in lines if not line.startswith("run ")]
        kept = [line for line in lines if _set_by(line) not in own]
        return [*(f"{name} {value}" for name, value in own.items()), *kept]


AS_RECORDED = Otherwise()


def _set_by(line: str) -> str:
    """The attribute that a line sets of the process itself; "": none."""
    words = line.split()
    return words[0] if len(words) == 2 else ""

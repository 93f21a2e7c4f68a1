# SPDX-License-Identifier: MIT
"""A machine's shape, and the line of text by which simulator and kernel are told of it
(policies/support/shape_text.h)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

CPUS_MAX = 1024
NODES_MAX = 64
KINDS_MAX = 16
LEVELS_MAX = 16
THREADS_MAX = 8
"""CPUs of a core."""
CAPACITY_FULL = 1024
"""The capacity of the fastest CPU at its highest level, as Linux has it."""
DISTANCE_LOCAL, DISTANCE_MAX = 10, 255
COLD = ("core", "cache", "node")
"""Where a process has come from: another CPU of the same core, of the same cache, of the same node."""
COLD_MAX_NS = 10**8
HIGHEST, DEMAND = "highest", "demand"
"""Which level a CPU has: always the highest, or one by what it had to do."""


@dataclass(frozen=True)
class Model:
    """What only the simulator goes by."""

    busy_siblings: tuple[int, ...] = ()
    """Thousandths of its speed that a CPU has left while one sibling is busy, two are, and so on."""
    cold_ns: tuple[int, int, int] = (0, 0, 0)
    """How much longer a process computes after it came from another CPU, in the order of COLD."""
    levels: str = HIGHEST

    def words(self) -> list[str]:
        """Its part of the text."""
        return [
            *([f"threads{_points(self.busy_siblings)}"] if self.busy_siblings else []),
            *([f"cold{_points(self.cold_ns)}"] if any(self.cold_ns) else []),
            *(["demand"] if self.levels == DEMAND else []),
        ]


@dataclass(frozen=True)
class Shape:
    """The shape of a machine. Cores, caches, nodes and kinds are numbered from 0 on."""

    core: tuple[int, ...]
    """By CPU: its core, as the next three."""
    cache: tuple[int, ...]
    node: tuple[int, ...]
    kind: tuple[int, ...]
    kinds: tuple[tuple[int, ...], ...] = ((CAPACITY_FULL,),)
    """By kind: the capacities of its levels, the highest first."""
    distances: tuple[tuple[int, ...], ...] = ((DISTANCE_LOCAL,),)
    model: Model = Model()
    description: str = ""
    name: str = field(default="", compare=False)
    """The name for people, and for a run's manifest: with the beginning of the file's hash."""
    source: str = field(default="", compare=False, repr=False)
    """The file, as it was read."""

    @property
    def cpus(self) -> int:
        """How many there are."""
        return len(self.core)

    def text(self, with_model: bool = True) -> str:
        """The shape in one line without blanks. The kernel is not told the simulator's model."""
        words = [
            *_part("core", self.core, tuple(range(self.cpus))),
            *_part("cache", self.cache, (0,) * self.cpus),
            *_part("node", self.node, (0,) * self.cpus),
            *_part("kind", self.kind, (0,) * self.cpus),
        ]
        if self.kinds != ((CAPACITY_FULL,),):
            words.append("speed" + ":".join(map(_points, self.kinds)))
        if len(self.distances) > 1:
            words.append("distance" + ":".join(map(_points, self.distances)))
        if with_model:
            words += self.model.words()
        return ",".join(words) or "core/1"


def _points(numbers: Sequence[int]) -> str:
    return ".".join(map(str, numbers))


def _part(word: str, numbers: tuple[int, ...], standard: tuple[int, ...]) -> list[str]:
    """A number for each CPU, by a rule if there is one; nothing if it is the standard."""
    if numbers == standard:
        return []
    cpus = len(numbers)
    width = next((cpu for cpu in range(cpus) if numbers[cpu] != numbers[0]), cpus)
    again = next((cpu for cpu in range(width, cpus) if numbers[cpu] == numbers[0]), cpus)
    if numbers == tuple(cpu % again // width for cpu in range(cpus)):
        rest = f"%{again}" if again < cpus else ""
        return [f"{word}{rest}/{width}"]
    return [word + _points(numbers)]


def in_order(groups: Sequence[Hashable]) -> tuple[int, ...]:
    """By CPU: the number of its group, in the order of their lowest CPUs. `groups`: by CPU, a name for it."""
    places = {group: place for place, group in enumerate(dict.fromkeys(groups))}
    return tuple(places[group] for group in groups)

# SPDX-License-Identifier: MIT
"""Defines a machine's shape, and its text format for simulator and kernel (policies/support/shape_text.h)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

CPUS_MAX = 1024
NODES_MAX = 64
KINDS_MAX = 16
LEVELS_MAX = 16
THREADS_MAX = 8
"""CPUs per core."""
CAPACITY_FULL = 1024
"""The capacity of the fastest CPU at its highest level, as in Linux."""
DISTANCE_LOCAL, DISTANCE_MAX = 10, 255
COLD = ("core", "cache", "node")
"""The distance of a migration: from the same core, the same cache, or the same node."""
COLD_MAX_NS = 10**8
HIGHEST, DEMAND = "highest", "demand"
"""How a CPU's level is chosen: always the highest, or by its load."""


@dataclass(frozen=True)
class Model:
    """The part of a shape that affects only the simulator."""

    busy_siblings: tuple[int, ...] = ()
    """The speed of a CPU in thousandths while one sibling is busy, two siblings are, and so on."""
    cold_ns: tuple[int, int, int] = (0, 0, 0)
    """Additional computing time of a process after a migration, in the order of COLD."""
    levels: str = HIGHEST

    def words(self) -> list[str]:
        """Returns the model's part of the text format."""
        return [
            *([f"threads{_points(self.busy_siblings)}"] if self.busy_siblings else []),
            *([f"cold{_points(self.cold_ns)}"] if any(self.cold_ns) else []),
            *(["demand"] if self.levels == DEMAND else []),
        ]


@dataclass(frozen=True)
class Shape:
    """The shape of a machine. Cores, caches, nodes and kinds are numbered, starting at 0."""

    core: tuple[int, ...]
    """By CPU: its core. The next three fields are also by CPU."""
    cache: tuple[int, ...]
    node: tuple[int, ...]
    kind: tuple[int, ...]
    kinds: tuple[tuple[int, ...], ...] = ((CAPACITY_FULL,),)
    """By kind: the capacities of its levels, the highest first."""
    distances: tuple[tuple[int, ...], ...] = ((DISTANCE_LOCAL,),)
    model: Model = Model()
    description: str = ""
    name: str = field(default="", compare=False)
    """The name for users and for a run's manifest, with the start of the file's hash."""
    source: str = field(default="", compare=False, repr=False)
    """The content of the file."""

    @property
    def cpus(self) -> int:
        """The number of CPUs."""
        return len(self.core)

    def text(self, with_model: bool = True) -> str:
        """Returns the shape in one line without blanks. The kernel does not get the simulator's model."""
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
    """Returns a number for each CPU, as a rule if possible; nothing for the default."""
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
    """Returns each CPU's group number, in the order of the groups' lowest CPUs. `groups`: each CPU's group name."""
    places = {group: place for place, group in enumerate(dict.fromkeys(groups))}
    return tuple(places[group] for group in groups)

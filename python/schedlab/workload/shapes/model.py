# SPDX-License-Identifier: MIT
"""Defines the shape of a machine, and its text format for the simulator and the kernel.

policies/support/shape_text.h parses the text.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

CPUS_MAX = 1024
NODES_MAX = 64
KINDS_MAX = 16
LEVELS_MAX = 16
THREADS_MAX = 8
"""Maximum number of CPUs per core."""
CAPACITY_FULL = 1024
"""Capacity of the fastest CPU at its highest level; capacities are relative to it, as in Linux."""
DISTANCE_LOCAL, DISTANCE_MAX = 10, 255
MIGRATION_LEVELS = ("core", "cache", "node")
"""What a migration crosses, from near to far: it stays in the core, in the cache, or in the node."""
COLD_MAX_NS = 10**8
HIGHEST_LEVEL, LEVEL_BY_DEMAND = "highest", "demand"
"""Values of Model.levels: a CPU always has its highest speed level, or a level by its load."""


@dataclass(frozen=True)
class Model:
    """Properties of a machine that only the simulator models."""

    busy_siblings: tuple[int, ...] = ()
    """Speed of a CPU, in thousandths, while one other CPU of its core is busy, while two are, and so on."""
    cold_ns: tuple[int, int, int] = (0, 0, 0)
    """Additional computing time (ns) after a migration within the core, the cache and the node."""
    levels: str = HIGHEST_LEVEL
    """How a CPU chooses its speed level: HIGHEST_LEVEL or LEVEL_BY_DEMAND."""

    def words(self) -> list[str]:
        """Returns this part of the shape as words of the text format."""
        return [
            *([f"threads{_join_dots(self.busy_siblings)}"] if self.busy_siblings else []),
            *([f"cold{_join_dots(self.cold_ns)}"] if any(self.cold_ns) else []),
            *(["demand"] if self.levels == LEVEL_BY_DEMAND else []),
        ]


@dataclass(frozen=True)
class Shape:
    """The shape of a machine. Cores, caches, nodes and kinds of CPUs have numbers from 0 on."""

    core: tuple[int, ...]
    """The core of each CPU. The next three fields are also per CPU."""
    cache: tuple[int, ...]
    node: tuple[int, ...]
    kind: tuple[int, ...]
    kinds: tuple[tuple[int, ...], ...] = ((CAPACITY_FULL,),)
    """For each kind of CPU: the capacities of its speed levels, the highest first."""
    distances: tuple[tuple[int, ...], ...] = ((DISTANCE_LOCAL,),)
    model: Model = Model()
    description: str = ""
    name: str = field(default="", compare=False)
    """Name for users and manifests, with the start of the file's hash."""
    source: str = field(default="", compare=False, repr=False)
    """The text of the shape file."""

    @property
    def cpus(self) -> int:
        """The number of CPUs."""
        return len(self.core)

    def text(self, with_model: bool = True) -> str:
        """Returns the shape in one line without blanks.

        `with_model`: includes the simulator's model, which the kernel does not get.
        """
        words = [
            *_per_cpu_words("core", self.core, tuple(range(self.cpus))),
            *_per_cpu_words("cache", self.cache, (0,) * self.cpus),
            *_per_cpu_words("node", self.node, (0,) * self.cpus),
            *_per_cpu_words("kind", self.kind, (0,) * self.cpus),
        ]
        if self.kinds != ((CAPACITY_FULL,),):
            words.append("speed" + ":".join(map(_join_dots, self.kinds)))
        if len(self.distances) > 1:
            words.append("distance" + ":".join(map(_join_dots, self.distances)))
        if with_model:
            words += self.model.words()
        return ",".join(words) or "core/1"


def _join_dots(numbers: Sequence[int]) -> str:
    return ".".join(map(str, numbers))


def _per_cpu_words(word: str, numbers: tuple[int, ...], standard: tuple[int, ...]) -> list[str]:
    """Returns the words for a number per CPU: as a rule if possible, nothing for the default."""
    if numbers == standard:
        return []
    cpus = len(numbers)
    width = next((cpu for cpu in range(cpus) if numbers[cpu] != numbers[0]), cpus)
    repeat_at = next((cpu for cpu in range(width, cpus) if numbers[cpu] == numbers[0]), cpus)
    if numbers == tuple(cpu % repeat_at // width for cpu in range(cpus)):
        repeat_suffix = f"%{repeat_at}" if repeat_at < cpus else ""
        return [f"{word}{repeat_suffix}/{width}"]
    return [word + _join_dots(numbers)]


def number_groups(groups: Sequence[Hashable]) -> tuple[int, ...]:
    """Numbers the groups of CPUs in the order of their lowest CPUs; returns each CPU's number.

    `groups`: a name for each CPU's group.
    """
    places = {group: index for index, group in enumerate(dict.fromkeys(groups))}
    return tuple(places[group] for group in groups)

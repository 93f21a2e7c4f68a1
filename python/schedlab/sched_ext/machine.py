# SPDX-License-Identifier: MIT
"""The facts about a machine that a scheduler's user space computes settings from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class MachineFacts:
    """CPUs, and what they share. Lists are by CPU; numbers begin at 0."""

    core: tuple[int, ...]
    cache: tuple[int, ...]
    node: tuple[int, ...]
    capacity: tuple[int, ...]
    """1024 for the fastest CPU."""
    hz: int = field(default=1000)
    """Ticks per second."""

    @classmethod
    def of_equal_cpus(cls, cpus: int, hz: int = 1000) -> MachineFacts:
        """Returns the facts of a machine whose CPUs have one cache and no siblings."""
        return cls(tuple(range(cpus)), (0,) * cpus, (0,) * cpus, (1024,) * cpus, hz)

    @property
    def cpus(self) -> int:
        return len(self.core)

    @property
    def has_siblings(self) -> bool:
        return len(set(self.core)) < self.cpus

    @property
    def fastest_first(self) -> tuple[int, ...]:
        """CPUs by falling capacity."""
        return tuple(sorted(range(self.cpus), key=lambda cpu: (-self.capacity[cpu], cpu)))

    def sibling_pairs(self) -> list[tuple[int, int]]:
        """Returns the pairs of different CPUs of one core."""
        return [
            (cpu, other)
            for cpu in range(self.cpus)
            for other in range(self.cpus)
            if cpu != other and self.core[cpu] == self.core[other]
        ]

    def names(self) -> dict[str, int | Sequence[int]]:
        """Returns the values that profiles name."""
        kinds = sorted(set(self.capacity))
        return {
            "cpus": self.cpus,
            "cores": len(set(self.core)),
            "caches": len(set(self.cache)),
            "nodes": len(set(self.node)),
            "several_caches": int(len(set(self.cache)) > 1),
            "one_node": int(len(set(self.node)) == 1),
            "several_nodes": int(len(set(self.node)) > 1),
            "has_siblings": int(self.has_siblings),
            "has_kinds": int(len(kinds) > 1),
            "core_of_cpu": self.core,
            "cache_of_cpu": self.cache,
            "node_of_cpu": self.node,
            "capacity_of_cpu": self.capacity,
            "fastest_first": self.fastest_first,
        }

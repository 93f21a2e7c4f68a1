# SPDX-License-Identifier: MIT
"""What is to be swept: as read, before it is spelt out run by run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from schedlab.base.toolchain.policies import Policy, PolicyChoice
from schedlab.sweep.conditions import Condition
from schedlab.sweep.ranges import Values
from schedlab.workload.shapes.model import Shape


@dataclass(frozen=True)
class Sample:
    """A number of setups of a policy, instead of all."""

    method: str
    count: int
    seed: int


@dataclass(frozen=True)
class PolicyEntry:
    """A policy, and the values that its tunables take."""

    choice: PolicyChoice
    policy: Policy
    tunables: Mapping[str, Values]
    conditions: tuple[Condition, ...]
    sample: Sample | None

    def standard(self) -> dict[str, int]:
        """Returns the values of its tunables if nothing is set."""
        tunables = self.policy.tunables_of(self.choice.preset)
        values = {name: tunable.default for name, tunable in tunables.items()}
        if self.choice.preset:
            values |= self.policy.presets[self.choice.preset].values
        return values


@dataclass(frozen=True)
class WorkloadEntry:
    """A workload file, an experiment of the studies, or a command of the kernel's."""

    kind: Literal["file", "experiment", "command"]
    name: str
    """The name in the table: the file's place, the experiment's name, the command."""
    place: Path | None
    """The file."""
    changes: Mapping[str, Values]
    """Changes of values within the file, by their paths."""
    machines: tuple[str, ...]


@dataclass(frozen=True)
class Description:
    """All dimensions. Every workload runs under every policy, with each value of the others."""

    title: str
    workloads: tuple[WorkloadEntry, ...]
    policies: tuple[PolicyEntry, ...]
    cpus: tuple[int, ...]
    seeds: tuple[int, ...]
    ticks_ns: tuple[int, ...]
    costs: tuple[str, ...]
    shapes: tuple[Shape, ...]
    """Of the machines, which have as many CPUs. Empty: all CPUs are alike."""
    limit_ns: int | None
    """None: what each workload needs."""
    memory_mib: int
    """The memory of the kernel's machine."""

# SPDX-License-Identifier: MIT
"""The description of a sweep before it is expanded to runs."""

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
    """A sample of a policy's setups, instead of the full grid."""

    method: str
    count: int
    seed: int


@dataclass(frozen=True)
class PolicyEntry:
    """A policy and the values of its tunables."""

    choice: PolicyChoice
    policy: Policy
    tunables: Mapping[str, Values]
    conditions: tuple[Condition, ...]
    sample: Sample | None

    def standard(self) -> dict[str, int]:
        """Returns the default values of its tunables."""
        tunables = self.policy.tunables_of(self.choice.preset)
        values = {name: tunable.default for name, tunable in tunables.items()}
        if self.choice.preset:
            values |= self.policy.presets[self.choice.preset].values
        return values


@dataclass(frozen=True)
class WorkloadEntry:
    """A workload file, an experiment of the studies, or a kernel command."""

    kind: Literal["file", "experiment", "command"]
    name: str
    """Name in the table: the file's path, the experiment's name or the command."""
    place: Path | None
    """The file."""
    changes: Mapping[str, Values]
    """Values that replace values in the file, by their paths."""
    machines: tuple[str, ...]


@dataclass(frozen=True)
class Description:
    """All dimensions; each workload runs under each policy, with all combinations of the other values."""

    title: str
    workloads: tuple[WorkloadEntry, ...]
    policies: tuple[PolicyEntry, ...]
    cpus: tuple[int, ...]
    seeds: tuple[int, ...]
    ticks_ns: tuple[int, ...]
    costs: tuple[str, ...]
    shapes: tuple[Shape, ...]
    """Shapes of machines, which determine the CPUs; empty if all CPUs are equal."""
    limit_ns: int | None
    """None means the limit of each workload."""
    memory_mib: int
    """Memory of machines that run the kernel."""

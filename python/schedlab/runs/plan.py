# SPDX-License-Identifier: MIT
"""Plans runs: every policy on every number of CPUs, repeated with other seeds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from schedlab.base.files.replacement import below
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.errors import WrongUsage, parameter
from schedlab.machines import SIMULATOR
from schedlab.machines.spec import RunSpec
from schedlab.units import format_time

MEMORY_MIB = (32, 65536)
TICK_NS = (100_000, 1_000_000_000)


@dataclass(frozen=True)
class Plan:
    """The runs of one command, and their common folder."""

    folder: Path
    runs: tuple[RunSpec, ...] = field(default=())
    unchecked: bool = False
    """True to run changed policies without checking them first."""

    def place(self, run: RunSpec) -> Path:
        """Returns the folder of a run of this plan."""
        return below(self.folder, run.name)

    def check(self) -> None:
        """Raises WrongUsage if a run is impossible. Called before anything is written."""
        for run in self.runs:
            check_cpus(run)
            check_tick(run)
            run.machine.check(run)

    def check_new(self) -> None:
        """Raises WrongUsage if any of the runs already exists."""
        for run in self.runs:
            if self.place(run).exists():
                raise WrongUsage(
                    f"already contains a run named {run.name}",
                    what=parameter("out", self.folder),
                    fix="name another folder, or move this one away",
                )


def check_cpus(run: RunSpec) -> None:
    """Raises WrongUsage for more CPUs than the machine supports, or fewer than the workload names."""
    most = run.machine.cpus_max
    if run.cpus > most:
        has_more = run.machine.name != SIMULATOR
        raise WrongUsage(
            f"{run.machine} has 1 to {most} CPUs",
            what=parameter("cpus", run.cpus),
            fix=f"{parameter('machine', SIMULATOR)} has more" if has_more else "",
        )
    if run.shape and run.shape.cpus != run.cpus:
        raise WrongUsage(
            f"the shape {run.shape.name} has {run.shape.cpus} CPUs",
            what=parameter("cpus", run.cpus),
            fix="leave out `cpus=`, or choose another `shape=`",
        )
    missing = run.file.cpus_missing(run.cpus) if run.file else ""
    if missing:
        raise WrongUsage(
            f"{parameter('workload', run.workload)} binds processes to CPU {missing}",
            what=parameter("cpus", run.cpus),
            fix="use more CPUs",
        )


def check_tick(run: RunSpec) -> None:
    """Raises WrongUsage for an unsupported tick length."""
    least, most = TICK_NS
    if not least <= run.tick_ns <= most:
        raise WrongUsage(
            "out of range",
            what=parameter("tick_ns", run.tick_ns),
            fix=f"choose {format_time(least)} to {format_time(most)}",
        )


def product(
    folder: Path,
    base: RunSpec,
    policies: tuple[PolicyChoice, ...],
    cpus: tuple[int, ...],
    repeats: int,
) -> Plan:
    """Returns all combinations of `policies`, `cpus` and `repeats`; repeat k has seed `base.seed` + k."""
    runs = tuple(
        replace(base, policy=policy, cpus=number, seed=base.seed + repeat)
        for policy in policies
        for number in cpus
        for repeat in range(repeats)
    )
    return Plan(folder, runs)

# SPDX-License-Identifier: MIT
"""Plans runs: all combinations of policies, numbers of CPUs and seeds."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from schedlab.base.files.replacement import path_in_folder
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.errors import WrongUsage, format_parameter
from schedlab.machines import SIMULATOR
from schedlab.machines.spec import RunSpec
from schedlab.units import format_time

MEMORY_RANGE_MIB = (32, 65536)
TICK_RANGE_NS = (100_000, 1_000_000_000)


@dataclass(frozen=True)
class Plan:
    """The runs of one command, and their common folder."""

    folder: Path
    runs: tuple[RunSpec, ...] = field(default=())
    unchecked: bool = False
    """True if changed policies are run without checking them first."""

    def place(self, run: RunSpec) -> Path:
        """Returns the folder of a run of this plan."""
        return path_in_folder(self.folder, run.name)

    def check(self) -> None:
        """Raises WrongUsage if a run is impossible; called before any file is written."""
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
                    what=format_parameter("out", self.folder),
                    fix="name another folder, or move this one away",
                )


def check_cpus(run: RunSpec) -> None:
    """Raises WrongUsage if the machine has fewer CPUs than requested, or the workload names more."""
    most = run.machine.cpus_max
    if run.cpus > most:
        has_more = run.machine.name != SIMULATOR
        raise WrongUsage(
            f"{run.machine} has 1 to {most} CPUs",
            what=format_parameter("cpus", run.cpus),
            fix="choose a number in this range"
            + (f", or use {format_parameter('machine', SIMULATOR)}" if has_more else ""),
        )
    if run.shape and run.shape.cpus != run.cpus:
        raise WrongUsage(
            f"the shape {run.shape.name} has {run.shape.cpus} CPUs",
            what=format_parameter("cpus", run.cpus),
            fix="leave out `cpus=`, or choose another `shape=`",
        )
    missing = run.file.cpus_missing(run.cpus) if run.file else ""
    if missing:
        raise WrongUsage(
            f"{format_parameter('workload', run.workload)} binds processes to CPU {missing}",
            what=format_parameter("cpus", run.cpus),
            fix="use more CPUs",
        )


def check_tick(run: RunSpec) -> None:
    """Raises WrongUsage for an unsupported tick length."""
    least, most = TICK_RANGE_NS
    if not least <= run.tick_ns <= most:
        raise WrongUsage(
            "out of range",
            what=format_parameter("tick_ns", run.tick_ns),
            fix=f"choose {format_time(least)} to {format_time(most)}",
        )


def all_combinations(
    folder: Path,
    base: RunSpec,
    policies: tuple[PolicyChoice, ...],
    cpus: tuple[int, ...],
    repeats: int,
) -> Plan:
    """Returns the plan of all combinations; repetition k has the seed `base.seed` + k."""
    runs = tuple(
        replace(base, policy=policy, cpus=number, seed=base.seed + repeat)
        for policy in policies
        for number in cpus
        for repeat in range(repeats)
    )
    return Plan(folder, runs)

# SPDX-License-Identifier: MIT
"""Plans the runs for both machines: experiments of studies 1 and 4, policies, CPUs and seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import filter as filter_names
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from schedlab.analysis.agreement.cells import KERNEL, SIMULATOR
from schedlab.base.toolchain.policies import PolicyChoice, known_policies
from schedlab.errors import WrongUsage, parameter
from schedlab.machines import machine_named
from schedlab.machines.spec import RunSpec
from schedlab.runs.plan import Plan
from schedlab.studies.experiment import TICK_NS, Depth
from schedlab.studies.experiments import (
    ALL_CPUS,
    EXPERIMENTS,
    LOTTERY_TESTS,
    PRIORITY_TESTS,
    TIMING_TESTS,
)
from schedlab.studies.files import FILES, Described
from schedlab.workload import workload_files
from schedlab.workload.changes import Change
from schedlab.workload.costs import KERNEL as KERNEL_COSTS
from schedlab.workload.costs import Costs
from schedlab.workload.model import WorkloadFile

SIZES = (2, 6, 20, 40)
"""Numbers of CPU-bound processes of study 4's mixed benchmark to compare."""

_TO_THE_MARK_NS = 5_000
"""Time from wake-up to the begin mark on Spike, in nanoseconds."""
_FORKED_NS = 4_608_000
"""Time when init forks the first process on Spike, in nanoseconds.

The begin mark comes 0.4 to 0.5 ms later, after the program is loaded from disk. A policy that
counts sleep counts at most this time.
"""


@dataclass(frozen=True)
class Window:
    """The measured window of a run."""

    begin_ns: int
    end_ns: int


@dataclass(frozen=True)
class Pair:
    """An experiment that both machines run."""

    experiment: str
    depth: Depth = "full"
    """`quick` shortens the window of lottery tests."""
    competition: bool = False
    """True if all processes start in the same tick and the measured window begins later."""

    @property
    def tick_ns(self) -> int:
        return EXPERIMENTS[self.experiment].tick_ns or TICK_NS

    @property
    def command(self) -> str:
        """The command to run on the kernel."""
        return EXPERIMENTS[self.experiment].command_at(self.tick_ns, self.depth)

    @property
    def described(self) -> Described:
        return FILES[self.experiment]

    def file(self, on_kernel: Window | None = None) -> WorkloadFile:
        """Returns the workload file with the window that the kernel's run had."""
        changes = dict(self.described.changed(self.depth))
        if on_kernel is not None and self.competition:
            changes.update(self._gate(on_kernel))
        elif on_kernel is not None:
            begin = on_kernel.begin_ns - _TO_THE_MARK_NS - self.boot_ns(on_kernel)
            changes["starter.delay"] = f"{begin}ns"
        return _read(self.described, tuple(changes.items()))

    def boot_ns(self, on_kernel: Window | None) -> int:
        """Returns when the simulator's first process starts, in nanoseconds; it then sleeps until the mark.

        Returns 0 if times in the workload file count from the start of the run.
        """
        if on_kernel is None or self.competition or self.experiment.startswith(_BY_THE_CLOCK):
            return 0
        return min(_FORKED_NS, max(0, on_kernel.begin_ns - _TO_THE_MARK_NS))

    def _gate(self, on_kernel: Window) -> Iterator[Change]:
        """Yields the changes that open the gate in the kernel's tick, counted back from the window's end."""
        last = on_kernel.end_ns // self.tick_ns
        warm_up, window = (20, 50) if self.depth == "quick" else (100, 500)
        yield "starter.phases.the best.sleep.until", f"{last - warm_up - window}ticks"
        for task in self.described.read().tasks:
            if task.group not in _WITHOUT_END:
                yield f"tasks.{task.name}.run1.until", f"{last - window}ticks"
                yield f"tasks.{task.name}.run2.until", f"{last}ticks"


_WITHOUT_END = ("I/O", "short", "mixed")
"""Groups of the lottery tests that work in rounds and do not run until the end of the window."""


_BY_THE_CLOCK = "s5-cpubench"
"""Prefix of experiments whose workload files give absolute end times."""


@cache
def _read(described: Described, changes: tuple[Change, ...]) -> WorkloadFile:
    return workload_files.read(described.path, changes)


def pairs(everything: bool) -> Iterator[Pair]:
    """Yields the default experiments. Four of the priority tests are timing tests."""
    for test in TIMING_TESTS:
        yield Pair(f"s1-timing-{test}")
    for test in PRIORITY_TESTS:
        yield Pair(f"s1-priority-{test}")
    if everything:
        yield Pair("s1-priority-suite")
    for size in SIZES if everything else SIZES[:-1]:
        yield Pair(f"s4-mixed-{size}")
    for name in ("s4-trace", "s4-sleeper", "s4-sleeper-late"):
        yield Pair(name)
    for test in LOTTERY_TESTS:
        yield Pair(f"s1-lottery-{test}", competition=True)


def named(experiment: str, depth: Depth = "full") -> Pair:
    """Returns the pair of any experiment with a workload file. `experiment` must be a key of FILES."""
    assert experiment in FILES
    competition = experiment.startswith("s1-lottery-") and "original" not in experiment
    return Pair(experiment, depth if competition else "full", competition)


Windows = Mapping[tuple[str, str, int], Window]
"""The kernel's windows by experiment, policy and CPUs."""
MEMORY_MIB = 512
_LIMIT_TICKS = 60_000
_STUDIES = (1, 4)
"""Numbers of the studies whose experiments run on both machines."""


@dataclass(frozen=True)
class Setting:
    """The runs to perform. A seed shifts the arrival of processes; under random policies it decides everything."""

    policies: tuple[PolicyChoice, ...]
    cpus: tuple[int, ...]
    pairs: tuple[Pair, ...]
    seeds: int
    """Seeds of policies without random decisions. Both machines derive the same work from a seed."""
    random_seeds: int
    """Seeds of policies with random decisions, on the kernel."""
    simulated_seeds: int
    """Seeds of policies with random decisions, on the simulator, where a run takes about a second."""

    def seeds_on(self, machine: str, policy: PolicyChoice) -> range:
        if not draws(policy.name):
            return range(1, self.seeds + 1)
        count = self.random_seeds if machine == KERNEL else self.simulated_seeds
        return range(1, count + 1)


def draws(policy: str) -> bool:
    """True if the policy (or the policy of a preset) makes random decisions."""
    return known_policies()[policy.partition(":")[0]].draws


def policies_compared(full: bool) -> tuple[PolicyChoice, ...]:
    """Returns all policies and the presets that the studies use; with `full`, all presets."""
    known = known_policies()
    of_studies = {
        name
        for experiment in EXPERIMENTS.values()
        if experiment.study in _STUDIES
        for name in experiment.study_policies
    }
    presets = (
        PolicyChoice(policy.name, preset) for policy in known.values() for preset in policy.presets
    )
    return (
        *map(PolicyChoice, known),
        *(preset for preset in presets if full or str(preset) in of_studies),
    )


def setting(
    full: bool,
    policies: Sequence[PolicyChoice] = (),
    cpus: Sequence[int] = (),
    experiments: Sequence[str] = (),
) -> Setting:
    """Returns the setting of a full or short comparison. Raises WrongUsage for an unknown name."""
    return Setting(
        policies=tuple(policies) or policies_compared(full),
        cpus=tuple(cpus) or (ALL_CPUS if full else (1, 2, 4)),
        pairs=tuple(chosen(experiments, full)),
        seeds=1,
        random_seeds=5 if full else 3,
        simulated_seeds=20 if full else 10,
    )


def chosen(patterns: Sequence[str], full: bool) -> Iterator[Pair]:
    """Yields the experiments that match the patterns, such as `s1-timing-*`; without patterns, the default ones."""
    if not patterns:
        yield from pairs(full)
        return
    # experiments that both machines can run
    known = [name for name in FILES if not EXPERIMENTS[name].machine]
    unknown = [pattern for pattern in patterns if not filter_names(known, pattern)]
    if unknown:
        raise WrongUsage(
            "no experiment of this name has a workload file",
            what=parameter("experiments", unknown[0]),
            fix="use a pattern such as s4-*",
        )
    for experiment in known:
        if any(fnmatchcase(experiment, pattern) for pattern in patterns):
            yield named(experiment)


@dataclass(frozen=True)
class Case:
    """A run on either machine."""

    pair: Pair
    policy: PolicyChoice
    cpus: int
    seed: int

    @property
    def setup(self) -> tuple[str, str, int]:
        """The configuration: experiment, policy and CPUs."""
        return self.pair.experiment, str(self.policy), self.cpus


def cases(setting: Setting, machine: str) -> Iterator[Case]:
    """Yields all cases of seed 1, then of seed 2, and so on: an interrupted plan then covers all configurations."""
    most = max(len(setting.seeds_on(machine, policy)) for policy in setting.policies)
    return (
        Case(pair, policy, cpus, seed)
        for seed in range(1, most + 1)
        for pair in setting.pairs
        for policy in setting.policies
        if seed in setting.seeds_on(machine, policy)
        for cpus in setting.cpus
    )


def kernel_plan(folder: Path, planned: Iterable[Case]) -> Plan:
    return Plan(folder / KERNEL, tuple(kernel_run(case) for case in planned))


def simulator_plan(folder: Path, planned: Iterable[Case], windows: Windows) -> Plan:
    """Plans the simulator's runs. Each begins at the kernel's offset within a tick, which depends on the boot time."""
    runs = tuple(simulated_run(case, windows.get(case.setup)) for case in planned)
    return Plan(folder / SIMULATOR, runs)


def kernel_run(case: Case) -> RunSpec:
    return RunSpec(
        workload=case.pair.command,
        policy=case.policy,
        settings=(),
        cpus=case.cpus,
        machine=machine_named(KERNEL),
        seed=case.seed,
        tick_ns=case.pair.tick_ns,
        limit_ns=_LIMIT_TICKS * case.pair.tick_ns,
        memory_mib=MEMORY_MIB,
        label=case.pair.experiment,
    )


def simulated_run(
    case: Case, on_kernel: Window | None = None, costs: Costs = KERNEL_COSTS
) -> RunSpec:
    boot_ns = case.pair.boot_ns(on_kernel)
    file = case.pair.file(on_kernel)
    return replace(
        kernel_run(case),
        workload=case.pair.described.workload,
        machine=machine_named(SIMULATOR),
        memory_mib=0,
        file=file,
        changes=file.changes,
        costs=costs.changed(f"boot={boot_ns}") if boot_ns else costs,
    )

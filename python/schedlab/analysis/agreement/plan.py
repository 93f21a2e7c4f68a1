# SPDX-License-Identifier: MIT
"""Plans the runs for both machines: experiments of studies 1 and 4, policies, CPUs and seeds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import filter as filter_names
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from schedlab.analysis.agreement.cells import KERNEL, SIMULATOR
from schedlab.base.toolchain.policies import PolicyChoice, known_policies
from schedlab.errors import WrongUsage, format_parameter
from schedlab.machines import machine_named
from schedlab.machines.spec import RunSpec
from schedlab.runs.plan import Plan
from schedlab.studies.experiment import TICK_NS, Depth
from schedlab.studies.experiments import (
    ALL_CPUS,
    EXPERIMENTS,
    PRIORITY_TESTS,
    TIMING_TESTS,
)
from schedlab.studies.files import EXPERIMENT_FILES, ExperimentFile
from schedlab.studies.lottery_tests import TESTS_BY_NAME
from schedlab.workload import workload_files
from schedlab.workload.changes import Change
from schedlab.workload.costs import KERNEL_COSTS as KERNEL_COSTS
from schedlab.workload.costs import Costs
from schedlab.workload.model import WorkloadFile

MIXED_SIZES_COMPARED = (2, 6, 20, 40)
"""Numbers of CPU-bound processes of study 4's mixed benchmark to compare."""

_WAKE_UP_TO_MARK_NS = 5_000
"""Time from wake-up to the begin mark on Spike, in nanoseconds."""
_FIRST_FORK_NS = 4_608_000
"""Time when init forks the first process on Spike, in nanoseconds.

The begin mark comes 0.4 to 0.5 ms later, after the program is loaded from disk. A policy that
counts sleep counts at most this time.
"""


@dataclass(frozen=True)
class KernelWindow:
    """The measured window of a run."""

    begin_ns: int
    end_ns: int


@dataclass(frozen=True)
class ComparedExperiment:
    """An experiment that both machines run."""

    experiment: str
    depth: Depth = "full"
    """`quick` shortens the window of lottery tests."""
    is_competition: bool = False
    """True if all processes start in the same tick and the measured window begins later."""

    @property
    def tick_ns(self) -> int:
        """Returns the length of a tick in ns."""
        return EXPERIMENTS[self.experiment].tick_ns or TICK_NS

    @property
    def command(self) -> str:
        """The command to run on the kernel."""
        return EXPERIMENTS[self.experiment].command_at(self.tick_ns, self.depth)

    @property
    def workload_description(self) -> ExperimentFile:
        """Returns the description of the experiment's workload file."""
        return EXPERIMENT_FILES[self.experiment]

    def file(self, on_kernel: KernelWindow | None = None) -> WorkloadFile:
        """Returns the workload file with the window that the kernel's run had."""
        changes = dict(self.workload_description.changes_for(self.depth))
        if on_kernel is not None and self.is_competition:
            changes.update(self._gate_changes(on_kernel))
        elif on_kernel is not None:
            begin = on_kernel.begin_ns - _WAKE_UP_TO_MARK_NS - self.boot_ns(on_kernel)
            changes["starter.delay"] = f"{begin}ns"
        return _read_workload(self.workload_description, tuple(changes.items()))

    def boot_ns(self, on_kernel: KernelWindow | None) -> int:
        """Returns when the simulator's first process starts, in nanoseconds; it then sleeps until the mark.

        Returns 0 if times in the workload file count from the start of the run.
        """
        if (
            on_kernel is None
            or self.is_competition
            or self.experiment.startswith(_ABSOLUTE_TIMES_PREFIX)
        ):
            return 0
        return min(_FIRST_FORK_NS, max(0, on_kernel.begin_ns - _WAKE_UP_TO_MARK_NS))

    def _gate_changes(self, on_kernel: KernelWindow) -> Iterator[Change]:
        """Yields the changes that open the gate in the kernel's tick, counted back from the window's end."""
        last_tick = on_kernel.end_ns // self.tick_ns
        warm_up, window = (20, 50) if self.depth == "quick" else (100, 500)
        yield "starter.phases.the best.sleep.until", f"{last_tick - warm_up - window}ticks"
        for task in self.workload_description.read().tasks:
            if task.group not in _ROUND_GROUPS:
                yield f"tasks.{task.name}.run1.until", f"{last_tick - window}ticks"
                yield f"tasks.{task.name}.run2.until", f"{last_tick}ticks"


_ROUND_GROUPS = ("I/O", "short", "mixed")
"""Groups of the lottery tests that work in rounds and do not run until the end of the window."""


_ABSOLUTE_TIMES_PREFIX = "s5-cpubench"
"""Prefix of experiments whose workload files give absolute end times."""


@cache
def _read_workload(description: ExperimentFile, changes: tuple[Change, ...]) -> WorkloadFile:
    return workload_files.read_workload_file(description.path, changes)


def default_experiments(is_full: bool) -> Iterator[ComparedExperiment]:
    """Yields the default experiments. Four of the priority tests are timing tests."""
    for test in TIMING_TESTS:
        yield ComparedExperiment(f"s1-timing-{test}")
    for test in PRIORITY_TESTS:
        yield ComparedExperiment(f"s1-priority-{test}")
    if is_full:
        yield ComparedExperiment("s1-priority-suite")
    for size in MIXED_SIZES_COMPARED if is_full else MIXED_SIZES_COMPARED[:-1]:
        yield ComparedExperiment(f"s4-mixed-{size}")
    for name in ("s4-trace", "s4-sleeper", "s4-sleeper-late"):
        yield ComparedExperiment(name)
    for test in TESTS_BY_NAME:
        yield ComparedExperiment(f"s1-lottery-{test}", is_competition=True)


def compared_experiment(experiment: str, depth: Depth = "full") -> ComparedExperiment:
    """Returns the pair of any experiment with a workload file. `experiment` must be a key of FILES."""
    assert experiment in EXPERIMENT_FILES
    competition = experiment.startswith("s1-lottery-") and "original" not in experiment
    return ComparedExperiment(experiment, depth if competition else "full", competition)


Windows = Mapping[tuple[str, str, int], KernelWindow]
"""The kernel's windows by experiment, policy and CPUs."""
MEMORY_MIB = 512
_LIMIT_TICKS = 60_000
_STUDIES = (1, 4)
"""Numbers of the studies whose experiments run on both machines."""


@dataclass(frozen=True)
class ComparisonScope:
    """The runs to perform. A seed shifts the arrival of processes; under random policies it decides everything."""

    policies: tuple[PolicyChoice, ...]
    cpus: tuple[int, ...]
    experiments: tuple[ComparedExperiment, ...]
    seeds: int
    """Seeds of policies without random decisions. Both machines derive the same work from a seed."""
    random_seeds: int
    """Seeds of policies with random decisions, on the kernel."""
    simulated_seeds: int
    """Seeds of policies with random decisions, on the simulator, where a run takes about a second."""

    def seeds_on(self, machine: str, policy: PolicyChoice) -> range:
        """Returns the seeds that a machine runs under a policy."""
        if not is_random(policy.name):
            return range(1, self.seeds + 1)
        count = self.random_seeds if machine == KERNEL else self.simulated_seeds
        return range(1, count + 1)


def is_random(policy: str) -> bool:
    """True if the policy (or the policy of a preset) makes random decisions."""
    return known_policies()[policy.partition(":")[0]].draws


def compared_policies(full: bool) -> tuple[PolicyChoice, ...]:
    """Returns all policies and the presets that the studies use; with `full`, all presets."""
    policies = known_policies()
    study_policies = {
        name
        for experiment in EXPERIMENTS.values()
        if experiment.study in _STUDIES
        for name in experiment.study_policies
    }
    presets = (
        PolicyChoice(policy.name, preset)
        for policy in policies.values()
        for preset in policy.presets
    )
    return (
        *map(PolicyChoice, policies),
        *(preset for preset in presets if full or str(preset) in study_policies),
    )


def comparison_scope(
    full: bool,
    policies: Sequence[PolicyChoice] = (),
    cpus: Sequence[int] = (),
    experiments: Sequence[str] = (),
) -> ComparisonScope:
    """Returns the setting of a full or short comparison. Raises WrongUsage for an unknown name."""
    return ComparisonScope(
        policies=tuple(policies) or compared_policies(full),
        cpus=tuple(cpus) or (ALL_CPUS if full else (1, 2, 4)),
        experiments=tuple(select_experiments(experiments, full)),
        seeds=1,
        random_seeds=5 if full else 3,
        simulated_seeds=20 if full else 10,
    )


def select_experiments(patterns: Sequence[str], full: bool) -> Iterator[ComparedExperiment]:
    """Yields the experiments that match the patterns, such as `s1-timing-*`; without patterns, the default ones."""
    if not patterns:
        yield from default_experiments(full)
        return
    # experiments that both machines can run
    comparable = [name for name in EXPERIMENT_FILES if not EXPERIMENTS[name].machine]
    unknown = [pattern for pattern in patterns if not filter_names(comparable, pattern)]
    if unknown:
        raise WrongUsage(
            "no experiment of this name has a workload file",
            what=format_parameter("experiments", unknown[0]),
            fix="name one such as s3-cpu, or a pattern such as s4-*",
        )
    for experiment in comparable:
        if any(fnmatchcase(experiment, pattern) for pattern in patterns):
            yield compared_experiment(experiment)


@dataclass(frozen=True)
class ComparedRun:
    """One run of an experiment, on either machine."""

    experiment: ComparedExperiment
    policy: PolicyChoice
    cpus: int
    seed: int

    @property
    def configuration(self) -> tuple[str, str, int]:
        """The configuration: experiment, policy and CPUs."""
        return self.experiment.experiment, str(self.policy), self.cpus


def planned_runs(scope: ComparisonScope, machine: str) -> Iterator[ComparedRun]:
    """Yields all cases of seed 1, then of seed 2, and so on: an interrupted plan then covers all configurations."""
    seeds_max = max(len(scope.seeds_on(machine, policy)) for policy in scope.policies)
    return (
        ComparedRun(pair, policy, cpus, seed)
        for seed in range(1, seeds_max + 1)
        for pair in scope.experiments
        for policy in scope.policies
        if seed in scope.seeds_on(machine, policy)
        for cpus in scope.cpus
    )


def kernel_plan(folder: Path, planned: Iterable[ComparedRun]) -> Plan:
    """Returns the plan of the kernel's runs."""
    return Plan(folder / KERNEL, tuple(kernel_run_spec(case) for case in planned))


def simulator_plan(folder: Path, planned: Iterable[ComparedRun], windows: Windows) -> Plan:
    """Plans the simulator's runs. Each begins at the kernel's offset within a tick, which depends on the boot time."""
    runs = tuple(simulated_run_spec(case, windows.get(case.configuration)) for case in planned)
    return Plan(folder / SIMULATOR, runs)


def kernel_run_spec(case: ComparedRun) -> RunSpec:
    """Returns the kernel's run of a case."""
    return RunSpec(
        workload=case.experiment.command,
        policy=case.policy,
        settings=(),
        cpus=case.cpus,
        machine=machine_named(KERNEL),
        seed=case.seed,
        tick_ns=case.experiment.tick_ns,
        limit_ns=_LIMIT_TICKS * case.experiment.tick_ns,
        memory_mib=MEMORY_MIB,
        label=case.experiment.experiment,
    )


def simulated_run_spec(
    case: ComparedRun, on_kernel: KernelWindow | None = None, costs: Costs = KERNEL_COSTS
) -> RunSpec:
    """Returns the simulator's run of a case, with the window that the kernel's run had."""
    boot_ns = case.experiment.boot_ns(on_kernel)
    file = case.experiment.file(on_kernel)
    return replace(
        kernel_run_spec(case),
        workload=case.experiment.workload_description.workload,
        machine=machine_named(SIMULATOR),
        memory_mib=0,
        file=file,
        changes=file.changes,
        costs=costs.changed(f"boot={boot_ns}") if boot_ns else costs,
    )

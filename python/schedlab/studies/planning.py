# SPDX-License-Identifier: MIT
"""Converts the studies' experiments to a plan of runs: on the kernel, in the simulator or on Linux."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from schedlab.base.toolchain.policies import PolicyChoice, parse_choices, parse_setting
from schedlab.errors import WrongUsage, format_parameter
from schedlab.machines import LINUX_MACHINES, SIMULATOR, machine_named
from schedlab.machines.spec import RunSpec
from schedlab.runs.plan import Plan
from schedlab.studies.costs import costs_of
from schedlab.studies.experiment import ITERATION_NS, TICK_NS, Depth, Experiment
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.studies.files import EXPERIMENT_FILES
from schedlab.studies.proposals import read_proposals
from schedlab.workload.costs import COST_MEANINGS
from schedlab.workload.delays import simulator_delays

_LIMIT_ON_LINUX_NS = 120_000_000_000
"""The time limit on Linux, whose tick is fixed."""
_SEED_MAX = 2**63 - 1


def plan(
    folder: Path,
    depth: Depth,
    studies: Iterable[int] = (),
    seed: int = 1,
    tick_ns: int = TICK_NS,
    memory_mib: int = 512,
    machine: str = "spike",
) -> Plan:
    """Returns all runs of these studies, or of all studies. Raises WrongUsage for an invalid tick or seed.

    In the simulator, only experiments with a workload file run (schedlab.studies.files). On Linux,
    only experiments for Linux run.
    """
    if tick_ns % ITERATION_NS:
        raise WrongUsage(
            f"studies measure work in steps of {ITERATION_NS} ns",
            what=format_parameter("tick_ns", tick_ns),
            fix=f"choose a multiple of {ITERATION_NS}",
        )
    study_numbers = set(studies)
    runs = tuple(
        replace(
            base,
            policy=_parse_policy(policy)[0],
            settings=_parse_policy(policy)[1],
            seed=seed + repeat,
            **_cost_fields(experiment, policy, cpus, base),
        )
        for experiment in EXPERIMENTS.values()
        if not study_numbers or experiment.study in study_numbers
        for policy, share in experiment.grid_by_policy(depth).items()
        for cpus in share.cpus
        for base in _base_runs(
            experiment, depth, _tick_ns(experiment, tick_ns), memory_mib, machine, cpus
        )
        for repeat in range(share.seeds)
    )
    if any(run.seed > _SEED_MAX for run in runs):
        raise WrongUsage(
            "too large: a study has several seeds, and the last one is out of range",
            what=format_parameter("first_seed", seed),
            fix="choose a smaller one",
        )
    return Plan(folder, runs)


def experiment_labels() -> tuple[str, ...]:
    """Returns the labels of all experiments, and of the tests of the studies' proposals."""
    tests = (test.label for proposal in read_proposals() for test in proposal.tests)
    return tuple(dict.fromkeys((*EXPERIMENTS, *tests)))


def split_sample(runs: Sequence[RunSpec]) -> tuple[tuple[RunSpec, ...], tuple[RunSpec, ...]]:
    """Returns one run of each test, and the other runs."""
    tests: dict[str, list[RunSpec]] = {}
    for run in runs:
        tests.setdefault(run.label, []).append(run)
    sample = {test[len(test) // 2] for test in tests.values()}
    return (
        tuple(run for run in runs if run in sample),
        tuple(run for run in runs if run not in sample),
    )


def _tick_ns(experiment: Experiment, tick_ns: int) -> int:
    """Returns the tick of the experiment, or that of its machine, or the requested one."""
    if experiment.machine in LINUX_MACHINES:
        return machine_named(experiment.machine).tick_ns
    return experiment.tick_ns or tick_ns


def _cost_fields(experiment: Experiment, policy: str, cpus: int, base: RunSpec) -> dict[str, Any]:
    """Returns what an experiment on the study's costs has of them on the run's machine."""
    if not experiment.repeated_experiment:
        return {}
    costs = costs_of(experiment.study)
    delays = costs.delays_of(policy, cpus, base.tick_ns, experiment.omitted_cost)
    if base.machine.name == SIMULATOR:
        return {"delays": simulator_delays(delays)}
    return {"delays": delays, "arguments": costs.boot_arguments(experiment.omitted_cost)}


def _base_runs(
    experiment: Experiment, depth: Depth, tick_ns: int, memory_mib: int, machine: str, cpus: int
) -> Iterable[RunSpec]:
    """Yields the common specification of an experiment's runs on this many CPUs; nothing if the
    machine cannot run it.
    """
    if machine != experiment.machine if experiment.machine else machine in LINUX_MACHINES:
        return
    if (
        machine == SIMULATOR
        and experiment.omitted_cost
        and experiment.omitted_cost not in COST_MEANINGS
    ):
        return
    on_linux = experiment.machine in LINUX_MACHINES
    selected_machine = machine_named(machine)
    base = RunSpec(
        workload=experiment.command_at(tick_ns, depth, cpus),
        policy=PolicyChoice(""),
        settings=(),
        cpus=cpus,
        machine=selected_machine,
        seed=0,
        tick_ns=tick_ns,
        limit_ns=_LIMIT_ON_LINUX_NS if on_linux else experiment.limit_ticks * tick_ns,
        memory_mib=selected_machine.memory_mib if on_linux else memory_mib,
        label=experiment.name,
    )
    if machine != SIMULATOR:
        yield base
        return
    if experiment_file := EXPERIMENT_FILES.get(experiment.repeated_experiment or experiment.name):
        yield replace(
            base,
            workload=experiment_file.workload,
            file=experiment_file.read(depth, cpus),
            changes=experiment_file.changes_for(depth, cpus),
        )


def _parse_policy(text: str) -> tuple[PolicyChoice, tuple[tuple[str, int], ...]]:
    """Parses a policy such as "priority:thesis slice=2"."""
    name, *settings = text.split()
    return parse_choices(name)[0], tuple(parse_setting(setting) for setting in settings)

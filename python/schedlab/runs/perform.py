# SPDX-License-Identifier: MIT
"""Performs a plan: checks its policies, builds what its runs need, and executes them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from schedlab.base.display.terminal import say
from schedlab.base.files import replacement
from schedlab.base.host.processor import count_host_cpus
from schedlab.base.toolchain.committed import committed_policy_list
from schedlab.base.toolchain.needs import need
from schedlab.base.toolchain.policies import (
    FAIR_POLICY,
    Catalogue,
    PolicyChoice,
    check_choices,
    read_catalogue,
)
from schedlab.base.toolchain.versions import process_facts
from schedlab.errors import WrongUsage, format_parameter
from schedlab.machines import LINUX_KERNELS
from schedlab.machines.linux.installed_schedulers import find_scheduler_program
from schedlab.machines.published import PUBLISHED_POLICY, is_published, load_run_scheduler
from schedlab.machines.sim import Simulator
from schedlab.machines.spec import RunSpec
from schedlab.paths import IS_INSTALLED
from schedlab.runs import results
from schedlab.runs.parts import PartReplacements, build_parts, check_parts_exist
from schedlab.runs.plan import Plan
from schedlab.runs.plan_execution import (
    Finished,
    Software,
    copy_software,
    execute_plan,
    manifest_inputs,
)
from schedlab.runs.progress import OverallProgress, ProgressBoard

Selection = Callable[[Plan, Software], Plan]
"""Chooses which runs of a plan to perform, given the programs that they would use."""


def perform(
    plan: Plan,
    select: Selection | None = None,
    with_metrics: bool = True,
    replacements: PartReplacements | None = None,
    overall: OverallProgress | None = None,
) -> list[Finished]:
    """Performs the runs of a plan, and returns the finished runs in order.

    `select`: chooses the runs to perform; by default all. `overall`: the progress of the larger
    work that this plan is a part of. Raises Interrupted (schedlab.runs.plan_execution) on a signal.
    """
    check_policies(read_catalogue(), plan)
    if not plan.runs:
        return []
    machine = plan.runs[0].machine
    check_parts_exist(machine.parts)
    if not IS_INSTALLED:
        need(*machine.needs)  # checked together, so that one message names all missing tools
    machine.release()
    if not plan.unchecked:
        check_changed_policies(plan)
    tools = machine.tools if any(run.file for run in plan.runs) else ()
    parts = build_parts((*machine.parts, *tools), replacements)
    slots = count_host_cpus()
    machine_parts = {name: parts.pop(name) for name in machine.parts}
    with copy_software(machine_parts, process_facts(), parts) as base:
        remaining_plan = select(plan, base) if select else plan
        with ProgressBoard(remaining_plan.runs, slots, overall=overall) as board:
            return execute_plan(remaining_plan, base, slots, board, with_metrics)


def check_changed_policies(plan: Plan) -> None:
    """Checks each policy whose source has changed since its last check in the checked simulator.

    Raises RuleBroken.
    """
    if committed_policy_list() is not None:
        return  # no source has changed since the tests of this checkout passed
    from schedlab.machines.checked_simulator import (
        check_once,
        describe_missing_checks,
        policy_sources,
    )

    if left_out := describe_missing_checks():
        say(f"schedlab: {left_out}")
    choices = dict.fromkeys(run.policy for run in plan.runs)
    for source in dict.fromkeys(source for choice in choices for source in policy_sources(choice)):
        if source.is_file():  # other policies are Linux's own
            check_once(source)


def check_policies(catalogue: Catalogue, plan: Plan) -> None:
    """Raises WrongUsage if a machine lacks a run's policy, or the policy lacks a tunable."""
    linux_catalogue = {**catalogue, FAIR_POLICY.name: FAIR_POLICY}
    check_schedulers(plan.runs)
    _check_hotplug(plan.runs)
    setups = dict.fromkeys((run.machine, run.policy, run.settings) for run in plan.runs)
    for machine, policy, settings in setups:
        is_linux = machine.name in LINUX_KERNELS
        if is_published(policy) and machine.name == Simulator.name:
            continue
        if policy.name in (FAIR_POLICY.name, PUBLISHED_POLICY.name) and not is_linux:
            raise _policy_missing_error(policy)
        if is_published(policy):
            check_published_scheduler(policy, settings)
            continue
        check_choices(linux_catalogue if is_linux else catalogue, (policy,), dict(settings))


def _check_hotplug(runs: Iterable[RunSpec]) -> None:
    """Raises WrongUsage if CPUs go offline in a run whose policy or machine does not support it."""
    for run in runs:
        supported = is_published(run.policy) and run.machine.name == Simulator.name
        if run.file and run.file.has_hotplug and not supported:
            raise WrongUsage(
                "CPUs go offline or online, which only sched_ext schedulers in the simulator support",
                what=run.label,
                fix="use `machine='sim'` and `policy='scx:…'`, or remove `online` and `offline` from the workload",
            )


def _policy_missing_error(policy: PolicyChoice) -> WrongUsage:
    """Returns the error to raise if a run's machine does not have its policy."""
    if policy.name == FAIR_POLICY.name:
        problem, fix = "only Linux has this policy", "add `machine='linux'`, or choose another"
    else:
        problem = "only the simulator and Linux have this policy"
        fix = "add `machine='sim'`, or choose another"
    return WrongUsage(problem, what=format_parameter("policy", policy), fix=fix)


def check_schedulers(runs: Iterable[RunSpec]) -> None:
    """Loads the sched_ext schedulers of the simulator's runs, and prints their warnings once.

    Raises WrongUsage if one is missing, cannot run, or lacks a setting.
    """
    warnings: dict[str, None] = {}
    for run in runs:
        if is_published(run.policy) and run.machine.name == Simulator.name:
            warnings.update(dict.fromkeys(load_run_scheduler(run).warnings))
    for warning in warnings:
        say(f"schedlab: {warning}")


def check_published_scheduler(policy: PolicyChoice, settings: tuple[tuple[str, int], ...]) -> None:
    """Raises WrongUsage if the scheduler is not installed, or if a tunable is set for it."""
    program = find_scheduler_program(policy)
    for name, value in settings:
        raise WrongUsage(
            f"{program.name} has no tunables that schedlab can set",
            what=format_parameter("settings", {name: value}),
            fix=f"leave it out, or leave out {policy}",
        )


# --- continuing a plan with finished runs


def list_unfinished(plan: Plan) -> Iterator[RunSpec]:
    """Yields the runs that are missing or failed, without comparing the inputs of existing runs."""
    for run in plan.runs:
        place = plan.place(run)
        if not (results.is_complete(place) and results.has_succeeded(results.read_manifest(place))):
            yield run


def select_unfinished(plan: Plan, base: Software) -> Plan:
    """Returns the runs that are missing or failed.

    Raises WrongUsage if the inputs of an existing run differ from the present inputs.
    """
    return replace(
        plan, runs=tuple(run for run in plan.runs if not _has_succeeded(plan, run, base))
    )


def _has_succeeded(plan: Plan, run: RunSpec, base: Software) -> bool:
    place = plan.place(run)
    if not place.exists():
        return False
    if not results.is_complete(place):
        raise WrongUsage(
            f"{run.name} in it is not a run",
            what=format_parameter("out", plan.folder),
            fix="name another folder",
        )
    manifest = results.read_manifest(place)
    expected = manifest_inputs(run, base)
    for key, what in results.DECISIVE_INPUTS.items():
        if manifest.get(key) != expected.get(key):
            raise WrongUsage(
                f"{run.name} in it was made with another {what}: "
                f"{results.shorten_entry(key, manifest)}, now {results.shorten_entry(key, expected)}",
                what=format_parameter("out", plan.folder),
                fix="name another folder, or move this one away",
            )
    succeeded = results.has_succeeded(manifest)
    if not succeeded:
        replacement.check_folder("out", place)
    return succeeded

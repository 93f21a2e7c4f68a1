# SPDX-License-Identifier: MIT
"""Performs a plan: checks its policies, builds what its runs need, and executes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from schedlab.base.display.terminal import say
from schedlab.base.files import replacement
from schedlab.base.host.processor import host_processors
from schedlab.base.toolchain.committed import committed_listing
from schedlab.base.toolchain.needs import need
from schedlab.base.toolchain.policies import (
    FAIR,
    Catalogue,
    PolicyChoice,
    check_choices,
    read_catalogue,
)
from schedlab.base.toolchain.versions import sitting
from schedlab.errors import WrongUsage, parameter
from schedlab.machines import LINUX_KERNELS
from schedlab.machines.linux.installed_schedulers import PUBLISHED, is_published, program_of
from schedlab.machines.spec import RunSpec
from schedlab.paths import INSTALLED
from schedlab.runs import results
from schedlab.runs.parts import PartReplacements, check_parts_exist, supply
from schedlab.runs.plan import Plan
from schedlab.runs.plan_execution import Finished, Software, carry_out, inputs, software
from schedlab.runs.progress import Board, OverallProgress

Selection = Callable[[Plan, Software], Plan]
"""Returns the runs of a plan that are to be performed.

The second argument has the programs that the runs would use.
"""


def perform(
    plan: Plan,
    select: Selection | None = None,
    with_metrics: bool = True,
    replacements: PartReplacements | None = None,
    overall: OverallProgress | None = None,
) -> list[Finished]:
    """Performs the runs of a plan that `select` returns, and returns the finished runs in order.

    `overall`: the progress of the work that this plan is a part of. Raises Interrupted
    (schedlab.runs.plan_execution) on a signal.
    """
    check_policies(read_catalogue(), plan)
    if not plan.runs:
        return []
    machine = plan.runs[0].machine
    check_parts_exist(machine.parts)
    if not INSTALLED:
        need(*machine.needs)  # reports all missing tools at once
    machine.release()
    if not plan.unchecked:
        check_changed(plan)
    tools = machine.tools if any(run.file for run in plan.runs) else ()
    parts = supply((*machine.parts, *tools), replacements)
    slots = host_processors()
    machine_parts = {name: parts.pop(name) for name in machine.parts}
    with software(machine_parts, sitting(), parts) as base:
        left = select(plan, base) if select else plan
        with Board(left.runs, slots, overall=overall) as board:
            return carry_out(left, base, slots, board, with_metrics)


def check_changed(plan: Plan) -> None:
    """Checks policies in the checked simulator if they changed since their last check. Raises RuleBroken."""
    if committed_listing() is not None:
        return  # no source changed since the repository's tests passed
    from schedlab.machines.checked_simulator import check_once, sources_of, unchecked

    if left_out := unchecked():
        say(f"schedlab: {left_out}")
    choices = dict.fromkeys(run.policy for run in plan.runs)
    for source in dict.fromkeys(source for choice in choices for source in sources_of(choice)):
        if source.is_file():  # other policies are Linux's own
            check_once(source)


def check_policies(catalogue: Catalogue, plan: Plan) -> None:
    """Raises WrongUsage if a machine lacks a run's policy, or the policy lacks a tunable."""
    on_linux = {**catalogue, FAIR.name: FAIR}
    setups = dict.fromkeys((run.machine, run.policy, run.settings) for run in plan.runs)
    for machine, policy, settings in setups:
        of_linux = machine.name in LINUX_KERNELS
        if policy.name in (FAIR.name, PUBLISHED.name) and not of_linux:
            raise WrongUsage(
                "only Linux has this policy",
                what=parameter("policy", policy),
                fix="add `machine='linux'`, or choose another",
            )
        if is_published(policy):
            check_published(policy, settings)
            continue
        check_choices(on_linux if of_linux else catalogue, (policy,), dict(settings))


def check_published(policy: PolicyChoice, settings: tuple[tuple[str, int], ...]) -> None:
    """Raises WrongUsage if the scheduler is not installed, or if a tunable is set for it."""
    program = program_of(policy)
    for name, value in settings:
        raise WrongUsage(
            f"{program.name} has no tunables that schedlab can set",
            what=parameter("settings", {name: value}),
            fix=f"leave it out, or leave out {policy}",
        )


# --- continuing a plan with finished runs


def still_to_run(plan: Plan) -> Iterator[RunSpec]:
    """Yields the runs that are missing or failed. The inputs of existing runs are not checked."""
    for run in plan.runs:
        place = plan.place(run)
        if not (results.is_complete(place) and results.succeeded(results.read_manifest(place))):
            yield run


def unfinished(plan: Plan, base: Software) -> Plan:
    """Returns the runs that are missing or failed.

    Raises WrongUsage if the inputs of an existing run differ from the present inputs.
    """
    return replace(plan, runs=tuple(run for run in plan.runs if not _is_done(plan, run, base)))


def _is_done(plan: Plan, run: RunSpec, base: Software) -> bool:
    place = plan.place(run)
    if not place.exists():
        return False
    if not results.is_complete(place):
        raise WrongUsage(
            f"{run.name} in it is not a run",
            what=parameter("out", plan.folder),
            fix="name another folder",
        )
    manifest = results.read_manifest(place)
    expected = inputs(run, base)
    for key, what in results.DECISIVE.items():
        if manifest.get(key) != expected.get(key):
            raise WrongUsage(
                f"{run.name} in it was made with another {what}: "
                f"{results.shown(key, manifest)}, now {results.shown(key, expected)}",
                what=parameter("out", plan.folder),
                fix="name another folder, or move this one away",
            )
    done = results.succeeded(manifest)
    if not done:
        replacement.check_folder("out", place)
    return done

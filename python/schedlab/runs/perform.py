# SPDX-License-Identifier: MIT
"""From a plan to its runs: checks its names, builds what all start from, and carries it out."""

from __future__ import annotations

from collections.abc import Callable

from schedlab.errors import WrongUsage
from schedlab.machines import LINUX_KERNELS, machine_named
from schedlab.machines.base import Machine
from schedlab.machines.linux.published import PUBLISHED, is_published, program_of
from schedlab.runs.carrying_out import Finished, Software, carry_out, software
from schedlab.runs.parts import Instead, supply
from schedlab.runs.plan import Plan
from schedlab.runs.progress import Board, Whole
from schedlab.toolchain.build import host_processors
from schedlab.toolchain.kept import kept_listing
from schedlab.toolchain.policies import (
    FAIR,
    Catalogue,
    PolicyChoice,
    check_choices,
    read_catalogue,
)
from schedlab.toolchain.versions import sitting

Selection = Callable[[Plan, Machine, Software], Plan]
"""What of a plan is to be run, once it is known what it starts from."""


def perform(
    wanted: Plan,
    machine_name: str,
    select: Selection | None = None,
    with_metrics: bool = True,
    instead: Instead | None = None,
    whole: Whole | None = None,
) -> list[Finished]:
    """Returns the runs in the order of the plan, or of what is selected of it. `whole`: what it is a part of.

    Raises Interrupted (schedlab.runs.carrying_out) on a signal.
    """
    check_policies(read_catalogue(), wanted)
    machine = machine_named(machine_name)
    machine.release()
    if not wanted.unchecked:
        check_changed(wanted)
    tools = machine.tools if any(run.file for run in wanted.runs) else ()
    found = supply((*machine.parts, *tools), instead)
    slots = host_processors()
    own = {name: found.pop(name) for name in machine.parts}
    with software(own, sitting(), found) as base:
        left = select(wanted, machine, base) if select else wanted
        with Board(left, slots, whole=whole) as board:
            return carry_out(left, machine, base, slots, board, with_metrics)


def check_changed(plan: Plan) -> None:
    """Tries policies in the checked simulator that were changed since they passed it. Raises RuleBroken."""
    if kept_listing() is not None:
        return  # no source was changed since the repository's own tests passed
    from schedlab.machines.checked import can_check, check_once, sources_of

    if not can_check():
        return
    choices = dict.fromkeys(run.policy for run in plan.runs)
    for source in dict.fromkeys(source for choice in choices for source in sources_of(choice)):
        if source.is_file():  # else it is Linux's own
            check_once(source)


def check_policies(catalogue: Catalogue, plan: Plan) -> None:
    """Raises WrongUsage if a run's policy is not there on its machine, or does not know what is set for it."""
    on_linux = {**catalogue, FAIR.name: FAIR}
    setups = dict.fromkeys((run.machine, run.policy, run.settings) for run in plan.runs)
    for machine, policy, settings in setups:
        of_linux = machine in LINUX_KERNELS
        if policy.name in (FAIR.name, PUBLISHED.name) and not of_linux:
            raise WrongUsage(
                f"--policy {policy}: it is of Linux alone, not of ours; add --machine linux, or choose"
                " another"
            )
        if is_published(policy):
            check_published(policy, settings)
            continue
        check_choices(on_linux if of_linux else catalogue, (policy,), dict(settings))


def check_published(policy: PolicyChoice, settings: tuple[tuple[str, int], ...]) -> None:
    """Raises WrongUsage if the scheduler is not installed, or a tunable is set for it."""
    program = program_of(policy)
    for name, value in settings:
        raise WrongUsage(
            f"--set {name}={value}: {program.name} has no tunables of ours; leave it out, or leave out"
            f" {policy}"
        )

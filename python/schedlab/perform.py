# SPDX-License-Identifier: MIT
"""From a plan to its runs: checks its names, builds what all start from, and carries it out."""

from __future__ import annotations

import os
from collections.abc import Callable

from schedlab.build import PARTS, build, host_processors
from schedlab.loading import TOOLS
from schedlab.machines import machine_named
from schedlab.machines.base import Machine
from schedlab.paths import ROOT
from schedlab.plan import Plan
from schedlab.policies import Catalogue, check_choices, read_catalogue
from schedlab.progress import Board
from schedlab.run import Finished, Software, carry_out, software
from schedlab.versions import commit

Selection = Callable[[Plan, Machine, Software], Plan]
"""What of a plan is to be run, once it is known what it starts from."""


def perform(
    wanted: Plan,
    machine_name: str,
    select: Selection | None = None,
    with_metrics: bool = True,
) -> list[Finished]:
    """Gives the runs in the plan's order. Raises Interrupted (schedlab.run) on a signal."""
    check_policies(read_catalogue(), wanted)
    machine = machine_named(machine_name)
    parts = {name: PARTS[name] for name in machine.parts}
    loaded = any(run.is_loaded for run in wanted.runs)
    tools = {name: PARTS[name] for name in TOOLS} if loaded else {}
    build(*(os.path.relpath(path, ROOT) for path in (*parts.values(), *tools.values())))
    machine.release()
    slots = host_processors()
    with software(parts, commit(), tools) as base:
        left = select(wanted, machine, base) if select else wanted
        with Board(left, slots) as board:
            return carry_out(left, machine, base, slots, board, with_metrics)


def check_policies(catalogue: Catalogue, plan: Plan) -> None:
    """Each run's policy must be there, and know what is set for it."""
    for policy, settings in dict.fromkeys((run.policy, run.settings) for run in plan.runs):
        check_choices(catalogue, (policy,), dict(settings))

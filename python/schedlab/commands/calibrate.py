# SPDX-License-Identifier: MIT
"""`./schedlab calibrate`: measures the costs of the kernel's operations for the simulator."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from schedlab.base.display.terminal import new_table, results, say
from schedlab.base.files.replacement import check_file
from schedlab.base.toolchain.policies import kinds_of_policies
from schedlab.commands.execution import perform, print_plan
from schedlab.commands.options import (
    CPUS,
    FILE,
    TICK,
    echo_json,
    execution_options,
    policy_option,
)
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.machines import KERNEL_MACHINES

if TYPE_CHECKING:
    from schedlab.base.toolchain.policies import PolicyChoice
    from schedlab.runs.plan_execution import Finished
    from schedlab.workload.costs import Profile
    from schedlab_tools.calibration import Drift


@click.command()
@click.option("--machine", default="spike", show_default=True, type=click.Choice(KERNEL_MACHINES))
@policy_option(
    "POLICY or POLICY:PRESET, several with commas, that get separate costs. [default: all"
    " policies, and the presets of the standard one]"
)
@click.option(
    "--cpus",
    default="2",
    show_default=True,
    type=CPUS,
    help="Number of CPUs of the run that measures calls between CPUs.",
)
@click.option("--tick", default="1ms", show_default=True, type=TICK, help="Length of a tick.")
@click.option(
    "-o", "--out", type=FILE, help="Write the profile to this file. [default: only print it]"
)
@execution_options
def calibrate(
    machine: str,
    policies: tuple[PolicyChoice, ...] | None,
    cpus: tuple[int, ...],
    tick: int,
    out: Path | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Measure the costs of the kernel's operations for the simulator.

    The result is a profile for `run --machine sim --costs`. Boots the kernel with small programs that
    do one thing at a time, and takes the costs from their event traces. They are compared with those
    that the simulator has built in. The table says how each is measured.
    """
    from schedlab.workload import costs
    from schedlab_tools import calibration

    if len(cpus) > 1 or cpus[0] < 2:
        raise WrongUsage("--cpus: calibration needs one number of CPUs, 2 or more; add --cpus 2")
    if out:
        check_file("out", out)
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        plan = calibration.plan(
            Path(folder), machine, policies or kinds_of_policies(), cpus[0], tick
        )
        if dry_run:
            print_plan(plan.runs, as_json)
            return
        profile = _profile(perform(plan, keep_runs=False), machine)
    drifts = calibration.drifts(costs.read(costs.SHIPPED), profile)
    if out:
        costs.write(out, profile)
    if as_json:
        echo_json({**profile.to_dict(), "drifts": [vars(drift) for drift in drifts]})
    else:
        _show(profile, drifts)
    if out:
        say(f"schedlab: written to {out}; ./schedlab run --machine sim --costs {out} …")


def _profile(finished: list[Finished], machine: str) -> Profile:
    from schedlab import trace
    from schedlab_tools import calibration

    failed = [run for run in finished if not run.outcome.succeeded]
    if failed:
        raise SchedlabError(f"{failed[0].run.title}: {failed[0].outcome.message}")
    traces = [trace.read(run.folder / "trace.bin") for run in finished]
    try:
        return calibration.profile_of_runs([run.run for run in finished], traces, machine)
    except calibration.Unmeasurable as error:
        raise SchedlabError(str(error)) from None


def _show(profile: Profile, drifts: list[Drift]) -> None:
    title = f"Costs of the kernel on {profile.machine}, in ns"
    table = new_table(title, "cost", ">value", ">spread", ">events", "from")
    for name, cost in profile.costs.items():
        numbers = (cost.ns, cost.spread_ns, cost.events)
        table.add_row(name, *(f"{number:,}" for number in numbers), cost.source)
    results().print(table)
    if profile.machine != "spike":
        results().print("The built-in costs were measured on Spike, so there is no comparison.")
    elif not drifts:
        results().print("The costs equal the built-in profile (kernel).")
    for drift in drifts if profile.machine == "spike" else []:
        results().print(f"{drift.name}: built-in {drift.before:,} ns, measured {drift.now:,} ns")

# SPDX-License-Identifier: MIT
"""`./schedlab calibrate`: measures costs for the simulator, of the kernel or of a recorded machine."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from schedlab.base.display.terminal import new_table, result_console, say
from schedlab.base.files.replacement import check_file
from schedlab.base.toolchain.policies import distinct_policies
from schedlab.commands.execution import perform, print_plan
from schedlab.commands.options import (
    CPUS,
    FILE,
    TICK,
    echo_json,
    execution_options,
    given_options,
    policy_option,
)
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.machines import KERNEL_MACHINES

if TYPE_CHECKING:
    from schedlab.base.toolchain.policies import PolicyChoice
    from schedlab.recordings.calibration import Finding
    from schedlab.recordings.reader import Recording
    from schedlab.runs.plan_execution import Finished
    from schedlab.workload.costs import Profile
    from schedlab_tools.calibration import Drift


@click.command()
@click.option("--machine", default="spike", show_default=True, type=click.Choice(KERNEL_MACHINES))
@click.option(
    "--from-perf",
    "recording",
    type=FILE,
    metavar="RECORDING",
    help="Estimate the costs of the machine that made this recording, of any tool that `import` reads.",
)
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
@click.pass_context
def calibrate(
    context: click.Context,
    machine: str,
    recording: Path | None,
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

    With --from-perf, estimates the costs of a Linux machine from a recording, with intervals, and
    lists the costs that a recording cannot give.
    """
    if recording:
        if given := given_options(context, _OF_KERNEL):
            raise WrongUsage(
                "applies only to the kernel; leave it out, or leave out --from-perf",
                what=next(iter(given.values())),
            )
        _calibrate_recording(recording, out, as_json)
        return
    from schedlab.workload import costs
    from schedlab_tools import calibration

    if len(cpus) > 1 or cpus[0] < 2:
        raise WrongUsage("--cpus: calibration needs one number of CPUs, 2 or more; use --cpus 2")
    if out:
        check_file("out", out)
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        plan = calibration.plan(
            Path(folder), machine, policies or distinct_policies(), cpus[0], tick
        )
        if dry_run:
            print_plan(plan.runs, as_json)
            return
        profile = _make_profile(perform(plan, keep_runs=False), machine)
    drifts = calibration.drifts(costs.read_profile(costs.SHIPPED_PROFILE), profile)
    if out:
        costs.write_profile(out, profile)
    if as_json:
        echo_json({**profile.to_dict(), "drifts": [vars(drift) for drift in drifts]})
    else:
        _print_costs(profile, drifts)
    if out:
        say(f"schedlab: written to {out}; ./schedlab run --machine sim --costs {out} …")


_OF_KERNEL = {
    "machine": "--machine",
    "policies": "--policy",
    "cpus": "--cpus",
    "tick": "--tick",
    "dry_run": "--dry-run",
}
"""Options that have no meaning for a recording, by parameter."""


def _calibrate_recording(file: Path, out: Path | None, as_json: bool) -> None:
    """Estimates costs from a recording; prints them and writes them to `out`."""
    from schedlab.recordings import calibration
    from schedlab.recordings.reader import read
    from schedlab.workload import costs

    if out:
        check_file("out", out)
    recording = read(file)
    findings = calibration.calibrate(recording.events)
    profile = _profile_of_recording(file, recording, findings)
    if out:
        costs.write_profile(out, profile)
    unknown = {finding.cost: finding.source for finding in findings if not finding.estimate}
    if as_json:
        echo_json({**profile.to_dict(), "statistic": calibration.STATISTIC, "unknown": unknown})
    else:
        _show_estimates(profile, unknown)
        result_console().print(f"Estimates: {calibration.STATISTIC}.")
    if out:
        say(f"schedlab: written to {out}; ./schedlab run --machine sim --costs {out} …")


def _profile_of_recording(file: Path, recording: Recording, findings: list[Finding]) -> Profile:
    """Returns the costs that the recording gives; the others are 0."""
    from schedlab.recordings import calibration
    from schedlab.workload.costs import Cost, Profile

    known = {}
    for finding in findings:
        if estimate := finding.estimate:
            source = f"upper bound: {finding.source}" if finding.is_bound else finding.source
            numbers = (estimate.ns, estimate.spread_ns, estimate.low_ns, estimate.high_ns)
            ns, spread, low, high = (max(0, round(number)) for number in numbers)
            known[finding.cost] = Cost(ns, spread, estimate.events, source, low, high)
    facts = recording.facts
    machine = " ".join(filter(None, (facts.get("host"), facts.get("release"))))
    tick_ns = calibration.tick_length_ns(recording.events.ticks)
    return Profile(known, "none", f"Estimated from {file.name}.", machine, tick_ns)


def _show_estimates(profile: Profile, unknown: Mapping[str, str]) -> None:
    """Prints the costs that a recording gives, and the reasons why others are unknown."""
    title = "Costs of the recorded machine, in ns"
    table = new_table(title, "cost", ">value", ">95 % interval", ">events", "from")
    for name, cost in profile.costs.items():
        interval = f"{cost.low_ns:,} to {cost.high_ns:,}"
        table.add_row(name, f"{cost.ns:,}", interval, f"{cost.events:,}", cost.source)
    result_console().print(table)
    table = new_table("Not in this recording: 0 in the profile", "costs", "why")
    for why in dict.fromkeys(unknown.values()):
        table.add_row(", ".join(name for name in unknown if unknown[name] == why), why)
    result_console().print(table)


def _make_profile(finished: list[Finished], machine: str) -> Profile:
    """Returns the cost profile that the finished runs give."""
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


def _print_costs(profile: Profile, drifts: list[Drift]) -> None:
    """Prints the costs, and how far they differ from the simulator's own."""
    title = f"Costs of the kernel on {profile.machine}, in ns"
    table = new_table(title, "cost", ">value", ">spread", ">events", "from")
    for name, cost in profile.costs.items():
        numbers = (cost.ns, cost.spread_ns, cost.events)
        table.add_row(name, *(f"{number:,}" for number in numbers), cost.source)
    result_console().print(table)
    if profile.machine != "spike":
        result_console().print(
            "The built-in costs were measured on Spike, so there is no comparison."
        )
    elif not drifts:
        result_console().print("The costs equal the built-in profile (kernel).")
    for drift in drifts if profile.machine == "spike" else []:
        result_console().print(
            f"{drift.name}: built-in {drift.before:,} ns, measured {drift.now:,} ns"
        )

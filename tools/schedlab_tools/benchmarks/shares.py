# SPDX-License-Identifier: MIT
"""`./schedlab dev bench shares`: measures CPU shares on the schedlab kernel and on Linux."""

from pathlib import Path
from typing import Any

import click

from schedlab.base.display.terminal import new_table, print_result, result_console
from schedlab.base.toolchain.policies import PolicyChoice, find_policy_sharing_by, read_catalogue
from schedlab.commands.execution import check_finished, out_option, run_plan
from schedlab.commands.options import (
    CPUS,
    TICK,
    Parsed,
    echo_json,
    given_options,
    json_option,
    no_kvm_option,
    policy_option,
)
from schedlab.errors import WrongUsage
from schedlab.machines import LINUX_MACHINES
from schedlab.studies.lottery_tests import LOTTERY_TESTS
from schedlab.studies.shares import GroupShare as ShareRow
from schedlab.units import parse_counts
from schedlab_tools.benchmarks import linux_shares
from schedlab_tools.benchmarks.linux_shares import Setting as SharesOnLinux

SHARE_TESTS = Parsed("TESTS", lambda text: parse_counts(text, 1, 6))
SPIKE_OPTIONS = {
    "tests": "--tests",
    "ticks": "--ticks",
    "tick_ns": "--tick",
    "yield_work": "--yield",
    "original": "--original",
    "quick": "--quick",
}
COMMON_OPTIONS = {"policies": "--policy", "cpus": "--cpus", "seeds": "--seeds"}


@click.command()
@policy_option(
    "POLICY or POLICY:PRESET, several with commas.  [default: the study's, and ours of its kind]"
)
@click.option("--tests", default="1-6", show_default=True, type=SHARE_TESTS, help="Which tests.")
@click.option("--cpus", default="1-5", show_default=True, type=CPUS, help="How many CPUs.")
@click.option(
    "--seeds", default=10, show_default=True, type=click.IntRange(1, 1000), help="Runs of each."
)
@click.option(
    "--ticks",
    default=500,
    show_default=True,
    type=click.IntRange(10, 100000),
    help="Ticks of each run (study 1: 50).",
)
@click.option(
    "--tick", "tick_ns", default="1ms", show_default=True, type=TICK, help="Length of a tick."
)
@click.option(
    "--yield",
    "yield_work",
    default=0,
    show_default=True,
    type=click.IntRange(0, 10**9),
    help="Each process yields after this many iterations of 10 ns (study 1: 5000). 0: it does not.",
)
@click.option(
    "--original",
    is_flag=True,
    help="The study's own program: its finite work, its yields, no common start.",
)
@click.option("--quick", is_flag=True, help="1, 2 and 5 CPUs, 3 seeds; overrides other options.")
@click.option(
    "--machine",
    default="spike",
    show_default=True,
    type=click.Choice(("spike", *LINUX_MACHINES)),
    help="On linux: ten processes with weights (or tickets, if the policy shares by them) from 1 to 10, for 20 s.",
)
@out_option
@no_kvm_option
@json_option
@click.pass_context
def shares(
    context: click.Context,
    /,
    policies: tuple[PolicyChoice, ...] | None,
    quick: bool,
    machine: str,
    out: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure CPU shares in the six lottery tests of study 1; on Linux, of weights from 1 to 10.

    On Spike: the same shares every time. Each mean share over the seeds is compared with the ideal
    share; the standard error is what independent draws would give. Exit status 1 if a policy with
    its defaults is off by more than 3.5 standard errors; presets keep their studies' quirks.

    With --machine linux: one policy that shares by tickets and one by weight, on 2 CPUs, one
    seed, unless --policy, --cpus or --seeds say otherwise. Exit status 1 if a share is more
    than 3 percentage points off its ideal.
    """
    from schedlab.studies import shares as tests

    if machine in LINUX_MACHINES:
        linux_shares.measure(on_linux(context, machine), out, as_json)
        return
    if quick:
        options |= {"cpus": (1, 2, 5), "seeds": 3}
    setting = tests.MeasurementOptions(policies or tests.POLICIES, **options)
    with run_plan(lambda folder: tests.plan(folder, setting), out) as finished:
        rows = tests.evaluate(setting, finished)
    if as_json:
        echo_json({"bound": tests.STANDARD_ERRORS_MAX, "rows": [row.to_dict() for row in rows]})
    else:
        for test in LOTTERY_TESTS:
            show([row for row in rows if row.test == test.name], test.title)
        result_console().print(f"Measured over {tests.describe_measurement(setting)}")
        if not setting.original:
            for line in tests.summarize(rows):
                print_result(line)
    check_finished(finished, measured=True)
    if any(row.verdict == "off" and tests.is_built_in_default(row) for row in rows):
        raise SystemExit(1)


def on_linux(context: click.Context, machine: str) -> SharesOnLinux:
    """Returns the setting for Linux from the given options. Raises WrongUsage for options of Spike."""

    for option in given_options(context, SPIKE_OPTIONS).values():
        raise WrongUsage(
            f"{option}: of study 1's tests, on spike; leave it out, or --machine {machine}"
        )
    chosen = {name: context.params[name] for name in given_options(context, COMMON_OPTIONS)}
    if "policies" not in chosen:
        catalogue = read_catalogue()
        chosen["policies"] = tuple(
            find_policy_sharing_by(catalogue, attribute) for attribute in ("tickets", "weight")
        )
    return SharesOnLinux(machine=machine, **chosen)


def show(rows: list[ShareRow], title: str) -> None:
    """Prints the table of one test."""
    if not rows:
        return
    judged = any(row.judged for row in rows)
    headings = ["policy", ">CPUs", "group", ">study 1", ">selections", ">share", ">ideal"]
    headings += [">error", ">standard error", ">in standard errors", "aim"] if judged else []
    table = new_table(f"{title}: shares of the CPUs, in %", *headings)
    for number, row in enumerate(rows):
        last = number + 1 == len(rows) or rows[number + 1].cpus != row.cpus
        first = number == 0 or rows[number - 1].cpus != row.cpus
        study = "" if row.published is None else f"{100 * row.published:.1f}"
        cells = [study, *(f"{100 * x:.1f}" for x in (row.selections, row.share, row.ideal))]
        if judged:
            cells += [f"{100 * row.error:+.2f}", f"{100 * row.standard_error:.2f}"]
            cells += [f"{row.deviation:+.1f}", row.verdict]
        names = (row.policy, str(row.cpus)) if first else ("", "")
        table.add_row(*names, row.group, *cells, end_section=last)
    result_console().print(table)

# SPDX-License-Identifier: MIT
"""`./schedlab dev bench throughput`: what policies cost on Linux."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from schedlab.base.display.numbers import Quantity
from schedlab.base.display.terminal import new_table, results
from schedlab.base.toolchain.policies import (
    STANDARD,
    PolicyChoice,
    first_that_shares_by,
    read_catalogue,
)
from schedlab.commands.carrying_out import carried_out, check_finished, out_option
from schedlab.commands.options import POLICIES, echo_json, json_option, no_kvm_option
from schedlab.machines import LINUX_MACHINES, machine_named
from schedlab.machines.folder import CONSOLE

if TYPE_CHECKING:
    from schedlab_tools.benchmarks.linux_throughput import Row, Setting


@click.command("throughput")
@click.option(
    "--policy",
    "policies",
    type=POLICIES,
    help="POLICY or POLICY:PRESET, several with commas; each is compared with the kernel's fair class."
    "  [default: the standard one, and one that shares by weight]",
)
@click.option(
    "--machine",
    default=LINUX_MACHINES[0],
    show_default=True,
    type=click.Choice(LINUX_MACHINES),
    help="linux counts instructions, and is repeatable; linux-free goes by the host's time.",
)
@click.option("--cpus", default=2, show_default=True, type=click.IntRange(1, 16))
@click.option(
    "--threads", default=4, show_default=True, type=click.IntRange(1, 256), help="Of sysbench."
)
@click.option(
    "--rounds",
    default=5,
    show_default=True,
    type=click.IntRange(2, 100),
    help="In each, every policy has its turn, and the fair class.",
)
@click.option(
    "--seconds", default=3, show_default=True, type=click.IntRange(1, 60), help="Of each turn."
)
@out_option
@no_kvm_option
@json_option
def throughput(
    policies: tuple[PolicyChoice, ...] | None,
    machine: str,
    cpus: int,
    threads: int,
    rounds: int,
    seconds: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Measure what policies cost on Linux: sysbench cpu, in turns with the fair class.

    In one boot: the policy is switched while the machine runs, so that all else is the same. Exit
    status 1 if a policy's events a second are more than 5 % off those of the fair class.
    """
    from schedlab_tools.benchmarks import linux_throughput

    policies = policies or (
        PolicyChoice(STANDARD),
        first_that_shares_by(read_catalogue(), "weight"),
    )
    setting = linux_throughput.Setting(policies, machine, cpus, threads, rounds, seconds)
    with carried_out(lambda folder: linux_throughput.plan(folder, setting), machine, out) as runs:
        check_finished(runs)
        console = (runs[0].folder / CONSOLE).read_text(errors="replace")
    rows = linux_throughput.evaluate(console)
    if as_json:
        bound = {"bound": linux_throughput.BOUND, "machine": machine}
        echo_json({**bound, "rows": [row.to_dict() for row in rows]})
    else:
        show(setting, rows)
    if any(row.verdict == "off" for row in rows):
        raise SystemExit(1)


def show(setting: Setting, rows: list[Row]) -> None:
    """Prints the rates of all rounds, and their ratios to those of the fair class."""
    from schedlab.analysis.comparison.printed import in_column
    from schedlab.analysis.comparison.statistics import estimate
    from schedlab.studies.linux_experiments import FAIR
    from schedlab_tools.benchmarks import linux_throughput

    table = new_table(
        f"sysbench cpu, {setting.threads} threads on {setting.cpus} CPUs, {setting.rounds} rounds of"
        f" {setting.seconds} s",
        *("policy", ">events a second", ">of the fair class's, %"),
        f"aim: within {100 * linux_throughput.BOUND:g} %",
    )
    for row in rows:
        rate = in_column(estimate(row.rates))
        ratio = in_column(row.ratio, Quantity("%", 100))
        fair = row.policy == FAIR
        table.add_row(row.policy, rate, "100" if fair else ratio, "" if fair else row.verdict)
    results().print(table)
    results().print(
        f"In brackets: the 95 % interval of the mean over rounds; a ratio is taken in each round."
        f" Machine {setting.machine}, {machine_named(setting.machine).note}."
    )

# SPDX-License-Identifier: MIT
"""`./schedlab bench throughput`, and `bench shares --machine linux`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from schedlab.commands.options import POLICIES, echo_json, json_option, no_kvm_option
from schedlab.commands.run import perform
from schedlab.display.terminal import new_table, results, say
from schedlab.machines import LINUX_MACHINES
from schedlab.machines.folder import CONSOLE
from schedlab.toolchain.policies import PolicyChoice

if TYPE_CHECKING:
    from schedlab.benchmarks.linux_shares import Row as ShareRow
    from schedlab.benchmarks.linux_shares import Setting as ShareSetting
    from schedlab.benchmarks.linux_throughput import Row, Setting
    from schedlab.runs.carrying_out import Finished
    from schedlab.runs.plan import Plan

OUT = click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to keep all runs in.  [default: they are not kept]",
)


@click.command("throughput")
@click.option(
    "--policy",
    "policies",
    type=POLICIES,
    help="POLICY or POLICY:PRESET, several with commas; each beside the kernel's fair class."
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
@OUT
@no_kvm_option
@json_option
def bench_throughput(
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
    from schedlab.benchmarks import linux_throughput
    from schedlab.toolchain.policies import STANDARD, first_that_shares_by, read_catalogue

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
        show_throughput(setting, rows)
    if any(row.verdict == "off" for row in rows):
        raise SystemExit(1)


@contextmanager
def carried_out(
    make: Callable[[Path], Plan], machine: str, out: Path | None
) -> Iterator[list[Finished]]:
    """The runs of a plan, in a folder that stays, or in one that is gone after the block."""
    if out:
        wanted = make(out.absolute())
        wanted.check()
        wanted.check_new()
        yield perform(wanted, machine)
        return
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        wanted = make(Path(folder))
        wanted.check()
        yield perform(wanted, machine, kept=False)


def check_finished(runs: list[Finished]) -> None:
    """Ends with status 1 if one failed."""
    from schedlab.runs.carrying_out import describe

    for message in describe(runs):
        say(message)
    if not all(each.outcome.succeeded for each in runs):
        raise SystemExit(1)


def show_throughput(setting: Setting, rows: list[Row]) -> None:
    """Rates of all rounds, and their ratios to those of the fair class."""
    from schedlab.benchmarks import linux_throughput
    from schedlab.comparison.statistics import Quantity, estimate, in_column
    from schedlab.machines import machine_named
    from schedlab.studies.linux_experiments import FAIR

    table = new_table(
        f"sysbench cpu, {setting.threads} threads on {setting.cpus} CPUs, {setting.rounds} rounds of"
        f" {setting.seconds} s"
    )
    table.add_column("policy")
    for heading in ("events a second", "of the fair class's, %"):
        table.add_column(heading, justify="right")
    table.add_column(f"aim: within {100 * linux_throughput.BOUND:g} %")
    for row in rows:
        rate = in_column(estimate(row.rates))
        ratio = in_column(row.ratio, Quantity("%", 100))
        fair = row.policy == FAIR
        table.add_row(row.policy, rate, "100" if fair else ratio, "" if fair else row.verdict)
    results().print(table)
    results().print(
        f"In brackets: the 95 % interval of the mean over rounds; a ratio is taken in each round."
        f" Machine {setting.machine}, {machine_named(setting.machine).note}.",
        markup=False,
    )


def bench_shares_on_linux(setting: ShareSetting, out: Path | None, as_json: bool) -> None:
    """`./schedlab bench shares --machine linux`."""
    from schedlab.benchmarks import linux_shares

    with carried_out(
        lambda folder: linux_shares.plan(folder, setting), setting.machine, out
    ) as runs:
        check_finished(runs)
    rows = linux_shares.evaluate(runs)
    if as_json:
        bound = {"bound_points": linux_shares.BOUND_POINTS, "machine": setting.machine}
        echo_json({**bound, "rows": [row.to_dict() for row in rows]})
    else:
        show_shares(setting, rows)
    if any(row.verdict == "off" for row in rows):
        raise SystemExit(1)


def show_shares(setting: ShareSetting, rows: list[ShareRow]) -> None:
    """A line a process, and one for each policy."""
    from schedlab.benchmarks import linux_shares
    from schedlab.machines import machine_named

    table = new_table(f"Shares of the CPU time on Linux, in %, over {setting.seconds} s")
    table.add_column("policy")
    for heading in ("CPUs", "seed", "weight or tickets", "share", "ideal", "error, points"):
        table.add_column(heading, justify="right")
    table.add_column("aim")
    for row in rows:
        shares = (f"{100 * row.share:.2f}", f"{100 * row.ideal:.2f}", f"{row.error_points:+.2f}")
        table.add_row(
            row.policy, str(row.cpus), str(row.seed), str(row.weight), *shares, row.verdict
        )
    results().print(table)
    for line in linux_shares.summary(rows):
        results().print(line, markup=False, soft_wrap=True)
    note = machine_named(setting.machine).note
    results().print(f"Machine {setting.machine}, {note}.", markup=False)

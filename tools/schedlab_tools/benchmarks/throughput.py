# SPDX-License-Identifier: MIT
"""Measures the policies' cost on Linux: sysbench under the fair class and under built-in policies, alternating.

All rounds share one boot, and the policy is switched while the machine runs. Differences between
boots and drift then affect all policies equally, and cancel in the ratios.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.table import Table

from schedlab.analysis.comparison.formatting import estimate_in_column
from schedlab.analysis.comparison.statistics import Estimate, estimate
from schedlab.base.display.numbers import Quantity
from schedlab.base.display.terminal import new_table
from schedlab.base.outputs import OutputError, parse_figures
from schedlab.base.toolchain.policies import (
    DEFAULT_POLICY,
    PolicyChoice,
    find_policy_sharing_by,
    read_catalogue,
)
from schedlab.commands.execution import check_finished, out_option, run_plan
from schedlab.commands.options import POLICIES, duration_option, json_option, no_kvm_option
from schedlab.machines import LINUX_MACHINES, machine_named
from schedlab.machines.folder import CONSOLE_FILE
from schedlab.machines.spec import RunSpec
from schedlab.runs.plan import Plan
from schedlab.studies.linux_experiments import FAIR_CLASS
from schedlab_tools.benchmarks.results import finish
from schedlab_tools.targets import JudgedRow

BOUND = 0.05
"""Largest relative difference of a policy's events per second from the fair class."""
_MARK = "== round"
_ROUND = re.compile(rf"^{_MARK} (\d+), (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Setting:
    """What to measure: policies, machine, CPUs, and sysbench's threads, rounds and seconds."""

    policies: tuple[PolicyChoice, ...]
    """The built-in policies; the fair class is added as the first."""
    machine: str
    cpus: int = 2
    threads: int = 4
    rounds: int = 5
    seconds: int = 3
    seed: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """All policies, the fair class first."""
        return tuple(dict.fromkeys((FAIR_CLASS, *map(str, self.policies))))

    def command(self) -> str:
        """Returns the command for the guest's shell: each policy in each round, starting with a
        different policy in each.
        """
        order = " ".join(
            f"{number}/{name}"
            for number in range(1, self.rounds + 1)
            for name in _rotate(self.names, number - 1)
        )
        return (
            f"for each in {order}; do"
            " schedlab-linux policy ${each#*/} >/dev/null || exit 1;"
            f' echo "{_MARK} ${{each%%/*}}, ${{each#*/}}";'
            f" sysbench cpu --threads={self.threads} --time={self.seconds}"
            " --cpu-max-prime=10000 run || exit 1;"
            " done; schedlab-linux policy fair"
        )


def _rotate(names: Sequence[str], by: int) -> list[str]:
    """Returns the names, beginning with the one at index `by`."""
    place = by % len(names)
    return [*names[place:], *names[:place]]


def plan(folder: Path, setting: Setting) -> Plan:
    """Plans the single run. It begins under the fair class."""
    machine = machine_named(setting.machine)
    measured_s = setting.rounds * len(setting.names) * (setting.seconds + 1)
    run = RunSpec(
        workload=setting.command(),
        policy=PolicyChoice(FAIR_CLASS),
        settings=(),
        cpus=setting.cpus,
        machine=machine,
        seed=setting.seed,
        tick_ns=machine.tick_ns,
        limit_ns=(measured_s + 60) * 10**9,
        memory_mib=machine.memory_mib,
        label="throughput",
    )
    return Plan(folder, (run,))


@dataclass(frozen=True)
class Row(JudgedRow):
    """A policy compared with the fair class, round by round."""

    policy: str
    rates: tuple[float, ...]
    """Events per second of each round."""
    ratio: Estimate
    """Ratio to the fair class's rate in the same round: mean and 95 % interval."""

    @property
    def verdict(self) -> str:
        """Returns whether the ratio is within the bound."""
        return "met" if abs(self.ratio.mean - 1) <= BOUND else "off"


def evaluate(console: str) -> list[Row]:
    """Returns the rows of a run's output. Raises OutputError if a round is missing."""
    rates = read_rates(console)
    if FAIR_CLASS not in rates:
        raise OutputError("no round of the fair class was printed")
    if len({len(seed_rates) for seed_rates in rates.values()}) != 1:
        raise OutputError("not every policy was there in every round")
    return [
        Row(
            policy,
            tuple(policy_rates),
            estimate(
                [one / fair for one, fair in zip(policy_rates, rates[FAIR_CLASS], strict=True)]
            ),
        )
        for policy, policy_rates in rates.items()
    ]


def read_rates(console: str) -> Mapping[str, list[float]]:
    """Returns events per second by policy, the fair class first, in the order of rounds."""
    rates: dict[str, list[tuple[int, float]]] = {FAIR_CLASS: []}
    for number, policy, output in _rounds(console.replace("\r", "")):
        rate = parse_figures("sysbench", output)["events_per_second"]
        rates.setdefault(policy, []).append((number, rate))
    return {
        policy: [rate for _, rate in sorted(seed_rates)]
        for policy, seed_rates in rates.items()
        if seed_rates
    }


def _rounds(console: str) -> Iterator[tuple[int, str, str]]:
    """Yields the output of each policy in each round: round, policy and text."""
    marks = list(_ROUND.finditer(console))
    ends = [mark.start() for mark in marks[1:]] + [len(console)]
    for mark, end in zip(marks, ends, strict=True):
        yield int(mark[1]), mark[2], console[mark.end() : end]


@click.command("throughput")
@click.option(
    "--policy",
    "policies",
    type=POLICIES,
    help="POLICY or POLICY:PRESET, several with commas; each is compared with the kernel's fair class."
    "  [default: the standard policy, and a policy that shares by weight]",
)
@click.option(
    "--machine",
    default=LINUX_MACHINES[0],
    show_default=True,
    type=click.Choice(LINUX_MACHINES),
    help="linux counts instructions, and is repeatable; linux-free follows the host's time.",
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
@duration_option("How long each turn is, in whole seconds.", "60s", "3s")
@out_option
@no_kvm_option
@json_option
def throughput(
    policies: tuple[PolicyChoice, ...] | None,
    machine: str,
    cpus: int,
    threads: int,
    rounds: int,
    duration_ns: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Measure what policies cost on Linux: sysbench cpu, in turns with the fair class.

    In one boot: the policy is switched while the machine runs, so that all else is the same. Exit
    status 1 if a policy's events a second are more than 5 % off those of the fair class.
    """

    policies = policies or (
        PolicyChoice(DEFAULT_POLICY),
        find_policy_sharing_by(read_catalogue(), "weight"),
    )
    setting = Setting(policies, machine, cpus, threads, rounds, duration_ns // 10**9)
    with run_plan(lambda folder: plan(folder, setting), out) as runs:
        check_finished(runs)
        console = (runs[0].folder / CONSOLE_FILE).read_text(errors="replace")
    rows = evaluate(console)
    finish(
        as_json,
        {"bound": BOUND, "machine": machine, "rows": [row.to_dict() for row in rows]},
        (
            rates_table(setting, rows),
            "In brackets: the 95 % interval of the mean over rounds; a ratio is taken in each round."
            f" Machine {machine}, {machine_named(machine).note}.",
        ),
        rows,
    )


def rates_table(setting: Setting, rows: list[Row]) -> Table:
    """Returns the rates of all rounds, and their ratios to the fair class."""
    table = new_table(
        f"sysbench cpu, {setting.threads} threads on {setting.cpus} CPUs, {setting.rounds} rounds of"
        f" {setting.seconds} s",
        *("policy", ">events a second", ">of the fair class's, %"),
        f"aim: within {100 * BOUND:g} %",
    )
    for row in rows:
        rate = estimate_in_column(estimate(row.rates))
        ratio = estimate_in_column(row.ratio, Quantity("%", 100))
        fair = row.policy == FAIR_CLASS
        table.add_row(row.policy, rate, "100" if fair else ratio, "" if fair else row.verdict)
    return table

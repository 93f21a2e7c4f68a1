# SPDX-License-Identifier: MIT
"""Compares CPU shares on Linux with the ideal: weights or tickets from 1 to 10 under the built-in policies."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rich.table import Table

from schedlab.base.display.terminal import new_table
from schedlab.base.toolchain.policies import PolicyChoice, known_policies
from schedlab.commands.execution import check_finished, run_plan
from schedlab.machines import machine_named
from schedlab.machines.spec import RunSpec
from schedlab.runs.plan import Plan
from schedlab.runs.plan_execution import Finished
from schedlab_tools.benchmarks.results import finish
from schedlab_tools.targets import JudgedRow

BOUND_POINTS = 3.0
"""Allowed deviation of a process's share from its ideal, in percentage points of all CPU time."""
PROCESSES = 10
"""The first process has weight 1, the last 10."""
SECONDS = 20
_WARM_UP_TICKS = 250
"""More than a round of WRR on one CPU: 55 time slices of 10 ms, with a tick of 4 ms."""
_TICKETS, _WEIGHT = 2, 3
"""Values of the option -a of `shares`."""


@dataclass(frozen=True)
class Setting:
    """What to measure: policies, machine, CPUs, seeds and seconds of a run."""

    policies: tuple[PolicyChoice, ...]
    machine: str
    cpus: tuple[int, ...] = (2,)
    seeds: int = 1
    seconds: int = SECONDS

    def command(self, policy: PolicyChoice) -> str:
        """Returns the command for the guest."""
        ticks = self.seconds * 10**9 // machine_named(self.machine).tick_ns
        entry = known_policies().get(policy.name)
        by_tickets = entry is not None and entry.shares_under(policy.preset) == "tickets"
        attribute = _TICKETS if by_tickets else _WEIGHT
        return f"shares -n {PROCESSES} -a {attribute} -u {_WARM_UP_TICKS} -t {ticks}"


@dataclass(frozen=True)
class Row(JudgedRow):
    """A process under a policy. Shares are fractions of all CPU time that the processes used."""

    derived: ClassVar = ("error_points",)

    policy: str
    cpus: int
    seed: int
    weight: int
    """Its weight, or its tickets."""
    share: float
    ideal: float

    @property
    def error_points(self) -> float:
        """Returns the difference from the ideal share, in percentage points."""
        return 100 * (self.share - self.ideal)

    @property
    def verdict(self) -> str:
        """Returns whether the share is near its ideal."""
        return "met" if abs(self.error_points) <= BOUND_POINTS else "off"


def plan(folder: Path, setting: Setting) -> Plan:
    """Plans a run for each policy, number of CPUs and seed."""
    machine = machine_named(setting.machine)
    runs = tuple(
        RunSpec(
            workload=setting.command(policy),
            policy=policy,
            settings=(),
            cpus=cpus,
            machine=machine,
            seed=seed,
            tick_ns=machine.tick_ns,
            limit_ns=(setting.seconds + 60) * 10**9,
            memory_mib=machine.memory_mib,
            label="shares",
        )
        for policy in setting.policies
        for cpus in setting.cpus
        for seed in range(1, setting.seeds + 1)
    )
    return Plan(folder, runs)


def evaluate(finished: Iterable[Finished]) -> list[Row]:
    """Returns a row for each process of successful runs, by its weight."""
    rows = [
        Row(
            str(run.run.policy),
            run.run.cpus,
            run.run.seed,
            int(group["group"]),
            group["share"],
            group["ideal_share"],
        )
        for run in finished
        if run.outcome.succeeded and run.metrics
        for group in run.metrics.groups.to_dicts()
        if str(group["group"]).isdecimal()
    ]
    return sorted(rows, key=lambda row: (row.policy, row.cpus, row.seed, row.weight))


def summary(rows: Sequence[Row]) -> list[str]:
    """Returns one line for each policy: the process with the largest deviation."""
    lines = []
    for policy in dict.fromkeys(row.policy for row in rows):
        policy_rows = [row for row in rows if row.policy == policy]
        worst = max(policy_rows, key=lambda row: abs(row.error_points))
        met = sum(row.verdict == "met" for row in policy_rows)
        lines.append(
            f"{policy}: {met} of {len(policy_rows)} shares within {BOUND_POINTS:g} percentage points of the"
            f" ideal; farthest: weight {worst.weight} on {worst.cpus} CPUs, seed {worst.seed},"
            f" {worst.error_points:+.2f} points"
        )
    return lines


def measure(setting: Setting, out: Path | None, as_json: bool) -> None:
    """Measures and prints the results. Exits with status 1 if a share is off."""

    with run_plan(lambda folder: plan(folder, setting), out) as runs:
        check_finished(runs)
    rows = evaluate(runs)
    bound = {"bound_points": BOUND_POINTS, "machine": setting.machine}
    note = f"Machine {setting.machine}, {machine_named(setting.machine).note}."
    finish(
        as_json,
        {**bound, "rows": [row.to_dict() for row in rows]},
        (shares_table(setting, rows), *summary(rows), note),
        rows,
    )


def shares_table(setting: Setting, rows: list[Row]) -> Table:
    """Returns a table with one line per process."""
    title = f"Shares of the CPU time on Linux, in %, over {setting.seconds} s"
    figures = (">CPUs", ">seed", ">weight or tickets", ">share", ">ideal", ">error, points")
    table = new_table(title, "policy", *figures, "aim")
    for row in rows:
        shares = (f"{100 * row.share:.2f}", f"{100 * row.ideal:.2f}", f"{row.error_points:+.2f}")
        table.add_row(
            row.policy, str(row.cpus), str(row.seed), str(row.weight), *shares, row.verdict
        )
    return table

# SPDX-License-Identifier: MIT
"""Compares CPU shares in study 1's six lottery tests on the kernel with the ideal share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.machines import machine_named
from schedlab.machines.spec import RunSpec
from schedlab.runs.plan import Plan
from schedlab.studies import published
from schedlab.studies.lottery_tests import LOTTERY_TESTS, TESTS_BY_NAME, LotteryTest

if TYPE_CHECKING:
    from schedlab.metrics import Metrics
    from schedlab.runs.plan_execution import Finished

STANDARD_ERRORS_MAX = 3.5
"""Allowed deviation of a group's mean share from its ideal, in standard errors."""
STUDY = 1
POLICIES = (PolicyChoice("lottery"), PolicyChoice("lottery", "thesis"))
"""The policy that the study measured, as built-in policy and as in the study."""
_ROUNDING = 1e-9
_ITERATION_NS = 10
"""One iteration of workload_burn() on Spike, in nanoseconds: ten instructions at 1 GHz."""


@dataclass(frozen=True)
class MeasurementOptions:
    """How the lottery tests are run; `ticks`: the measured ticks of a run."""

    policies: tuple[PolicyChoice, ...]
    tests: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    cpus: tuple[int, ...] = (1, 2, 3, 4, 5)
    seeds: int = 10
    ticks: int = 500
    tick_ns: int = 1_000_000
    yield_work: int = 0
    """Iterations between two yields; 0: processes do not yield."""
    original: bool = False
    """True for the study's own program: separate starts, its yields, its finite work."""

    def command(self, test: LotteryTest) -> str:
        """Returns the command for the guest."""
        words = [f"lotterytest {test.number} -t {self.ticks} -w {self.tick_ns // _ITERATION_NS}"]
        words += [f"-y {self.yield_work}"] if self.yield_work else []
        words += ["-o 1"] if self.original else []
        return " ".join(words)


@dataclass(frozen=True)
class GroupShare:
    """A group of a test under a policy, over all seeds. Shares are fractions of 1."""

    test: str
    policy: str
    cpus: int
    group: str
    runs: int
    ideal: float
    share: float
    selections: float
    """Fraction of picks of the workload that were of this group."""
    draws: int
    """Number of independent draws that the share would result from."""
    published: float | None
    """The study's share of selections."""
    judged: bool

    @property
    def error(self) -> float:
        """Difference from the ideal share."""
        return self.share - self.ideal

    @property
    def standard_error(self) -> float:
        """The standard error of the fraction of `draws` independent draws with this probability."""
        return math.sqrt(max(self.ideal * (1 - self.ideal), 0) / max(self.draws, 1))

    @property
    def deviation(self) -> float:
        """The error in standard errors; infinite if the standard error is 0."""
        if self.standard_error > 0:
            return self.error / self.standard_error
        return 0.0 if abs(self.error) < _ROUNDING else math.copysign(math.inf, self.error)

    @property
    def verdict(self) -> str:
        """Returns the verdict: whether the deviation is within the bound."""
        if not self.judged:
            return ""
        return "met" if abs(self.deviation) <= STANDARD_ERRORS_MAX else "off"

    def to_dict(self) -> dict[str, Any]:
        """Returns the row for JSON."""
        derived = {
            "error": self.error,
            "standard_error": self.standard_error,
            "deviation": self.deviation if math.isfinite(self.deviation) else None,
            "verdict": self.verdict,
        }
        return {**asdict(self), **derived}


def plan(folder: Path, options: MeasurementOptions) -> Plan:
    """Plans all runs: tests × CPUs × policies × seeds."""
    window_ns = options.ticks * options.tick_ns
    runs = tuple(
        RunSpec(
            workload=options.command(test),
            policy=policy,
            settings=(),
            cpus=cpus,
            machine=machine_named("spike"),
            seed=seed,
            tick_ns=options.tick_ns,
            limit_ns=10 * window_ns + 20_000_000_000,
            memory_mib=512,
            label=test.name,
        )
        for policy in options.policies
        for test in LOTTERY_TESTS
        if test.number in options.tests
        for cpus in options.cpus
        for seed in range(1, options.seeds + 1)
    )
    return Plan(folder, runs)


def evaluate(options: MeasurementOptions, finished: Iterable[Finished]) -> list[GroupShare]:
    """Returns a row for each group of each test, policy and number of CPUs, if all runs succeeded."""
    cells: dict[tuple[str, str, int], list[Finished]] = {}
    for run in finished:
        key = (run.run.label, str(run.run.policy), run.run.cpus)
        cells.setdefault(key, []).append(run)
    rows: list[GroupShare] = []
    for (name, policy, cpus), runs in cells.items():
        metrics = [run.metrics for run in runs if run.outcome.succeeded and run.metrics]
        if len(metrics) == len(runs):
            rows += cell_rows(options, TESTS_BY_NAME[name], policy, cpus, metrics)
    return rows


def cell_rows(
    options: MeasurementOptions, test: LotteryTest, policy: str, cpus: int, runs: Sequence[Metrics]
) -> list[GroupShare]:
    """Returns the rows of runs that differ only in their seeds."""
    groups = [{row["group"]: row for row in run.groups.to_dicts()} for run in runs]
    total_picks = [sum(row["selections"] for row in run.values()) for run in groups]
    ticks = sum(cpus * run.summary["elapsed_ns"][0] / options.tick_ns for run in runs)
    return [
        GroupShare(
            test=test.name,
            policy=policy,
            cpus=cpus,
            group=group,
            runs=len(runs),
            ideal=fmean(run[group]["ideal_share"] for run in groups),
            share=fmean(run[group]["share"] for run in groups),
            selections=fmean(
                run[group]["selections"] / total
                for run, total in zip(groups, total_picks, strict=True)
            ),
            draws=sum(total_picks) if options.yield_work else round(ticks),
            published=published_share(test, group, cpus),
            judged=not options.original,
        )
        for group in test.rows
    ]


@cache
def published_table(table: int) -> dict[tuple[str, str], float]:
    """Returns the published table, by row and column."""
    return {(figure.row, figure.column): figure.value / 100 for figure in published(STUDY, table)}


def published_share(test: LotteryTest, group: str, cpus: int) -> float | None:
    """Returns the share that the study measured, as a fraction of 1."""
    column = f"{cpus} CPU{'s' if cpus > 1 else ''}"
    return published_table(test.table).get((test.rows[group], column))


def is_built_in_default(row: GroupShare) -> bool:
    """True for a policy with its defaults. A preset that keeps a study's properties need not be fair."""
    return ":" not in row.policy


def describe_measurement(options: MeasurementOptions) -> str:
    """Returns one line about how all rows were measured."""
    tick = options.tick_ns / 1e6
    text = f"{options.seeds} seeds × {options.ticks} ticks of {tick:g} ms on Spike"
    if options.original:
        return f"{text}, the study's own program"
    return f"{text}, yielding" if options.yield_work else text


def summarize(rows: Sequence[GroupShare]) -> list[str]:
    """Returns one line for each policy."""
    lines = []
    for policy in dict.fromkeys(row.policy for row in rows):
        policy_rows = [row for row in rows if row.policy == policy]
        met_count = sum(row.verdict == "met" for row in policy_rows)
        worst = max(policy_rows, key=lambda row: abs(row.deviation))
        lines.append(
            f"{policy}: {met_count} of {len(policy_rows)} shares within {STANDARD_ERRORS_MAX} standard errors"
            f" of the ideal;"
            f" farthest: {worst.group} of {worst.test} on {worst.cpus} CPUs,"
            f" {100 * worst.error:+.2f} points, {worst.deviation:+.1f} standard errors"
        )
    return lines

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

if TYPE_CHECKING:
    from schedlab.metrics import Metrics
    from schedlab.runs.plan_execution import Finished

BOUND = 3.5
"""Allowed deviation of a group's mean share from its ideal, in standard errors."""
STUDY = 1
POLICIES = (PolicyChoice("lottery"), PolicyChoice("lottery", "thesis"))
"""The policy that the study measured, as built-in policy and as in the study."""
_ROUNDING = 1e-9
_BURN_NS = 10
"""One iteration of workload_burn() on Spike, in nanoseconds: ten instructions at 1 GHz."""


@dataclass(frozen=True)
class LotteryTest:
    """A test of workloads/lotterytest.c, and its place in study 1."""

    number: int
    name: str
    title: str
    table: int
    rows: dict[str, str]
    """The study's name of each group."""


TESTS = (
    LotteryTest(
        1,
        "low",
        "Low Process Count",
        3,
        {"A": "A (30 tickets)", "B": "B (20 tickets)", "C": "C (10 tickets)"},
    ),
    LotteryTest(
        2,
        "basic",
        "Basic Fairness",
        4,
        {
            "A+B": "A+B (30+30)",
            "C+D": "C+D (20+20)",
            "E+F": "E+F (10+10)",
            "G+H": "G+H (5+5)",
        },
    ),
    LotteryTest(
        3,
        "switch",
        "Switch Overhead",
        5,
        {"A": "A (30 tickets)", "B": "B (20 tickets)", "C": "C (10 tickets)"},
    ),
    LotteryTest(
        4,
        "starve",
        "Starvation Check",
        6,
        {"A+B": "A+B (50+50)", "C+D": "C+D (10+10)", "E+F+G+H": "E+F+G+H (1+1+1+1)"},
    ),
    LotteryTest(
        5,
        "grouped",
        "Grouped Ticket Levels",
        7,
        {"1": "1 (10×1)", "2": "2 (10×5)", "3": "3 (10×10)"},
    ),
    LotteryTest(
        6,
        "mixed",
        "Mixed Load",
        8,
        {
            "CPU": "CPU-heavy (5×20)",
            "I/O": "I/O-bound (5×15)",
            "short": "Short-lived (5×10)",
            "mixed": "Mixed (5×5)",
        },
    ),
)


@dataclass(frozen=True)
class Setting:
    """How the tests are run."""

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
        words = [f"lotterytest {test.number} -t {self.ticks} -w {self.tick_ns // _BURN_NS}"]
        words += [f"-y {self.yield_work}"] if self.yield_work else []
        words += ["-o 1"] if self.original else []
        return " ".join(words)


@dataclass(frozen=True)
class Row:
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
        if not self.judged:
            return ""
        return "met" if abs(self.deviation) <= BOUND else "off"

    def to_dict(self) -> dict[str, Any]:
        """Returns the row for JSON."""
        derived = {
            "error": self.error,
            "standard_error": self.standard_error,
            "deviation": self.deviation if math.isfinite(self.deviation) else None,
            "verdict": self.verdict,
        }
        return {**asdict(self), **derived}


def plan(folder: Path, setting: Setting) -> Plan:
    """Plans all runs: tests × CPUs × policies × seeds."""
    window_ns = setting.ticks * setting.tick_ns
    runs = tuple(
        RunSpec(
            workload=setting.command(test),
            policy=policy,
            settings=(),
            cpus=cpus,
            machine=machine_named("spike"),
            seed=seed,
            tick_ns=setting.tick_ns,
            limit_ns=10 * window_ns + 20_000_000_000,
            memory_mib=512,
            label=test.name,
        )
        for policy in setting.policies
        for test in TESTS
        if test.number in setting.tests
        for cpus in setting.cpus
        for seed in range(1, setting.seeds + 1)
    )
    return Plan(folder, runs)


def evaluate(setting: Setting, finished: Iterable[Finished]) -> list[Row]:
    """Returns a row for each group of each test, policy and number of CPUs, if all runs succeeded."""
    cells: dict[tuple[str, str, int], list[Finished]] = {}
    for run in finished:
        key = (run.run.label, str(run.run.policy), run.run.cpus)
        cells.setdefault(key, []).append(run)
    rows: list[Row] = []
    for (name, policy, cpus), runs in cells.items():
        test = next(test for test in TESTS if test.name == name)
        measured = [run.metrics for run in runs if run.outcome.succeeded and run.metrics]
        if len(measured) == len(runs):
            rows += cell_rows(setting, test, policy, cpus, measured)
    return rows


def cell_rows(
    setting: Setting, test: LotteryTest, policy: str, cpus: int, runs: Sequence[Metrics]
) -> list[Row]:
    """Returns the rows of runs that differ only in their seeds."""
    groups = [{row["group"]: row for row in run.groups.to_dicts()} for run in runs]
    picked = [sum(row["selections"] for row in run.values()) for run in groups]
    ticks = sum(cpus * run.summary["elapsed_ns"][0] / setting.tick_ns for run in runs)
    return [
        Row(
            test=test.name,
            policy=policy,
            cpus=cpus,
            group=group,
            runs=len(runs),
            ideal=fmean(run[group]["ideal_share"] for run in groups),
            share=fmean(run[group]["share"] for run in groups),
            selections=fmean(
                run[group]["selections"] / total for run, total in zip(groups, picked, strict=True)
            ),
            draws=sum(picked) if setting.yield_work else round(ticks),
            published=published_share(test, group, cpus),
            judged=not setting.original,
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


def as_shipped(row: Row) -> bool:
    """True for a policy with its defaults. A preset that keeps a study's properties need not be fair."""
    return ":" not in row.policy


def describe(setting: Setting) -> str:
    """Returns one line about how all rows were measured."""
    tick = setting.tick_ns / 1e6
    text = f"{setting.seeds} seeds × {setting.ticks} ticks of {tick:g} ms on Spike"
    if setting.original:
        return f"{text}, the study's own program"
    return f"{text}, yielding" if setting.yield_work else text


def summary(rows: Sequence[Row]) -> list[str]:
    """Returns one line for each policy."""
    lines = []
    for policy in dict.fromkeys(row.policy for row in rows):
        policy_rows = [row for row in rows if row.policy == policy]
        met = sum(row.verdict == "met" for row in policy_rows)
        worst = max(policy_rows, key=lambda row: abs(row.deviation))
        lines.append(
            f"{policy}: {met} of {len(policy_rows)} shares within {BOUND} standard errors of the ideal;"
            f" farthest: {worst.group} of {worst.test} on {worst.cpus} CPUs,"
            f" {100 * worst.error:+.2f} points, {worst.deviation:+.1f} standard errors"
        )
    return lines

# SPDX-License-Identifier: MIT
"""Tests adaptive seeds: how many are added, when this stops, and how often the decision is
wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kept_runs import MS, keep_figures
from schedlab.analysis.comparison.best import level_per_evaluation, rank_policies
from schedlab.analysis.comparison.measures import MEASURES_BY_NAME
from schedlab.analysis.comparison.statistics import estimate, p_value_within_margin
from schedlab.analysis.comparison.suites import Suite, compared_suites
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.errors import FileRefused
from schedlab.machines import machine_named
from schedlab.machines.spec import RunSpec
from schedlab.report.adaptive_seeds import (
    MetricComparison,
    SeedBudget,
    add_seeds_until_decided,
    parse_budget,
    print_comparisons,
)
from schedlab.runs.collection import read_collection
from schedlab.runs.plan import Plan
from schedlab.runs.results import EVALUATIONS_FILE, read_sequential_checks, write_sequential_checks

TURNAROUND = MEASURES_BY_NAME["turnaround"]

Value = Callable[[str, int], float]
"""Maps a policy and a seed to a turnaround in ms."""


def plan_of(folder: Path, *policies: str, seeds: int = 3, label: str = "tiny") -> Plan:
    runs = tuple(
        RunSpec(
            "work",
            PolicyChoice(policy),
            (),
            1,
            machine_named("spike"),
            seed,
            MS,
            60_000 * MS,
            512,
            label=label,
        )
        for policy in policies
        for seed in range(1, seeds + 1)
    )
    return Plan(folder, runs)


class Laboratory:
    """Executes runs with known results, and records the runs of each round."""

    def __init__(self, folder: Path, value: Value) -> None:
        self.folder = folder
        self.value = value
        self.rounds: list[list[RunSpec]] = []

    def perform(self, plan: Plan) -> None:
        self.rounds.append(list(plan.runs))
        for run in plan.runs:
            keep_figures(
                self.folder,
                experiment=run.label,
                policy=str(run.policy),
                seed=run.seed,
                turnaround_mean_ns=self.value(str(run.policy), run.seed) * MS,
            )

    def suites(self, plan: Plan) -> list[Suite]:
        return compared_suites(read_collection([self.folder]))

    def decide(self, budget: SeedBudget, *policies: str, seeds: int = 3) -> list[MetricComparison]:
        plan = plan_of(self.folder, *policies, seeds=seeds)
        self.perform(plan)
        full_plan, comparisons = add_seeds_until_decided(plan, budget, self.perform, self.suites)
        assert len(full_plan.runs) == len(set(full_plan.runs)) == sum(map(len, self.rounds))
        return comparisons


def noise(seed: int, policy: str) -> float:
    """Returns repeatable normal noise with a standard deviation of 1 ms."""
    return float(np.random.default_rng([seed, *policy.encode()]).normal())


def test_a_small_lead_is_decided_once_rare_losses_would_have_been_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A lead of 2 % in each of 3 seeds is significant, but 24 seeds may miss a loss in 1 of 9
    seeds."""
    laboratory = Laboratory(
        tmp_path, lambda policy, seed: {"rr": 1020, "mlfq": 1000}[policy] + seed
    )
    (comparison,) = laboratory.decide(SeedBudget(), "rr", "mlfq")
    assert comparison.suite.is_settled(comparison.measure)
    assert [len(runs) // 2 for runs in laboratory.rounds] == [3, 3, 6, 12, 6]
    assert comparison.is_decided and comparison.remaining_policies == ["mlfq"]
    assert comparison.to_dict()["unseen_rate"] == pytest.approx(0.095, abs=0.001)
    print_comparisons([comparison])
    assert "30 seeds may all miss a case that occurs in 10 % of seeds" in capsys.readouterr().out


def test_seeds_double_until_decided(tmp_path: Path) -> None:
    """With a lead of a third, 3 and 6 seeds may miss losses that outweigh it; 12 seeds do not."""
    means = {"rr": 150.0, "mlfq": 100.0}
    laboratory = Laboratory(tmp_path, lambda policy, seed: means[policy] + 3 * noise(seed, policy))
    (comparison,) = laboratory.decide(SeedBudget(24), "rr", "mlfq")
    added = [sorted({run.seed for run in runs}) for runs in laboratory.rounds]
    assert added == [[1, 2, 3], [4, 5, 6], list(range(7, 13))]
    assert all(
        len(runs) == 2 * len(seeds) for runs, seeds in zip(laboratory.rounds, added, strict=True)
    )
    assert comparison.is_decided and comparison.remaining_policies == ["mlfq"]
    assert read_sequential_checks(tmp_path) == 4, "3, 6, 12, 24: however many were needed"


def test_what_is_surely_as_good_is_decided(tmp_path: Path) -> None:
    """Means 0.5 % apart with 0.1 % noise: more seeds would find the better one, but it is
    irrelevant."""
    laboratory = Laboratory(
        tmp_path, lambda policy, seed: 100 + 0.5 * (policy == "rr") + noise(seed, policy) / 10
    )
    (comparison,) = laboratory.decide(SeedBudget(24), "rr", "mlfq")
    assert comparison.is_decided and set(comparison.remaining_policies) == {"rr", "mlfq"}


def test_a_budget_ends_it_and_what_is_open_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    laboratory = Laboratory(tmp_path, lambda policy, seed: 10 + noise(seed, policy))
    comparisons = laboratory.decide(SeedBudget(7), "rr", "mlfq")
    assert [len(runs) for runs in laboratory.rounds] == [6, 6, 2]
    assert not comparisons[0].is_decided
    print_comparisons(comparisons)
    output_lines = capsys.readouterr().out.splitlines()
    assert output_lines[0].endswith("1 is undecided.")
    assert output_lines[1].startswith("- turnaround, mean, tiny, 1 CPU: ") and output_lines[
        1
    ].endswith("(7 seeds)")


def test_report_uses_the_corrected_level(tmp_path: Path) -> None:
    """A difference at the 5 % level, but not at a quarter of it, counts only with a single
    evaluation.

    A plain report excludes the worse policy; a report after four evaluations does not.
    """
    values = {"rr": (10.0, 10.9, 10.2), "mlfq": (9.0, 9.3, 9.4)}
    for policy, samples in values.items():
        for seed, value in enumerate(samples, 1):
            keep_figures(tmp_path, policy=policy, seed=seed, turnaround_mean_ns=value * MS)
    (turnaround,) = compared_suites(read_collection([tmp_path]))[0].differing_measures
    assert compared_suites(read_collection([tmp_path]))[0].best_policies(turnaround) == ["mlfq"]
    write_sequential_checks(tmp_path, 4)
    assert compared_suites(read_collection([tmp_path]))[0].best_policies(turnaround) == [
        "mlfq",
        "rr",
    ]


def test_sequential_checks_are_remembered(tmp_path: Path) -> None:
    assert read_sequential_checks(tmp_path) == 1
    write_sequential_checks(tmp_path, 4)
    write_sequential_checks(tmp_path, 2)
    assert read_sequential_checks(tmp_path) == 4
    (tmp_path / EVALUATIONS_FILE).write_text('{"looks": 0}')
    with pytest.raises(FileRefused, match="looks: 0: expected a whole number"):
        read_sequential_checks(tmp_path)


def out_at_any_look(evaluation_count: int, cases: int) -> float:
    """Returns how often an evaluation excludes one of three equal policies, per case."""
    random = np.random.default_rng(5)
    lost = 0
    for _ in range(cases):
        seeds: int | None = 3
        values = random.normal(size=(3, 12))
        while seeds:
            some = {str(number): values[number, :seeds] for number in range(3)}
            possible = rank_policies(some, evaluations_max=evaluation_count).tied_for_best
            lost += "0" not in possible
            seeds = (
                None
                if "0" not in possible or len(possible) == 1
                else SeedBudget(12).next_seed_count(seeds)
            )
    return lost / cases


def test_best_is_excluded_in_one_of_twenty_with_several_checks() -> None:
    """Evaluates 3, 6 and 12 seeds; an uncorrected 5 % level would exclude the best more often."""
    assert out_at_any_look(SeedBudget(12).evaluations_max(3), 600) <= 0.05
    assert out_at_any_look(1, 300) > 0.06


@pytest.mark.parametrize(
    ("lead", "loss"), [(0.01, 5.0), pytest.param(0.1, 1.0, marks=pytest.mark.long)]
)
def test_rare_losses_rule_out_the_better_policy_in_one_of_twenty(lead: float, loss: float) -> None:
    """`rash` leads by `lead` in 9 of 10 seeds, loses by `loss` in the tenth, and is worse on
    average.

    `slow` always takes 1.
    """
    random = np.random.default_rng(7)
    budget, wrong, cases = SeedBudget(), 0, 200
    evaluation_count = budget.evaluations_max(3)
    for _ in range(cases):
        losses = random.random(budget.seeds) < 0.1
        seeds: int | None = 3
        while seeds:
            comparison = MetricComparison(
                suite_of(1.0 - lead + (lead + loss) * losses[:seeds], evaluation_count), TURNAROUND
            )
            if comparison.is_decided:
                break
            seeds = budget.next_seed_count(seeds)
        wrong += comparison.is_decided and comparison.remaining_policies == ["rash"]
    # The expected rate is 4.2 % if only the last evaluation decides; allows four standard errors
    # more.
    assert wrong / cases <= 0.05 + 4 * (0.05 * 0.95 / cases) ** 0.5


def suite_of(rash: np.ndarray, evaluation_count: int) -> Suite:
    """Returns a suite: `slow` takes 1 in each seed, `rash` takes the given times."""
    samples = {"slow": np.ones(len(rash)), "rash": rash}
    name = TURNAROUND.name
    return Suite(
        *("tiny", 1, MS, "sim", "tiny"),
        policies=tuple(samples),
        seeds=tuple(range(len(rash))),
        failures={},
        samples={(policy, name): (list(values), 0.0) for policy, values in samples.items()},
        means={(policy, name): estimate(values) for policy, values in samples.items()},
        evaluations_max=evaluation_count,
    )


def test_one_margin_of_difference_is_called_equal_in_one_of_twenty() -> None:
    random = np.random.default_rng(6)
    evaluation_count, wrong = SeedBudget(12).evaluations_max(3), 0
    for _ in range(1500):
        before, after = random.normal(size=12), random.normal(1.0, 1.0, size=12)
        wrong += any(
            p_value_within_margin(before[:seeds], after[:seeds], 1.0)
            < level_per_evaluation(evaluation_count)
            for seeds in (3, 6, 12)
        )
    assert wrong / 1500 <= 0.05


def test_a_budget_is_seeds_or_a_time() -> None:
    assert parse_budget("48") == SeedBudget(48)
    assert parse_budget("10m") == SeedBudget(30, 600.0)
    assert [str(parse_budget(text)) for text in ("48", "10m")] == ["48", "600s"]

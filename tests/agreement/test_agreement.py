# SPDX-License-Identifier: MIT
"""Tests that the simulator agrees with the kernel on Spike; part of `dev bench agreement --full`.

The cells cover each policy and preset, 1 to 5 CPUs, and experiments of both studies. `pytest -s`
prints the difference of each figure. A cell that is off fails, unless known.csv gives a reason or
microseconds decide (schedlab.analysis.agreement.variants). A cell that has a reason but is near
also fails.
"""

from __future__ import annotations

import pytest

from schedlab.analysis.agreement.cells import KERNEL, SIMULATOR
from schedlab.analysis.agreement.known import JudgedCell, wrong_cells
from schedlab.analysis.agreement.plan import (
    ComparedRun,
    compared_experiment,
    compared_policies,
    is_random,
)
from schedlab.analysis.agreement.run import measure_agreement
from schedlab.analysis.agreement.text import (
    HEADINGS,
    cell_row,
    policy_bias_lines,
    verdict_counts_text,
)
from schedlab.base.toolchain.policies import parse_choices, read_catalogue
from schedlab.studies.experiments import ALL_CPUS

pytestmark = [pytest.mark.spike, pytest.mark.xdist_group("agreement")]

POLICIES = tuple(str(policy) for policy in compared_policies(full=True))
SHORT = (
    "s1-timing-cpu-heavy",
    "s1-timing-switch",
    "s1-priority-io-bound",
    "s1-timing-starvation",
    "s1-timing-creation",
    "s1-priority-mixed",
    "s1-timing-short",
    "s1-priority-starvation",
    "s1-timing-io-bound",
    "s1-timing-mixed",
)
"""Experiments of study 1; each takes Spike at most a second."""
OF_STUDY_4 = ("s4-mixed-2", "s4-mixed-6")
SHARES = (
    ("s1-lottery-low", "rr", 1),
    ("s1-lottery-basic", "stride", 3),
    ("s1-lottery-grouped", "lottery", 2),
    ("s1-lottery-starve", "wrr", 5),
    ("s1-lottery-mixed", "stride", 4),
)
"""Share experiments, which end with their measurement window."""
SEEDS = {KERNEL: 2, SIMULATOR: 8}
"""Seeds per machine for policies that draw at random."""


def setups() -> list[tuple[str, str, int]]:
    """Returns (experiment, policy, CPUs): two per policy, one per preset, and the share
    experiments.

    The CPU counts alternate, so that neighbouring policies run on different ones.
    """
    configurations = []
    for number, policy in enumerate(POLICIES):
        chosen = (
            SHORT[2 * number % len(SHORT)],
            SHORT[(2 * number + 1) % len(SHORT)],
            OF_STUDY_4[number % 2],
        )
        places = (2 * (number % 2),) if ":" in policy else (number % 2, 2)
        for place in places:
            experiment = chosen[place]
            cpus = 1 + (number + number // len(ALL_CPUS) + 2 * place) % len(ALL_CPUS)
            configurations.append((experiment, policy, cpus))
    return [*configurations, *SHARES]


def cases(machine: str) -> list[ComparedRun]:
    return [
        ComparedRun(compared_experiment(experiment, "quick"), parse_choices(policy)[0], cpus, seed)
        for experiment, policy, cpus in setups()
        for seed in range(1, 1 + (SEEDS[machine] if is_random(policy) else 1))
    ]


def test_all_policies_cpus_and_studies_are_covered() -> None:
    names = {
        name
        for policy in read_catalogue().values()
        for name in (policy.name, *(f"{policy.name}:{preset}" for preset in policy.presets))
    }
    assert set(POLICIES) == names
    assert {cpus for _, _, cpus in setups()} == set(ALL_CPUS)
    experiments = {experiment for experiment, _, _ in setups()}
    assert {*SHORT, *OF_STUDY_4} < experiments


@pytest.fixture(scope="module")
def judged_cells(tmp_path_factory: pytest.TempPathFactory) -> list[JudgedCell]:
    folder = tmp_path_factory.mktemp("agreement")
    return measure_agreement(folder, cases(KERNEL), cases(SIMULATOR))


def test_simulator_and_kernel_agree(judged_cells: list[JudgedCell]) -> None:
    assert len(judged_cells) >= 2 * len(setups())
    for words in (HEADINGS, *(cell_row(cell) for cell in judged_cells)):
        print("  ".join(f"{word:>12}" for word in words))
    print(verdict_counts_text(judged_cells), *policy_bias_lines(judged_cells), sep="\n")
    assert not wrong_cells(judged_cells), "\n".join(
        "  ".join(cell_row(cell)) for cell in wrong_cells(judged_cells)
    )


def test_most_cells_can_be_decided(judged_cells: list[JudgedCell]) -> None:
    """At least three quarters of the cells are near; noise does not hide them."""
    assert sum(cell.judgement == "near" for cell in judged_cells) > 0.75 * len(judged_cells)

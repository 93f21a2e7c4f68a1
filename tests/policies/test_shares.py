# SPDX-License-Identifier: MIT
"""Tests that CPU shares equal the ideal share, on any number of CPUs, in any mix of tickets
or weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from policy_build import HOST, WARNINGS, run
from schedlab.paths import ROOT

pytestmark = pytest.mark.xdist_group("policy-shares")


@dataclass
class Share:
    """A group's share in one test: the mean over seeds, in percent and percentage points."""

    test: str
    cpus: int
    group: int
    tickets: int
    share: float
    ideal: float
    error: float
    standard_error: float


@dataclass
class Report:
    """The output of tests/policies/shares.c; moves are per 1,000 ticks and CPU."""

    shares: list[Share]
    moves: dict[tuple[str, int], float]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shares")
    names = ("rr", "wrr", "lottery", "stride", "studies/study-lottery")
    policies = [ROOT / f"policies/{name}.c" for name in names]
    table = folder / "table.c"
    table.write_text(run("sh", "tools/make_policy_table.sh", *map(str, policies)).stdout)
    output = folder / "shares"
    sources = [
        ROOT / "tests/policies/shares.c",
        ROOT / "policies/support/registry.c",
        table,
        *policies,
    ]
    result = run(
        *(*HOST, "-std=c17", "-O2", *WARNINGS, "-I."),
        *(*map(str, sources), "-lm", "-o", str(output)),
    )
    assert result.returncode == 0, result.stderr
    return output


def report(program: Path, *arguments: str) -> Report:
    result = run(str(program), *arguments)
    assert result.returncode == 0, result.stderr
    parsed_report = Report([], {})
    for line in result.stdout.splitlines():
        kind, test, cpus, *rest = line.split()
        if kind == "moves":
            parsed_report.moves[test, int(cpus)] = float(rest[0])
        else:
            group, tickets, *figures = rest
            parsed_report.shares.append(
                Share(test, int(cpus), int(group), int(tickets), *map(float, figures))
            )
    return parsed_report


@pytest.fixture(scope="module")
def long_report(program: Path) -> Report:
    return report(program, "studies", "lottery", "10000", "8")


def test_shares_of_the_studies_tests(long_report: Report) -> None:
    assert len(long_report.shares) == 5 * (3 + 4 + 3 + 3 + 3 + 4)
    wrong = [share for share in long_report.shares if abs(share.error) > 0.5]
    assert not wrong


def test_few_move_and_nobody_does_if_all_is_even(long_report: Report) -> None:
    even = [
        *(("low-process-count", cpus) for cpus in range(1, 6)),
        *(("starvation-check", cpus) for cpus in range(1, 6)),
        *(("grouped-ticket-levels", cpus) for cpus in (1, 2, 5)),
        *(("basic-fairness", cpus) for cpus in (1, 2)),
    ]
    assert not [test for test in even if long_report.moves[test] > 0]
    limits = {"mixed-load": 120.0}  # where tasks wake and find another CPU idle
    wrong = {
        test: moves for test, moves in long_report.moves.items() if moves > limits.get(test[0], 20)
    }
    assert not wrong


def test_random_mixes(program: Path) -> None:
    result = report(program, "random", "lottery", "10000", "2", "40")
    assert len(result.moves) == 40
    wrong = [
        share
        for share in result.shares
        if abs(share.error) > 1 or abs(share.error) > 4 * share.standard_error + 0.05
    ]
    assert not wrong
    assert max(result.moves.values()) < 120


@pytest.mark.parametrize("policy", ["stride", "wrr"])
def test_random_mixes_without_chance(program: Path, policy: str) -> None:
    result = report(program, "random", policy, "10000", "1", "30")
    assert len(result.moves) == 30
    assert max(abs(share.error) for share in result.shares) < 0.2
    assert max(result.moves.values()) < 40

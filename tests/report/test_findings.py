# SPDX-License-Identifier: MIT
"""Tests a report's findings: they are counted from the comparisons on its pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import vl_convert

from kept_runs import MS, keep_figures
from schedlab.analysis.comparison.measures import MEASURES_BY_NAME
from schedlab.analysis.comparison.suites import Suite, compared_suites
from schedlab.report.findings import (
    compute_findings,
    count_score,
    goal_measures,
    rankable_suites,
    seeds_for_ties,
    seeds_to_decide,
)
from schedlab.report.headlines import goals_chart
from schedlab.report.specifications import page_specification
from schedlab.runs.collection import read_collection

TURNAROUND = MEASURES_BY_NAME["turnaround"]
POLICIES = ("rr", "mlfq", "lottery")
STEADY = (0.0, 0.1, 0.2, 0.1)
"""The seeds' offsets, the same for all policies."""


def keep(folder: Path, experiment: str, means: dict[str, tuple[float, ...]], **more: Any) -> None:
    """Writes runs with these turnarounds in ms, one for each seed."""
    for policy, values in means.items():
        for seed, value in enumerate(values, 1):
            keep_figures(
                folder,
                experiment=experiment,
                policy=policy,
                seed=seed,
                turnaround_mean_ns=value * MS,
                **more,
            )


def around(mean: float, by: tuple[float, ...] = STEADY) -> tuple[float, ...]:
    return tuple(mean + offset for offset in by)


def texts(suites: list[Suite]) -> list[str]:
    return [finding.text for finding in compute_findings(suites)]


def suites_in(folder: Path) -> list[Suite]:
    return compared_suites(read_collection([folder]))


def test_a_finding_has_the_largest_gain_and_its_price(tmp_path: Path) -> None:
    for test, fast in (("s3-mixed", 5), ("s3-cpu", 2)):
        for policy, turnaround, response in (("rr", 10, 3), ("mlfq", fast, 9), ("lottery", 8, 5)):
            for seed, value in enumerate(around(turnaround), 1):
                keep_figures(
                    tmp_path,
                    experiment=test,
                    policy=policy,
                    seed=seed,
                    turnaround_mean_ns=value * MS,
                    response_mean_ns=around(response)[seed - 1] * MS,
                )
    difference, general = compute_findings(suites_in(tmp_path))
    assert difference.text == (
        "**Under MLFQ, a task ends after 2.10 ms on average instead of 10.1 ms under round-robin.**"
        " But a new task first runs after 9.10 ms on average instead of 3.10 ms."
        " (Study 3, CPU-bound, 1 CPU. Of 2 comparisons of this metric, it is the winner or tied for best in 2.)"
    )
    assert difference.suite and difference.suite.experiment == "s3-cpu"
    assert difference.policies == ("mlfq", "rr")
    assert general.text.startswith(
        "**4 of 4 comparisons have a winner; 0 have policies tied for best.**"
    )


def test_a_gain_that_is_not_significant_is_no_finding(tmp_path: Path) -> None:
    keep(tmp_path, "s3-mixed", {"rr": around(10), "mlfq": (1, 19, 1, 18), "lottery": around(10)})
    (general,) = compute_findings(suites_in(tmp_path))
    assert general.measure is None


def test_differences_below_a_tick_are_no_finding(tmp_path: Path) -> None:
    keep(tmp_path, "s3-mixed", {"rr": around(0.5), "mlfq": around(0.1), "lottery": around(0.4)})
    assert [finding.measure for finding in compute_findings(suites_in(tmp_path))] == [None]


def test_a_policy_that_ran_seldom_has_no_finding(tmp_path: Path) -> None:
    for test in ("s3-mixed", "s3-cpu", "s3-io"):
        keep(tmp_path, test, {"rr": around(10), "mlfq": around(5), "lottery": around(8)})
    keep(tmp_path, "s3-io", {"stride": around(1)})
    assert compute_findings(suites_in(tmp_path))[0].policies == ("mlfq", "rr")


def test_seeds_that_would_settle_ties_are_proposed(tmp_path: Path) -> None:
    """One tie needs 14 seeds, as below; the other tie's policies are less than 1 % apart."""
    scattered = (11.0, 13.0, 15.0, 9.0)
    keep(tmp_path, "s3-mixed", {"rr": (10.0,) * 4, "mlfq": scattered, "lottery": (30.0,) * 4})
    keep(tmp_path, "s3-cpu", {"rr": around(4), "mlfq": around(5), "lottery": around(4.01)})
    text = compute_findings(suites_in(tmp_path))[-1].text
    assert text.startswith("**0 of 2 comparisons have a winner; 2 have policies tied for best.**")
    assert "Four seeds are rarely enough: about 20 seeds would settle 1 of the ties" in text
    assert "In 1 tie, policies differ by less than 1 %" in text


@pytest.mark.parametrize(("policies", "seeds"), [(("rr", "mlfq"), 4), (POLICIES, 1)])
def test_no_findings_without_decided_contests(
    tmp_path: Path, policies: tuple[str, ...], seeds: int
) -> None:
    keep(tmp_path, "s3-mixed", {policy: around(5)[:seeds] for policy in policies})
    suites = suites_in(tmp_path)
    assert compute_findings(suites) == []
    assert goals_chart(suites) is None


def test_seeds_are_counted_by_how_far_and_how_scattered_differences_are(tmp_path: Path) -> None:
    """Differences of 1, 3, 5 and -1 ms have mean 2 and deviation 2.58. By the table of the
    normal distribution, ((1.960 + 0.842) * 2.582 / 2)^2 = 13.09 for three policies.
    """
    scattered = (11.0, 13.0, 15.0, 9.0)
    keep(tmp_path, "s3-mixed", {"rr": (10.0,) * 4, "mlfq": scattered, "lottery": (30.0,) * 4})
    (suite,) = suites_in(tmp_path)
    assert suite.best_policies(TURNAROUND) == ["rr", "mlfq"]
    assert seeds_to_decide(suite, TURNAROUND) == 14
    assert seeds_for_ties([suite], TURNAROUND) == [14]


def test_the_strip_has_what_the_findings_count(tmp_path: Path) -> None:
    keep(tmp_path, "s3-mixed", {"rr": around(10), "mlfq": around(5), "lottery": around(8)},
         wakeup_latency_median_ns=1.0 * MS)  # fmt: skip
    keep(tmp_path, "s3-cpu", {"rr": around(4), "mlfq": around(5), "lottery": around(4.01)})
    suites = suites_in(tmp_path)
    chart = goals_chart(suites)
    assert chart
    for row in chart.data.iter_rows(named=True):
        policy_score = count_score(suites, row["policy"], TURNAROUND)
        assert row["goal"] == "turnaround, mean"
        assert (row["suites"], row["winner"]) == (2, policy_score.wins)
        assert (row["tied"], row["worse"]) == (
            policy_score.wins_and_ties - policy_score.wins,
            2 - policy_score.wins_and_ties,
        )
        assert row["open"] == "1 tied, 1 by less than 1 %"
    assert [goal.name for goal in goal_measures(rankable_suites(suites))] == ["turnaround"]
    picture = vl_convert.vegalite_to_svg(page_specification(chart))
    assert picture.count("1 of 2") >= len(POLICIES)


def values(names: tuple[str, ...], size: float) -> dict[str, Any]:
    return {name: size * (MS if name.endswith("ns") else 0.1) for name in names}


def test_names_are_shown_and_do_nothing(tmp_path: Path) -> None:
    names = ("it's", "a`b*c`", '"][0]+"<script>')
    keep(tmp_path, "s3-mixed", {name: around(5 + index) for index, name in enumerate(names)})
    suites = suites_in(tmp_path)
    assert "**Under it's, a task ends after" in texts(suites)[0].replace("\\", "")
    chart = goals_chart(suites)
    assert chart
    picture = vl_convert.vegalite_to_svg(page_specification(chart))
    assert "<script>" not in picture
    for shown in ("it's", "a`b*c`", "][0]+"):
        assert shown in picture

# SPDX-License-Identifier: MIT
"""What a report says first: it is counted from the contests that its pages show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import vl_convert

from kept_runs import MS, keep_figures
from schedlab.analysis.comparison.measures import BY_NAME
from schedlab.analysis.comparison.suites import Suite, suites
from schedlab.report.findings import (
    contests,
    findings,
    goals,
    score,
    seeds_to_decide,
    undecided,
)
from schedlab.report.headlines import strip
from schedlab.report.specifications import for_page
from schedlab.runs.collection import read

TURNAROUND = BY_NAME["turnaround"]
POLICIES = ("rr", "mlfq", "lottery")
STEADY = (0.0, 0.1, 0.2, 0.1)
"""What seeds add, alike for all."""


def keep(folder: Path, experiment: str, means: dict[str, tuple[float, ...]], **more: Any) -> None:
    """Runs with these turnarounds in ms, one for each seed."""
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
    return tuple(mean + each for each in by)


def texts(found: list[Suite]) -> list[str]:
    return [each.text for each in findings(found)]


def found_in(folder: Path) -> list[Suite]:
    return suites(read([folder]))


def test_several_contests_are_counted(tmp_path: Path) -> None:
    keep(tmp_path, "s3-mixed", {"rr": around(10), "mlfq": around(5), "lottery": around(8)})
    keep(tmp_path, "s3-cpu", {"rr": around(4), "mlfq": around(5), "lottery": around(4.01)})
    found = found_in(tmp_path)
    assert [score(found, each, TURNAROUND).possible for each in POLICIES] == [1, 1, 1]
    assert [score(found, each, TURNAROUND).wins for each in POLICIES] == [0, 1, 0]
    keep(tmp_path, "s3-io", {"rr": around(9), "mlfq": around(5), "lottery": around(8)})
    general, goal = texts(found_in(tmp_path))
    assert general.startswith("**No policy is best at everything.** Of 3 contests ")
    assert "2 have one winner" in general
    assert goal == (
        "**Turnaround, mean:** `mlfq` (2 of 3, alone in 2) may be the best most often;"
        " `rr` (1 of 3) and `lottery` (1 of 3) least often."
    )
    keep(tmp_path, "s3-io", {"stride": around(1)})
    keep(tmp_path, "s3-mixed", {"stride": around(1)})
    assert "`stride`" not in texts(found_in(tmp_path))[1]


def test_a_goal_of_policies_that_ran_seldom_is_passed_over(tmp_path: Path) -> None:
    """Only suites of others have it."""
    for test in ("s3-mixed", "s3-cpu", "s3-io"):
        keep(tmp_path, test, {"rr": around(10), "mlfq": around(5), "lottery": around(8)})
    for place, policy in enumerate(("stride", "wrr", "edf")):
        waits = {"wakeup_latency_median_ns": (1.0 + place) * MS}
        keep(tmp_path, "mine", {policy: around(7)}, **waits)
    assert [each.measure for each in findings(found_in(tmp_path))] == [None, TURNAROUND]


@pytest.mark.parametrize(("policies", "seeds"), [(("rr", "mlfq"), 4), (POLICIES, 1)])
def test_nothing_is_found_where_nothing_can_be_told(
    tmp_path: Path, policies: tuple[str, ...], seeds: int
) -> None:
    keep(tmp_path, "s3-mixed", {each: around(5)[:seeds] for each in policies})
    found = found_in(tmp_path)
    assert findings(found) == []
    assert strip(found) is None


def test_seeds_are_counted_by_how_far_and_how_scattered_differences_are(tmp_path: Path) -> None:
    """Differences of 1, 3, 5 and -1 ms, mean 2, deviation 2.58: by the table of the normal distribution
    ((1.960 + 0.842) * 2.582 / 2)^2 = 13.09 for three policies."""
    scattered = (11.0, 13.0, 15.0, 9.0)
    keep(tmp_path, "s3-mixed", {"rr": (10.0,) * 4, "mlfq": scattered, "lottery": (30.0,) * 4})
    (suite,) = found_in(tmp_path)
    assert suite.as_good(TURNAROUND) == ["rr", "mlfq"]
    assert seeds_to_decide(suite, TURNAROUND) == 14
    assert undecided([suite], TURNAROUND) == [14]


def test_the_strip_has_what_the_findings_count(tmp_path: Path) -> None:
    keep(tmp_path, "s3-mixed", {"rr": around(10), "mlfq": around(5), "lottery": around(8)},
         wakeup_latency_median_ns=1.0 * MS)  # fmt: skip
    keep(tmp_path, "s3-cpu", {"rr": around(4), "mlfq": around(5), "lottery": around(4.01)})
    found = found_in(tmp_path)
    chart = strip(found)
    assert chart
    for row in chart.data.iter_rows(named=True):
        own = score(found, row["policy"], TURNAROUND)
        assert row["goal"] == "turnaround, mean"
        assert (row["suites"], row["alone"], row["may_be_best"]) == (2, own.wins, own.possible)
        assert row["open"] == "1 open, 1 by less than 1 %"
    assert [each.name for each in goals(contests(found))] == ["turnaround"]
    picture = vl_convert.vegalite_to_svg(for_page(chart))
    assert picture.count("1 of 2") >= len(POLICIES)


def values(names: tuple[str, ...], size: float) -> dict[str, Any]:
    return {name: size * (MS if name.endswith("ns") else 0.1) for name in names}


def test_names_are_shown_and_do_nothing(tmp_path: Path) -> None:
    names = ("it's", "a`b*c`", '"][0]+"<script>')
    keep(tmp_path, "s3-mixed", {each: around(5 + place) for place, each in enumerate(names)})
    found = found_in(tmp_path)
    assert "**Turnaround, mean:** `it's` is best" in texts(found)[1]
    chart = strip(found)
    assert chart
    picture = vl_convert.vegalite_to_svg(for_page(chart))
    assert "<script>" not in picture
    for shown in ("it's", "a`b*c`", "][0]+"):
        assert shown in picture

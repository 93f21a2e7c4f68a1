# SPDX-License-Identifier: MIT
"""Tests `./schedlab compare`: which runs are matched, and what the comparison says about them."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from conftest import Command
from kept_runs import MS, keep_figures
from schedlab.analysis.comparison.compare import (
    DEFAULT_THRESHOLD,
    Comparison,
    MatchedConfiguration,
    MetricChange,
    compare,
)
from schedlab.analysis.comparison.listing import comparison_listing
from schedlab.runs.collection import read_collection


def compared(
    before: Path, after: Path, *metrics: str, matters: float = DEFAULT_THRESHOLD
) -> Comparison:
    return compare(read_collection([before]), read_collection([after]), metrics, matters)


def only(comparison: Comparison) -> MatchedConfiguration:
    assert len(comparison.matches) == 1
    return comparison.matches[0]


def row(match: MatchedConfiguration, metric: str, group: str | None = None) -> MetricChange:
    rows = [
        candidate
        for candidate in match.rows
        if candidate.measure.name == metric and candidate.group == group
    ]
    assert len(rows) == 1
    return rows[0]


def printed_text(comparison: Comparison, everything: bool = False) -> str:
    """Returns the comparison as a terminal shows it."""
    console = Console(file=io.StringIO(), width=200, highlight=False)
    for part in comparison_listing(comparison, everything):
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def seeds(folder: Path, turnarounds: Sequence[float], **options: Any) -> Path:
    """Keeps runs with seeds 1, 2 … and these turnarounds in ms."""
    for number, turnaround in enumerate(turnarounds):
        keep_figures(folder, seed=number + 1, turnaround_mean_ns=turnaround * MS, **options)
    return folder


def test_across_policies_by_seed(tmp_path: Path) -> None:
    before = seeds(tmp_path / "a", [10.0, 20.0, 30.0, 40.0, 50.0], policy="rr")
    after = seeds(tmp_path / "b", [11.0, 21.1, 31.0, 40.9, 51.0], policy="mlfq")
    comparison = compared(before, after)
    assert comparison.across == ("policy",)
    match = only(comparison)
    assert match.is_paired and match.seeds == (1, 2, 3, 4, 5)
    turnaround = row(match, "turnaround")
    assert turnaround.difference.change == pytest.approx(1.0 * MS)
    assert turnaround.verdict == "worse"
    assert row(match, "response").verdict == "same"
    text = printed_text(comparison)
    assert "rr → mlfq" in text and "5 seeds, paired" in text and "+1.00 [0.91, 1.09] ms" in text
    assert "response, mean" not in text
    assert "response, mean" in printed_text(comparison, everything=True)


def test_what_is_more_than_chance_may_be_too_little(tmp_path: Path) -> None:
    before = seeds(tmp_path / "a", [100.0, 200.0, 300.0, 400.0])
    after = seeds(tmp_path / "b", [100.5, 200.5, 300.5, 400.5], policy="mlfq")
    comparison = compared(before, after)
    assert row(only(comparison), "turnaround").verdict == "slight"
    assert "turnaround, mean" not in printed_text(comparison)
    assert "1 below the threshold" in printed_text(comparison)
    assert "worse, below the threshold" in printed_text(comparison, everything=True)
    strict = compared(before, after, matters=0.001)
    assert row(only(strict), "turnaround").verdict == "worse"


def test_a_fraction_of_a_point_is_too_little(tmp_path: Path) -> None:
    """A difference of a fraction of a percentage point is slight, however large the ratio is."""
    sides = [
        seeds(tmp_path / name, [10.0] * 4, policy=name, share_error=error)
        for name, error in (("rr", 0.001), ("mlfq", 0.05), ("wrr", 0.2))
    ]
    comparisons = {side.name: compared(sides[0], side) for side in sides[1:]}
    verdicts = {
        name: next(
            metric_row.verdict
            for metric_row in only(match).rows
            if metric_row.measure.name == "share-error"
        )
        for name, match in comparisons.items()
    }
    assert verdicts == {"mlfq": "slight", "wrr": "worse"}


def test_the_warm_up_may_be_left_out(tmp_path: Path) -> None:
    """The warm-up is the first tenth: 2 of 20 jobs, which arrive on an idle machine."""
    first, second = ([MS, MS, *([(5 + more) * MS] * 18)] for more in (0, 1))
    before = seeds(tmp_path / "a", [10.0] * 3, responses=first)
    after = seeds(tmp_path / "b", [10.0] * 3, policy="mlfq", responses=second)
    difference = row(only(compared(before, after, "steady-response")), "steady-response").difference
    assert (difference.before.mean, difference.after.mean) == (5 * MS, 6 * MS)


def two_that_differ(folder: Path) -> tuple[Path, Path]:
    """Keeps runs of two policies that differ in turnaround, and at random in three other
    metrics."""
    for seed, (first, second) in enumerate([(10.0, 11.0), (20.0, 21.5), (30.0, 32.0)]):
        other = 0.1 * (-1) ** seed
        keep_figures(folder / "a", seed=seed, turnaround_mean_ns=first * MS)
        keep_figures(
            folder / "b",
            seed=seed,
            policy="mlfq",
            turnaround_mean_ns=second * MS,
            response_mean_ns=(1 + other) * MS,
            waiting_mean_ns=(5 - other) * MS,
            throughput_per_second=100 + other,
        )
    return folder / "a", folder / "b"


def test_many_metrics_find_something_by_chance(tmp_path: Path) -> None:
    """About 1.5 ms is significant as a single metric, but not as one of many."""
    before, after = two_that_differ(tmp_path)
    turnaround = row(only(compared(before, after)), "turnaround")
    assert turnaround.difference.p_value is not None and turnaround.difference.p_value < 0.05
    assert turnaround.p_value is not None and turnaround.p_value > 0.05
    assert turnaround.verdict == "perhaps"
    assert "perhaps worse" in printed_text(compared(before, after))


def test_one_seed_is_exact_and_does_not_generalize(tmp_path: Path) -> None:
    before = seeds(tmp_path / "a", [10.0])
    after = seeds(tmp_path / "b", [12.0], policy="mlfq")
    comparison = compared(before, after)
    assert row(only(comparison), "turnaround").verdict == "one seed"
    text = printed_text(comparison)
    assert "worse with this seed" in text and "+2 ms" in text
    assert "unknown for other seeds" in text and "seeds=10" in text
    little = compared(before, seeds(tmp_path / "c", [10.05], policy="mlfq"))
    assert row(only(little), "turnaround").verdict == "slight"


def test_identical_traces_are_the_same(tmp_path: Path) -> None:
    before = seeds(tmp_path / "a", [10.0, 11.0], trace=b"alike")
    after = seeds(
        tmp_path / "b", [10.0, 11.0], trace=b"alike", manifest={"commit": "fedcba9876543210"}
    )
    comparison = compared(before, after)
    assert only(comparison).is_identical and only(comparison).rows == ()
    text = printed_text(comparison)
    assert "the same, byte for byte" in text
    assert "commit 0123456789ab" in text and "commit fedcba987654" in text


def test_a_failed_run_is_shown_and_not_compared(tmp_path: Path) -> None:
    before = seeds(tmp_path / "a", [10.0, 20.0])
    after = seeds(tmp_path / "b", [10.0], policy="mlfq")
    keep_figures(tmp_path / "b", policy="mlfq", seed=2, status="panic")
    comparison = compared(before, after)
    assert [run.status for run in only(comparison).failed_runs] == ["panic"]
    assert only(comparison).rows == ()
    text = printed_text(comparison)
    assert "not compared" in text and "after, seed 2: panic: it went wrong" in text


def test_a_failed_run_that_is_left_out_does_not_matter(tmp_path: Path) -> None:
    before = seeds(tmp_path / "a", [10.0, 20.0])
    after = seeds(tmp_path / "b", [11.0, 21.0], policy="mlfq")
    keep_figures(tmp_path / "b", policy="mlfq", seed=3, status="panic")
    match = only(compared(before, after))
    assert match.excluded_seeds == (3,) and match.failed_runs == ()
    assert row(match, "turnaround").difference.change == pytest.approx(1.0 * MS)


def test_other_seeds_are_not_paired(tmp_path: Path) -> None:
    before = seeds(tmp_path / "a", [10.0, 11.0])
    after = tmp_path / "b"
    for seed in (7, 8, 9):
        keep_figures(after, seed=seed, policy="mlfq", turnaround_mean_ns=(90.0 + seed) * MS)
    comparison = compared(before, after)
    assert not only(comparison).is_paired
    turnaround = row(only(comparison), "turnaround").difference
    assert (turnaround.before.count, turnaround.after.count) == (2, 3)
    assert "not paired" in printed_text(comparison)


def test_setups_are_matched_with_their_like(tmp_path: Path) -> None:
    before, after = tmp_path / "a", tmp_path / "b"
    for cpus in (1, 2):
        keep_figures(before, cpus=cpus, policy="rr")
        keep_figures(after, cpus=cpus, policy="rr", turnaround_mean_ns=3 * MS)
    keep_figures(before, cpus=4, policy="rr")
    keep_figures(after, cpus=2, policy="mlfq")
    comparison = compared(before, after)
    assert comparison.across == ()
    assert [(m.before.setup.cpus, m.after.setup.cpus) for m in comparison.matches] == [
        (1, 1),
        (2, 2),
    ]
    assert [unmatched.setup.cpus for unmatched in comparison.unmatched_before] == [4]
    assert [unmatched.setup.policy for unmatched in comparison.unmatched_after] == ["mlfq"]
    text = printed_text(comparison)
    assert "Without a partner, before: program, rr, 4 CPUs" in text
    assert "Without a partner, after: program, mlfq, 2 CPUs" in text


def test_across_a_tunable(tmp_path: Path) -> None:
    keep_figures(tmp_path / "a")
    keep_figures(tmp_path / "b", manifest={"tunables": {"slice": 5}}, response_mean_ns=9.0 * MS)
    comparison = compared(tmp_path / "a", tmp_path / "b")
    assert comparison.across == ("tunables",)
    assert "no tunables → slice=5" in printed_text(comparison)


def test_printed_values_of_programs(tmp_path: Path) -> None:
    for policy, base_count in (("rr", 100), ("mlfq", 200)):
        for seed in (1, 2, 3):
            printed_values = [
                ("events", base_count + seed),
                ("elapsed", 10**9),
                ("slept", 4),
                ("slept", 8),
            ]
            keep_figures(
                tmp_path / policy, policy=policy, seed=seed, reported_values=printed_values
            )
    match = only(compared(tmp_path / "rr", tmp_path / "mlfq"))
    events = row(match, "events")
    assert (events.difference.before.mean, events.difference.after.mean) == (102, 202)
    assert events.verdict == "better"
    slept = row(match, "told-slept")
    assert slept.difference.before.mean == 6 and slept.verdict == "same"
    alone = only(compared(tmp_path / "rr", tmp_path / "mlfq", "told-slept"))
    assert [metric_row.measure.name for metric_row in alone.rows] == ["told-slept"]


def test_the_command(schedlab: Command, tmp_path: Path) -> None:
    seeds(tmp_path / "a", [30.0, 31.0, 32.1])
    seeds(tmp_path / "b", [1.0, 2.0, 3.0], policy="mlfq")
    result = schedlab("compare", str(tmp_path / "a"), str(tmp_path / "b"))
    assert result.returncode == 0 and "turnaround, mean" in result.stdout
    result = schedlab(
        "compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json", "--metric", "turnaround"
    )
    content = json.loads(result.stdout)
    assert content["across"] == ["policy"]
    [setup] = content["setups"]
    assert setup["seeds"] == [1, 2, 3]
    overall = setup["metrics"][0]
    assert overall["metric"] == "turnaround" and overall["after"]["mean"] == 2 * MS
    assert overall["improves"] is True


@pytest.mark.parametrize(
    "arguments",
    [
        ["{}/a", "{}/none"],
        ["{}/a", "{}"],
        ["{}/a"],
        ["{}/a", "{}/a", "--metric", "x"],
        ["{}/a", "{}/a", "--matters", "much"],
    ],
)
def test_wrong_usage(schedlab: Command, tmp_path: Path, arguments: list[str]) -> None:
    keep_figures(tmp_path / "a")
    (tmp_path / "empty").mkdir()
    places = [argument.format(tmp_path) for argument in arguments]
    if arguments == ["{}/a", "{}"]:
        places[1] = str(tmp_path / "empty")
    result = schedlab("compare", *places)
    assert result.returncode == 2 and result.stderr and "Traceback" not in result.stderr

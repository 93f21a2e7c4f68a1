# SPDX-License-Identifier: MIT
"""Tests the page that compares all policies: included and excluded policies, and charts."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import vl_convert

from kept_runs import MS, keep_figures
from schedlab.analysis.comparison.measures import MEASURES_BY_NAME
from schedlab.analysis.comparison.suites import COMPARED_MEASURES, Suite, compared_suites
from schedlab.report import comparison
from schedlab.report.model import Chart, Page, Table, Text
from schedlab.report.specifications import page_specification, paper_specification
from schedlab.runs.collection import read_collection
from schedlab.studies.experiments import EXPERIMENTS

TURNAROUND = MEASURES_BY_NAME["turnaround"]


def fill(
    folder: Path, experiment: str, turnarounds: dict[str, float], seeds: int = 4, **more: Any
) -> None:
    """Keeps runs of policies with these mean turnarounds in ms; a seed shifts all of them
    equally."""
    for policy, turnaround in turnarounds.items():
        for seed in range(1, seeds + 1):
            moved = turnaround + seed + 0.01 * ((seed * 7 + len(policy)) % 5)
            keep_figures(
                folder,
                experiment=experiment,
                policy=policy,
                seed=seed,
                turnaround_mean_ns=moved * MS,
                **more,
            )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fill(tmp_path, "s3-mixed", {"rr": 10, "mlfq": 5, "lottery": 5.01, "wrr": 30},
         wakeup_latency_median_ns=1.0 * MS, wakeup_latency_p99_ns=2.0 * MS)  # fmt: skip
    fill(tmp_path, "s3-cpu", {"mlfq": 7, "rr": 7.3, "stride": 9})
    fill(tmp_path, "s4-trace", {"rr": 3, "mlfq:allotment-boost": 4}, seeds=1)
    fill(tmp_path, "my-program -n 3", {"rr": 1, "mlfq": 2})
    return tmp_path


def page_of(folder: Path) -> Page:
    comparison_page = page_or_none(folder)
    assert comparison_page is not None
    return comparison_page


def page_or_none(folder: Path) -> Page | None:
    collection = read_collection([folder])
    return comparison.make_page(collection, compared_suites(collection))


def table(page: Page, name: str) -> Table:
    return next(block for block in page.blocks() if isinstance(block, Table) and block.name == name)


def suite(folder: Path, experiment: str) -> Suite:
    return next(
        candidate
        for candidate in compared_suites(read_collection([folder]))
        if candidate.experiment == experiment
    )


def test_who_is_out(folder: Path) -> None:
    mixed = suite(folder, "s3-mixed")
    assert mixed.policies == ("rr", "wrr", "lottery", "mlfq")
    assert mixed.policies_by_mean(TURNAROUND) == ["mlfq", "lottery", "rr", "wrr"]
    assert mixed.best_policies(TURNAROUND) == ["mlfq", "lottery"]
    assert mixed.ratio("wrr", TURNAROUND) == pytest.approx(32.5 / 7.5, rel=0.01)
    assert mixed.has_equal_values(MEASURES_BY_NAME["throughput"])


def test_less_than_one_percent_does_not_put_a_policy_out(tmp_path: Path) -> None:
    fill(tmp_path, "s3-cpu", {"rr": 1000, "mlfq": 1005, "wrr": 1050})
    cpu = suite(tmp_path, "s3-cpu")
    assert "mlfq" not in cpu.rankings["turnaround"].tied_for_best
    assert cpu.best_policies(TURNAROUND) == ["rr", "mlfq"]


def test_one_seed_puts_nobody_out(folder: Path) -> None:
    trace = suite(folder, "s4-trace")
    assert trace.rankings == {}
    assert trace.best_policies(TURNAROUND) == ["rr", "mlfq:allotment-boost"]
    rows = table(page_of(folder), "comparison-s4-trace").rows
    assert not any(cell.text.startswith("•") for row in rows for cell in row)


def test_a_failed_run_takes_its_policy_out_of_the_contest(folder: Path) -> None:
    for seed in range(1, 5):
        status = "panic" if seed == 3 else "success"
        keep_figures(folder, experiment="s3-cpu", policy="wrr", seed=seed, status=status,
             turnaround_mean_ns=0.1 * MS)  # fmt: skip
    cpu = suite(folder, "s3-cpu")
    assert cpu.failures == {"wrr": "seed 3: panic"}
    assert "wrr" not in cpu.policies_by_mean(TURNAROUND)
    rows = table(page_of(folder), "comparison-s3-cpu").rows
    row = next(row for row in rows if row[1].text == "wrr")
    assert {cell.tone for cell in row[2:]} == {"failed"}
    assert row[2].why == "seed 3: panic"


@pytest.mark.parametrize("status", ["success", "panic"])
def test_no_page_without_comparable_runs(tmp_path: Path, status: str) -> None:
    keep_figures(tmp_path, policy="rr", status=status)
    keep_figures(tmp_path, policy="mlfq", cpus=2, status=status)
    assert page_or_none(tmp_path) is None
    keep_figures(tmp_path / "failed", policy="rr", cpus=3, status="panic")
    keep_figures(tmp_path / "failed", policy="mlfq", cpus=3, status="panic")
    assert page_or_none(tmp_path) is None


def test_share_errors_count_only_while_processes_compete(tmp_path: Path) -> None:
    for policy, error in (("rr", 4.0), ("lottery", 1.0)):
        for seed in (1, 2):
            keep_figures(tmp_path, experiment="s1-lottery-low", policy=policy, seed=seed,
                 share_error=error + 0.01 * seed, finished=0)  # fmt: skip
            keep_figures(tmp_path, experiment="s3-cpu", policy=policy, seed=seed, share_error=error)
    share_error = MEASURES_BY_NAME["share-error"]
    low = suite(tmp_path, "s1-lottery-low")
    assert low.policies_by_mean(share_error) == ["lottery", "rr"]
    assert "turnaround" not in {measure.name for measure in low.measures}
    assert share_error not in suite(tmp_path, "s3-cpu").measures


def test_the_tables(folder: Path) -> None:
    page = page_of(folder)
    best = table(page, "comparison-best")
    texts = [[cell.text for cell in row] for row in best.rows]
    assert [row[0] for row in texts] == ["study3 cpu", "study3 mixed"]
    turnaround = [column.title for column in best.columns].index("turnaround, mean")
    assert [row[turnaround] for row in texts] == ["mlfq", "mlfq,\nlottery"]
    throughput = [column.title for column in best.columns].index("throughput")
    assert texts[0][throughput] == "alike"
    often = table(page, "comparison-best-of")
    by_policy = {row[0].text: row[1].text for row in often.rows}
    assert by_policy["mlfq"] == "2 of 2 (1)"
    assert by_policy["rr"] == "0 of 2"
    assert by_policy["stride"] == "0 of 1"
    means = table(page, "comparison-s3-mixed")
    row = next(row for row in means.rows if row[1].text == "mlfq")
    assert row[2].text.startswith("• 7.5") and "[" in row[2].text
    assert means.columns[2].title == "turnaround, mean, ms"
    data = means.data.filter((pl.col("policy") == "mlfq") & (pl.col("metric") == "turnaround"))
    assert data["mean"].to_list() == [pytest.approx(7.5 * MS, rel=0.01)]


def test_the_charts_are_drawn_with_what_can_be_chosen(folder: Path) -> None:
    charts = {block.name: block for block in page_of(folder).blocks() if isinstance(block, Chart)}
    assert set(charts) == {"comparison-means", "comparison-relative", "comparison-trade-off"}
    for chart in charts.values():
        for specification in (page_specification(chart), paper_specification(chart)):
            picture = vl_convert.vegalite_to_svg(specification)
            assert "mlfq" in picture
            options = [parameter["bind"]["options"] for parameter in specification["params"]]
            values = [parameter["value"] for parameter in specification["params"]]
            assert all(value in of for value, of in zip(values, options, strict=True))
        assert not chart.data.is_empty() and chart.description
    trade_off = vl_convert.vegalite_to_svg(paper_specification(charts["comparison-trade-off"]))
    words = re.findall(r"<text[^>]*>([^<]+)</text>", trade_off)
    across, up = (
        parameter["value"]
        for parameter in paper_specification(charts["comparison-trade-off"])["params"][1:]
    )
    titles = {measure.name.replace("-", "_"): measure.title for measure in COMPARED_MEASURES}
    assert sum(word.startswith(titles[across]) for word in words) == 1, "the axis names the metric"
    assert sum(word.startswith(titles[up]) for word in words) == 1


def test_what_the_length_of_a_turn_does(tmp_path: Path) -> None:
    """With three equal processes on one CPU, running one after the other takes 4 ÷ 6 of the
    turnaround."""
    for policy, turnaround, picked in (("rr", 60.0, 60), ("wrr", 40.0, 3), ("mlfq", 55.0, 20)):
        for seed in (1, 2):
            keep_figures(tmp_path, experiment="s3-cpu", policy=policy, seed=seed, selections=picked,
                 turnaround_mean_ns=(turnaround + 0.2 * seed) * MS, wakeups=0)  # fmt: skip
    page = page_of(tmp_path)
    slice_table = table(page, "comparison-turns")
    assert [row[0].text for row in slice_table.rows] == ["rr", "mlfq", "wrr"]
    assert [row[1].text for row in slice_table.rows] == ["1", "3", "20"]
    words = next(
        block.markdown
        for block in page.blocks()
        if isinstance(block, Text) and "equal work" in block.markdown
    )
    assert "3 processes" in words and "here 66.7 %" in words
    assert "`rr` has the highest mean, with time slices of 1 ms: 60.3 ms" in words
    assert "`wrr` has the longest time slices (20 ms): 40.3 ms, or 66.8 %" in words


def test_a_suite_of_few_policies_hides_no_distance(tmp_path: Path) -> None:
    """A suite with few policies does not remove the other policies from the distance table.

    Of the seven policies, none ran in the narrow suite.
    """
    policies = ("rr", "wrr", "lottery", "mlfq", "stride", "hybrid", "priority")
    many = {policy: 5.0 + index for index, policy in enumerate(policies)}
    fill(tmp_path, "s3-mixed", many)
    fill(tmp_path, "s5-linux-sysbench", {"fair": 5, "wrr:linux": 6, "lottery:linux": 7})
    rows = table(page_of(tmp_path), "comparison-distance").rows
    assert {row[0].text for row in rows} == set(many)


def test_what_repeats_an_experiment_on_a_slower_machine_is_no_suite(tmp_path: Path) -> None:
    for name in ("s3-cpu", "s3-cpu-on-their-costs"):
        fill(tmp_path, name, {"rr": 5, "mlfq": 6})
    assert [suite.experiment for suite in compared_suites(read_collection([tmp_path]))] == [
        "s3-cpu"
    ]


def test_suites_of_a_study_are_together_wherever_its_experiments_are_listed(tmp_path: Path) -> None:
    """Each study has one section, so a report cannot give two sections one name."""
    for name, experiment in EXPERIMENTS.items():
        if experiment.command:
            fill(tmp_path, name, {"rr": 5, "mlfq": 6}, seeds=1)
    suites = compared_suites(read_collection([tmp_path]))
    studies = [study for study, _ in groupby(suites, key=lambda suite: suite.study)]
    assert len(studies) > 3
    assert studies == sorted(set(studies), key=str)

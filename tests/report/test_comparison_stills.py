# SPDX-License-Identifier: MIT
"""On paper, each choice of a person's own workloads has a picture instead of one in which a reader chooses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from report_samples import line_chart
from schedlab.analysis.comparison.measures import BY_NAME
from schedlab.analysis.comparison.statistics import estimate
from schedlab.report import build
from schedlab.report.comparison_charts import chooser, trade_off
from schedlab.report.comparison_stills import each_own, means_of_own
from schedlab.report.model import Page, Report, Section
from schedlab.report.suites import Suite
from schedlab.studies.experiments import EXPERIMENTS

MEASURES = [BY_NAME[name] for name in ("turnaround", "overhead")]
VALUES = {"turnaround": (4e6, 6e6), "overhead": (0.01, 0.03)}


def suite(experiment: str, cpus: int, policies: tuple[str, ...] = ("rr", "mlfq")) -> Suite:
    """With two seeds; the second policy has twice the first one's values."""
    samples = {
        (policy, name): ([value * number for value in values], 0.0)
        for number, policy in enumerate(policies, start=1)
        for name, values in VALUES.items()
    }
    return Suite(
        experiment=experiment,
        cpus=cpus,
        tick_ns=1_000_000,
        machine="sim",
        title=experiment,
        policies=policies,
        seeds=(1, 2),
        failed={},
        samples=samples,
        means={key: estimate(values, (0, float("inf"))) for key, (values, _) in samples.items()},
    )


OF_A_STUDY = suite(next(iter(EXPERIMENTS)), 1)
OWN = [suite("mine", 1), suite("mine", 2), suite("other", 4)]


def test_each_metric_of_each_own_workload_has_a_chart() -> None:
    found = means_of_own([OF_A_STUDY, *OWN], MEASURES)
    assert [(chart.name, chart.title) for chart in found] == [
        ("turnaround-of-mine-sim-1ms", "mine: turnaround, mean"),
        ("overhead-of-mine-sim-1ms", "mine: overhead"),
        ("turnaround-of-other-sim-1ms", "other, 4 CPUs: turnaround, mean"),
        ("overhead-of-other-sim-1ms", "other, 4 CPUs: overhead"),
    ]
    means = found[0].data.sort("series", "x").select("series", "x", "mean").rows()
    assert means == [("mlfq", 1, 10), ("mlfq", 2, 10), ("rr", 1, 5), ("rr", 2, 5)]  # ms
    assert found[3].data.select("category", "mean").rows() == [
        ("rr", pytest.approx(2)),
        ("mlfq", pytest.approx(4)),
    ]  # percent
    assert means_of_own([OF_A_STUDY], MEASURES) == ()


def test_a_trade_off_has_one_for_each_own_suite() -> None:
    chart = trade_off([OF_A_STUDY, *OWN], MEASURES)
    found = each_own(chart, [OF_A_STUDY, *OWN])
    chosen = [
        {each["name"]: each["value"] for each in still.plain["params"]}["trade_suite"]
        for still in found
    ]
    assert chosen == ["mine, 1 CPU", "mine, 2 CPUs", "other, 4 CPUs"]
    assert {still.data["suite"].unique().item() for still in found} == set(chosen)


def test_the_first_metric_of_a_chooser_is_one_in_which_policies_differ() -> None:
    alike = OWN[0].samples["rr", "turnaround"]
    samples = {**OWN[0].samples, ("mlfq", "turnaround"): alike}
    chart = chooser([replace(OWN[0], samples=samples)], MEASURES)
    values = {each["name"]: each["value"] for each in chart.plain["params"]}
    assert values["metric"].startswith("overhead")


def test_they_stand_in_documents_for_paper_alone(tmp_path: Path) -> None:
    stills = (line_chart("of-rr", "Of rr"), line_chart("of-mlfq", "Of mlfq"))
    chart = replace(line_chart("any", "Choose"), still=stills)
    page = Page("first", "First", "Lead.", (Section("A", (line_chart("before"), chart)),))
    report = Report("r", (page,))
    build.write(report, tmp_path, ("html", "markdown"))
    text = (tmp_path / "report.md").read_text()
    assert "**Figure 2.1.** Of rr" in text and "**Figure 2.2.** Of mlfq" in text
    assert (
        "files/of-mlfq.svg" in text and "files/any.svg" not in text and '<a id="any"></a>' in text
    )
    html = (tmp_path / "index.html").read_text()
    assert 'id="any"' in html and "Of rr" not in html
    names = {path.name for path in (tmp_path / "files").iterdir()}
    assert {"any.svg", "of-rr.svg", "of-rr.csv", "of-mlfq.png"} <= names
    assert pl.read_csv(tmp_path / "files" / "of-rr.csv").height

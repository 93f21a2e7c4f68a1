# SPDX-License-Identifier: MIT
"""Tests that the first page's charts show the comparisons counted by its findings."""

from __future__ import annotations

from pathlib import Path

import vl_convert

from kept_runs import MS, keep_figures
from schedlab.analysis.comparison.suites import Suite, compared_suites
from schedlab.report.findings import clearest_suite, compute_findings, rankable_suites
from schedlab.report.headlines import CHARTS_MAX, headline_charts
from schedlab.report.specifications import page_specification
from schedlab.runs.collection import read_collection

FIGURES = {"rr": (20.0, 9.0), "mlfq": (10.0, 1.0), "lottery": (15.0, 30.0), "stride": (12.0, 0.5)}
"""Turnaround and response, in ms."""


def suites_in(folder: Path, names: tuple[str, ...] = tuple(FIGURES), seeds: int = 3) -> list[Suite]:
    for policy in names:
        for seed in range(1, seeds + 1):
            turnaround, response = FIGURES[policy]
            keep_figures(
                folder,
                experiment="s3-mixed",
                policy=policy,
                seed=seed,
                turnaround_mean_ns=(turnaround + seed / 100) * MS,
                response_mean_ns=(response + seed / 100) * MS,
            )
    return compared_suites(read_collection([folder]))


def test_most_informative_suite_is_drawn(tmp_path: Path) -> None:
    suites = suites_in(tmp_path)
    charts = headline_charts(suites)
    assert [chart.name for chart in charts] == [
        "headline-turnaround",
        "headline-turnaround-response",
    ]
    assert len(charts) <= CHARTS_MAX
    means, plane = (chart.data for chart in charts)
    assert means["series"].to_list() == ["mlfq", "stride", "lottery", "rr"]
    (suite,) = rankable_suites(suites)
    goal = next(finding for finding in compute_findings(suites) if finding.measure)
    assert goal.suite is suite is clearest_suite([suite], *suite.differing_measures)
    for row in plane.iter_rows(named=True):
        for prefix, metric in (("x", "turnaround"), ("y", "response")):
            expected = suite.means[row["series"], metric].mean / MS
            assert abs(row[f"{prefix}_mean"] - expected) < 1e-9
    undominated = plane.filter(plane["undominated"])["series"].to_list()
    assert sorted(undominated) == ["mlfq", "stride"]
    for chart in charts:
        picture = vl_convert.vegalite_to_svg(page_specification(chart))
        assert "MLFQ" in picture and "stride" in picture

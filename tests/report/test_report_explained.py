# SPDX-License-Identifier: MIT
"""Tests that a click on a percentile in a report's table opens the picture of its wait."""

from __future__ import annotations

import json

import polars as pl
import pytest

from report_samples import REAL_RUNS, small_runs
from schedlab.base.display.numbers import duration
from schedlab.metrics import wakeup_latencies
from schedlab.report.charts.processes import chart_processes
from schedlab.report.drawing import render_svg
from schedlab.report.model import HREF, Chart
from schedlab.report.runs import workload_charts
from schedlab.report.specifications import page_specification, paper_specification
from schedlab.report.wait_reasons import explain_waits
from schedlab.report.workload_tables import find_workloads, metrics_table
from schedlab.runs import collection as runs


@pytest.mark.xdist_group(REAL_RUNS)
@pytest.mark.spike
def test_a_number_leads_to_its_wait() -> None:
    collection = runs.read_collection([small_runs() / "mixed"])
    (workload,) = find_workloads(collection)
    blocks, links = explain_waits(workload)
    pictures = {block.name: block for block in blocks if isinstance(block, Chart)}
    table = metrics_table(collection, workload, links)
    followed = {cell.link for row in table.rows for cell in row if cell.link}
    assert followed == {f"#{shown.chart}" for shown in links.values()}
    assert {place for place, column in links if column == "wakeup_latency_p99_ns"} == {0, 1, 2, 3}
    for (place, column), wait in links.items():
        run = workload.setups[place].runs[0]
        processes = chart_processes(run.trace())
        woken = wakeup_latencies(processes.intervals(), processes.window).join(
            processes.names, on="life"
        )
        latencies = woken.filter(pl.col("role") == "workload")["latency_ns"].sort()
        summary_value = run.metrics().summary[column][0]
        shown = latencies.filter(latencies >= summary_value)[0]
        assert shown == wait.duration_ns
        assert f"Between the dashed lines: {duration(shown)}." in pictures[wait.chart].caption
        assert "max" not in column or shown == summary_value
    (curves,) = [
        chart
        for chart in workload_charts(collection, workload, links)
        if chart.name.startswith("latencies")
    ]
    rings = [row for rows in curves.plain["datasets"].values() for row in rows if HREF in row]
    assert {row[HREF] for row in rings} == followed
    for row in rings:
        one = (pl.col("series") == row["series"]) & (pl.col("panel") == row["panel"])
        curve_values = curves.data.filter(one)["ms"]
        assert row["value"] == pytest.approx(curve_values.filter(curve_values == row["value"])[0])
        assert row["percent"] == pytest.approx((curve_values <= row["value"]).mean() * 100)
    on_page = json.dumps(page_specification(curves, lambda link: f"other.html{link}"))
    assert all(f'"other.html{link}"' in on_page for link in followed)
    assert HREF not in render_svg(paper_specification(curves)), "on paper nothing leads elsewhere"

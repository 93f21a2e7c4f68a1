# SPDX-License-Identifier: MIT
"""From a percentile of a report's table, a click leads to the picture of the wait that it is."""

from __future__ import annotations

import polars as pl
import pytest

from report_samples import REAL_RUNS, small_runs
from schedlab.metrics import wakeup_latencies
from schedlab.metrics.tables import duration
from schedlab.report.charts.processes import people_of
from schedlab.report.explained import explanations
from schedlab.report.model import Chart
from schedlab.report.workload_tables import metrics_table, workloads
from schedlab.runs import collection as runs


@pytest.mark.xdist_group(REAL_RUNS)
@pytest.mark.spike
def test_a_number_leads_to_its_wait() -> None:
    collection = runs.read([small_runs() / "mixed"])
    (workload,) = workloads(collection)
    blocks, links = explanations(workload)
    pictures = {block.name: block for block in blocks if isinstance(block, Chart)}
    table = metrics_table(collection, workload, links)
    followed = {cell.link for row in table.rows for cell in row if cell.link}
    assert followed == {f"#{name}" for name in links.values()}
    assert {place for place, column in links if column == "wakeup_latency_p99_ns"} == {0, 1, 2, 3}
    for (place, column), name in links.items():
        run = workload.setups[place].runs[0]
        people = people_of(run.trace())
        woken = wakeup_latencies(people.intervals(), people.window).join(people.names, on="life")
        found = woken.filter(pl.col("role") == "workload")["latency_ns"].sort()
        told = run.metrics().summary[column][0]
        shown = found.filter(found >= told)[0]
        assert f"Between the dashed lines: {duration(shown)}." in pictures[name].caption
        assert "max" not in column or shown == told

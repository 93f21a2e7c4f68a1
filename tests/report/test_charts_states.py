# SPDX-License-Identifier: MIT
"""The chart of what each process did."""

from __future__ import annotations

import random

from schedlab.report import charts
from schedlab.report.charts.processes import people_of
from schedlab.trace import Trace
from trace_simulator import Script, load, simulate


def simulated() -> Trace:
    script = Script(cpus=2, steps=600, marks=False)
    return load(simulate(random.Random(3), script), script)


def test_each_process_has_a_row_and_all_its_time() -> None:
    trace = simulated()
    people = people_of(trace)
    groups = sorted(set(people.names.filter(people.names["role"] == "workload")["group"]))
    chart = charts.states("s", trace, title="t", caption="c", groups=groups, end_ns=trace.end_ns)
    shown = chart.data
    assert set(shown["group"]) == set(groups)
    assert {"runs", "waits for a CPU"} <= set(shown["series"])
    for _, life in shown.group_by("pid"):
        ordered = life.sort("begin_ns")
        assert ordered["begin_ns"].to_list()[1:] == ordered["end_ns"].to_list()[:-1]


def test_what_a_group_waits_for_can_be_named() -> None:
    trace = simulated()
    people = people_of(trace)
    blocked = people.intervals().filter(people.intervals()["role"] == "workload")
    group, cause = next(
        (row["group"], str(row["cause"]))
        for row in blocked.to_dicts()
        if str(row["cause"]).startswith("blocked")
    )
    chart = charts.states(
        "s",
        trace,
        title="t",
        caption="c",
        groups=[group],
        end_ns=trace.end_ns,
        causes={(group, cause): "waits for another"},
    )
    assert "waits for another" in set(chart.data["series"])
    assert cause not in set(chart.data["series"])

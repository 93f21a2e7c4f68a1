# SPDX-License-Identifier: MIT
"""Study 3's page on the tasks that its queue serves badly, and its column of slow forks."""

from __future__ import annotations

from pathlib import Path

from kept_runs import keep_run
from page_contents import cells_of, tables_of, texts_of
from schedlab.base.toolchain.policies import parse_setting
from schedlab.report.build import page_maker
from schedlab.report.model import Page
from schedlab.runs.collection import read
from schedlab.studies.proposals import proposals

TICK_NS = 1_000_000


def page_of(place: Path) -> Page:
    page = page_maker(3)(read([place]))
    assert page is not None
    return page


def keep_drawbacks(place: Path) -> None:
    """Of each drawback: 40 % or 4 ticks without a boost, 20 % or 2 with one, 10 % or 1 as shipped."""
    (boost,) = (each for each in proposals((3,)) if each.name == "boost")
    for test in boost.tests:
        for policy, share in ((test.off, 0.4), (test.on, 0.2), ("mlfq", 0.1)):
            name, *settings = policy.split()
            row = {
                "group": test.group,
                "share": share,
                "wakeup_latency_median_ns": 10 * share * TICK_NS,
                "tick_ns": TICK_NS,
            }
            keep_run(
                place / policy.replace(" ", "-"),
                test.label,
                name,
                cpus=1,
                tunables=dict(map(parse_setting, settings)),
                tables={"summary": [{"processes": 3}], "groups": [row]},
            )


def test_each_drawback_stands_there_without_a_boost_and_with_one(tmp_path: Path) -> None:
    keep_drawbacks(tmp_path)
    keep_run(tmp_path, "s3-cpu", "rr:table-scan", cpus=3)
    page = page_of(tmp_path)
    cells = cells_of(tables_of(page)["study-3-drawbacks"])
    shown = {key: cell.text for key, cell in cells.items()}
    queues = ("no boost", "boost", "mlfq as shipped")
    gamer = "the share of one that gives the CPU up just before each tick, %"
    late = "wake-up latency, median, of one that turns interactive late, ticks"
    assert [shown[gamer, "", queue] for queue in queues] == ["40.00", "20.00", "10.00"]
    assert [shown[late, "", queue] for queue in queues] == ["4.00", "2.00", "1.00"]
    assert "It has 40.0 % of the CPU beside three that compute" in texts_of(page)


def test_without_these_runs_the_page_does_without(tmp_path: Path) -> None:
    keep_run(tmp_path, "s3-cpu", "rr:table-scan", cpus=3)
    assert "study-3-drawbacks" not in tables_of(page_of(tmp_path))


def test_slow_forks_have_a_column_of_their_own(tmp_path: Path) -> None:
    for experiment, ended in (("s3-cpu", 40), ("s3-cpu-on-their-costs", 30)):
        row = {"elapsed_ns": 40 * TICK_NS, "finished": ended, "tick_ns": TICK_NS}
        keep_run(tmp_path, experiment, "rr:table-scan", cpus=3, tables={"summary": [row]})
    cells = cells_of(tables_of(page_of(tmp_path))["study-3-table-3"])
    here, slow, mixed = (
        cells["RR", workload, column]
        for workload, column in (
            ("CPU-bound", "here"),
            ("CPU-bound", "here, on their costs"),
            ("Mixed", "here, on their costs"),
        )
    )
    assert (here.text, slow.text, mixed.text) == ("1.000", "0.750", "not run")
    assert "by definition" in slow.why
    assert mixed.why == ""

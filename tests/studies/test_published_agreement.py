# SPDX-License-Identifier: MIT
"""Tests the rule for agreement with published figures: its boundaries, and the counts of a page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from schedlab.report.studies.agreement_counts import TableCount, count_agreement
from schedlab.report.study_tables import FigureComparison, Measurement
from schedlab.studies.agreement import is_close, is_near, is_near_by_tick
from schedlab.studies.figures import Figure

TICKS = Figure(
    1, "table 1", "a", "1 CPU", "measurement", "completion", "ticks", "20", 1, "rr", "study"
)


@pytest.mark.parametrize(
    ("unit", "text", "value", "near", "close", "by_tick"),
    [
        ("ticks", "20", 23.0, True, False, False),
        ("ticks", "20", 23.01, False, False, False),
        ("ticks", "20", 21.0, True, True, False),
        ("ticks", "3", 4.0, True, False, True),
        ("ticks", "3", 4.01, False, False, False),
        ("ticks", "3.0", 4.0, False, False, False),
        ("switches", "100", 85.0, True, False, False),
        ("switches", "3", 4.0, False, False, False),
        ("% of selections", "5.0", 7.0, True, False, False),
        ("% of selections", "50.0", 52.1, False, True, False),
        ("million cycles", "2.0", 2.3, True, False, False),
    ],
)
def test_a_value_is_near_by_its_unit(
    unit: str, text: str, value: float, near: bool, close: bool, by_tick: bool
) -> None:
    figure = replace(TICKS, unit=unit, text=text)
    assert (is_near(figure, value), is_close(figure, value)) == (near, close)
    assert is_near_by_tick(figure, value) == by_tick


def test_published_figures_count_once_without_calibrated_ones() -> None:
    rows = [replace(TICKS, row=row) for row in "abcd"]
    others = [replace(TICKS, kind="expectation"), replace(TICKS, source="rerun")]
    counts = count_agreement(
        [*rows, *others, replace(TICKS, place="table 2")],
        [
            FigureComparison(rows[0], Measurement((20.0,)), Measurement((40.0,))),
            FigureComparison(rows[0], Measurement((90.0,))),
            FigureComparison(rows[1], Measurement((40.0,)), Measurement((20.0,))),
            FigureComparison(rows[2], Measurement((20.0,)), is_counted=False),
            FigureComparison(rows[3], Measurement()),
        ],
    )
    assert counts == [
        TableCount("table 1", 4, 1, 2, 1, 1, 0, 2, 1),
        TableCount("table 2", 1, 0, 0, 0, 0, 0, 0, 0),
        TableCount("all", 5, 1, 2, 1, 1, 0, 2, 1),
    ]

# SPDX-License-Identifier: MIT
"""Tests how `./schedlab dev bench monitor` evaluates the program's output."""

from __future__ import annotations

import pytest

from schedlab.errors import SchedlabError
from schedlab_tools.benchmarks.monitor import watching

READY = "@@ 0 ready 3 32123\n"


def printed(instructions: int, reads: int, more: str = "") -> str:
    return f"{more}bench watched 500 {instructions}\nbench status-reads 500 {reads}\n"


def test_shares_are_of_the_differences() -> None:
    row = watching(
        500, printed(10**9, 0), printed(10**9 + 10**7, 0), printed(1030 * 10**6, 4, READY)
    )
    assert row.tracing == pytest.approx(0.01)
    assert row.read_instructions == 5_000_000
    assert row.share == pytest.approx(0.015)
    assert row.record_instructions == pytest.approx(32.123)
    assert row.verdict == "met"


def test_missed_aim_is_reported() -> None:
    row = watching(500, printed(10**9, 0), printed(10**9, 0), printed(1200 * 10**6, 4, READY))
    assert row.verdict == "met"
    row = watching(500, printed(10**9, 0), printed(10**9, 0), printed(1204 * 10**6, 4, READY))
    assert row.verdict == "not met"


@pytest.mark.parametrize(
    ("watched", "problem"),
    [
        (printed(1, 4), "without steer"),
        (printed(1, 0, READY), "never asked"),
        (READY + "bench status-reads 500 4\n", "no line `bench watched"),
    ],
)
def test_what_is_missing_is_an_error(watched: str, problem: str) -> None:
    with pytest.raises(SchedlabError, match=problem):
        watching(500, printed(1, 0), printed(1, 0), watched)

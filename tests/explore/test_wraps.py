# SPDX-License-Identifier: MIT
"""Tests that the explorer finds clocks and virtual times that wrap."""

from __future__ import annotations

from pathlib import Path

import pytest

from mistaken_policy import SOURCE, mistakes
from schedlab.errors import RuleBroken
from schedlab.machines import exploration
from schedlab.machines.exploration import Limits
from wrapping_policy import passes

LIMITS = Limits(tasks=3, queues=1, depth=4, memory_mib=64)
VALUES = {
    "none": "",
    "clock_ns": "939 x 2^32 ns",
    "clock_us": "2^32 us",
    "clock_signed": "2^63 ns",
    "run_time": "2^32 us",
}


@pytest.mark.parametrize("wraps", [False, True])
def test_a_task_that_starves_by_a_virtual_time_that_wraps(wraps: bool, tmp_path: Path) -> None:
    source = passes(tmp_path / ("starves.c" if wraps else "serves.c"), wraps)
    if not wraps:
        assert exploration.explore(source, source.stem, "", LIMITS).end == "depth"
        return
    with pytest.raises(RuleBroken) as error:
        exploration.explore(source, source.stem, "", LIMITS)
    message = str(error.value)
    assert "shares_by() promises each task its share" in message
    assert "no shorter sequence of operations breaks a rule than 2:" in message


@pytest.mark.parametrize(("mistake", "value"), VALUES.items())
def test_a_clock_or_a_run_time_that_wraps(mistake: str, value: str) -> None:
    tunables = f"mistake={mistakes()[mistake]}"
    if not value:
        assert exploration.explore(SOURCE, "mistaken", tunables, LIMITS).end == "depth"
        return
    with pytest.raises(RuleBroken) as error:
        exploration.explore(SOURCE, "mistaken", tunables, LIMITS)
    assert str(error.value).endswith(f"change while clock and run times pass {value}")

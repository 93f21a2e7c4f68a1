# SPDX-License-Identifier: MIT
"""The explorer finds clocks and virtual times that wrap."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedlab.errors import RuleBroken
from schedlab.machines import explored
from schedlab.machines.explored import Limits
from schedlab.paths import ROOT
from wrapping_policy import passes

LIMITS = Limits(tasks=3, queues=1, depth=4, memory_mib=64)
MISTAKEN = ROOT / "tests" / "mistakes" / "mistaken.c"
CLOCKS = ["CLOCK_NS", "CLOCK_US"]


@pytest.mark.parametrize("wraps", [False, True])
def test_a_task_that_starves_by_a_virtual_time_that_wraps(wraps: bool, tmp_path: Path) -> None:
    source = passes(tmp_path / ("starves.c" if wraps else "serves.c"), wraps)
    if not wraps:
        assert explored.explore(source, source.stem, "", LIMITS).end == "depth"
        return
    with pytest.raises(RuleBroken) as error:
        explored.explore(source, source.stem, "", LIMITS)
    told = str(error.value)
    assert "shares_by() promises each task its share" in told
    assert "no shorter sequence of operations breaks a rule than 2:" in told


@pytest.mark.parametrize("mistake", ["NONE", *CLOCKS])
def test_a_clock_of_32_bits(mistake: str) -> None:
    names = [line.split(",")[0].strip() for line in MISTAKEN.read_text().splitlines()]
    number = [name for name in names if name.startswith("MISTAKE_")].index(f"MISTAKE_{mistake}")
    tunables = f"mistake={number}"
    if mistake == "NONE":
        assert explored.explore(MISTAKEN, "mistaken", tunables, LIMITS).end == "depth"
        return
    with pytest.raises(RuleBroken, match=r"while its clock passes a multiple of 2\^32 us"):
        explored.explore(MISTAKEN, "mistaken", tunables, LIMITS)

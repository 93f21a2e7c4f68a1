# SPDX-License-Identifier: MIT
"""Tests groups and nice levels under `wrr` and `lottery`: shares in traces of the simulator and the
kernel.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from played import play, simulated
from schedlab.metrics import compute
from schedlab.trace import Trace

GROUPS = """
program root
  group root
  setgroup 1 parent 0
  setgroup 2 weight 300
  setgroup 3 parent 2
  setgroup 3 weight 1
  nice -20
  fork ann
  taskgroup 1 ann
  nice 0 ann
  loop 3
    fork bob
    taskgroup 2 bob
    nice 5 bob
  end
  loop 2
    fork within
    taskgroup 3 within
    nice 0 within
  end
  sleep until 100ms
  mark begin
  sleep {sleep}ms
  mark end
"""
"""Group 1 has 100 of the root's 400 weights, regardless of its members."""
BODIES = "".join(
    f"program {name}\n  group {name}\n  run 100s\n" for name in ("ann", "bob", "within")
)
BOB = 3 * 335 * 100
WITHIN = 1024
SHARES = {
    "ann": 1 / 4,
    "bob": 3 / 4 * BOB / (BOB + WITHIN),
    "within": 3 / 4 * WITHIN / (BOB + WITHIN),
}
NICE = """
program root
  group root
  nice -20
  fork ann
  nice 0 ann
  loop 2
    fork bob
    nice 5 bob
  end
  fork within
  nice 19 within
  sleep until 100ms
  mark begin
  sleep {sleep}ms
  mark end
"""
NICE_SHARES = {
    "ann": 1024 / (1024 + 2 * 335 + 15),
    "bob": 2 * 335 / (1024 + 2 * 335 + 15),
    "within": 15 / (1024 + 2 * 335 + 15),
}
CHOICES = {
    "wrr": ("wrr", "shares={}"),
    "wrr:linux": ("wrr:linux", "shares={}"),
    "lottery": ("lottery", "nice=1,currencies={}"),
    "lottery:linux": ("lottery:linux", "nice=1,currencies={}"),
}


def text_of(words: str, length_ms: int) -> str:
    return words.format(sleep=length_ms) + BODIES


def check_shares(trace: Trace, shares: dict[str, float]) -> None:
    """Each group's share is the ideal one, within 1 point."""
    metrics = compute(trace)
    got = {row["group"]: row["share"] for row in metrics.groups.to_dicts()}
    assert {name: got[name] for name in shares} == pytest.approx(shares, abs=0.01)
    processes = metrics.processes.filter(pl.col("role") == "workload")
    ideal = processes.group_by("group").agg(pl.col("ideal_share").sum())
    assert dict(ideal.iter_rows()) == pytest.approx(shares, abs=0.001)


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("name", CHOICES)
def test_groups_share_by_their_weights(tmp_path: Path, name: str, cpus: int) -> None:
    policy, tunables = CHOICES[name]
    settings = tunables.format(2 if name.startswith("wrr") else 1)
    text = text_of(GROUPS, 40_000)
    check_shares(simulated(tmp_path, text, policy, cpus, settings), SHARES)


@pytest.mark.parametrize("name", CHOICES)
def test_tasks_share_by_their_nice_levels(tmp_path: Path, name: str) -> None:
    policy, tunables = CHOICES[name]
    settings = tunables.format(1 if name.startswith("wrr") else 0)
    check_shares(simulated(tmp_path, text_of(NICE, 40_000), policy, 1, settings), NICE_SHARES)


@pytest.mark.spike
@pytest.mark.parametrize("name", ["wrr:linux", "lottery:linux"])
def test_groups_share_by_their_weights_on_the_kernel(tmp_path: Path, name: str) -> None:
    """Ticks and turns are short: 2 s contain 10,000 draws, or 67 rounds."""
    policy, tunables = CHOICES[name]
    settings = tunables.format("2,quantum_us=1000" if name.startswith("wrr") else 1)
    trace = play(tmp_path, text_of(GROUPS, 2_000), policy, 1, settings, 200_000)
    check_shares(trace, SHARES)

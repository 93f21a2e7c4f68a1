# SPDX-License-Identifier: MIT
"""Tests groups of tasks under `hsfq`, on the kernel and in the simulator: shares and quotas in
traces.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from played import play, simulated
from schedlab.metrics import compute, state_intervals
from schedlab.runs.replay import derive_workload, parse_charges
from schedlab.trace import AttributeKind, GroupField, Kind, Trace

MS = 1_000_000
TEXT = """
program root
  group root
  setgroup 1 parent 0
  setgroup 2 weight 200
  setgroup 3 parent 2
  setgroup 3 period 20ms
  setgroup 3 quota 3ms
  nice -20
  fork ann
  taskgroup 1 ann
  nice 0 ann
  loop 3
    fork bob
    taskgroup 2 bob
    nice 0 bob
  end
  loop 2
    fork held
    taskgroup 3 held
    nice 0 held
  end
  sleep until 30ms
  mark begin
  sleep 240ms
  mark end
program ann
  group ann
  run 100s
program bob
  group bob
  run 100s
program held
  group held
  run 100s
"""
SHARES = {"ann": 1 / 3, "bob": 2 / 3 - 0.15, "held": 0.15}


def check_groups(trace: Trace) -> None:
    """One user has a third of the CPU, another has two thirds; a group of the second is
    limited to 3 ms in each 20 ms.
    """
    metrics = compute(trace)
    got = {row["group"]: row["share"] for row in metrics.groups.to_dicts()}
    for name, share in SHARES.items():
        assert got[name] == pytest.approx(share, abs=2 * 3 / 240), name
    processes = metrics.processes.filter(pl.col("role") == "workload")
    ideal = processes.group_by("group").agg(pl.col("ideal_share").sum())
    assert dict(ideal.iter_rows()) == pytest.approx(SHARES, abs=0.01)
    limited_pids = processes.filter(pl.col("group") == "held")["pid"].to_list()
    for begin in range(40 * MS, 260 * MS, 20 * MS):
        assert ran(trace, limited_pids, begin, begin + 20 * MS) <= 3.02 * MS
    assert ran(trace, limited_pids, 40 * MS, 260 * MS) == pytest.approx(11 * 3 * MS, rel=0.01)


def ran(trace: Trace, pids: list[int], begin: int, end: int) -> int:
    """The time on CPUs between two times, in ns."""
    running_intervals = state_intervals(trace).filter(
        (pl.col("state") == "running") & pl.col("pid").is_in(pids)
    )
    clipped = running_intervals.select(
        pl.col("end_ns").clip(begin, end) - pl.col("begin_ns").clip(begin, end)
    )
    return int(clipped.to_series().sum())


def test_groups_in_the_simulator(tmp_path: Path) -> None:
    trace = simulated(tmp_path, TEXT, "hsfq")
    check_groups(trace)
    group_events = trace.events.filter(pl.col("kind") == Kind.TASK_GROUP)
    assert list(group_events.select("process", "first", "second").iter_rows()) == [
        (1, GroupField.PARENT, 0),
        (2, GroupField.WEIGHT, 200),
        (3, GroupField.PARENT, 2),
        (3, GroupField.PERIOD, 20 * MS),
        (3, GroupField.QUOTA, 3 * MS),
    ]
    moved = trace.events.filter(
        (pl.col("kind") == Kind.ATTRIBUTE) & (pl.col("first") == AttributeKind.TASKGROUP)
    )
    assert moved["second"].to_list() == [1, 2, 2, 2, 3, 3]


def test_a_replay_makes_the_groups_again(tmp_path: Path) -> None:
    again = derive_workload(simulated(tmp_path, TEXT, "hsfq"), parse_charges("none"))
    assert [line.strip() for line in again.text.splitlines() if "setgroup" in line] == [
        line.strip().replace("ms", "000000ns") for line in TEXT.splitlines() if "setgroup" in line
    ]
    folder = tmp_path / "again"
    folder.mkdir()
    trace = simulated(folder, again.text, "hsfq")
    assert len(trace.rows(Kind.TASK_GROUP)) == 5
    check_groups(trace)


@pytest.mark.spike
def test_groups_on_the_kernel(tmp_path: Path) -> None:
    check_groups(play(tmp_path, TEXT, "hsfq"))

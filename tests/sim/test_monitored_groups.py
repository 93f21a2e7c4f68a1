# SPDX-License-Identifier: MIT
"""Tests the live model's figures of grouped processes against schedlab.metrics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from played import simulated
from schedlab.metrics import compute
from schedlab.monitor.model import Model
from schedlab.monitor.trace_state import TraceState
from schedlab.trace import GroupField, Kind, Trace
from schedlab.trace.follow import Records
from schedlab.trace.format import RECORD

TEXT = """
program root
  setgroup 1 parent 0
  setgroup 2 weight 300
  setgroup 3 parent 2
  setgroup 3 quota 9ms
  nice -20
  fork ann
  taskgroup 1 ann
  loop 3
    fork bob
    taskgroup 2 bob
  end
  fork held
  taskgroup 3 held
  fork sleeper
  taskgroup 2 sleeper
  sleep 300ms
program ann
  nice 5
  run 100s
program bob
  nice 0
  run 100s
program held
  nice 0
  run 100s
program sleeper
  nice 0
  loop
    run 300us
    sleep 7ms
  end
"""


def records_of(trace: Trace) -> Records:
    records = np.zeros(len(trace.events), RECORD)
    for name in RECORD.names or ():
        column = {"time": "time_ns"}.get(name, name)
        records[name] = trace.column(column).astype(RECORD[name])
    return records


@pytest.mark.parametrize(
    ("policy", "shares_by", "cpus"),
    [("hsfq", "groups", 1), ("hsfq", "groups", 2), ("lottery:currencies", "currencies", 2)],
)
def test_ideal_shares_are_those_of_the_groups(
    tmp_path: Path, policy: str, shares_by: str, cpus: int
) -> None:
    trace = simulated(tmp_path, TEXT, policy, cpus)
    model = Model(trace.header, "", "equal", 1 << 60)
    model.feed(records_of(trace))
    frame = model.frame()
    assert frame["shares_by"] == shares_by
    ideal_shares = dict(zip(frame["processes"]["pid"], frame["processes"]["ideal"], strict=True))
    known = compute(trace).processes.filter(pl.col("ideal_share").is_not_null())
    alive = known.filter(pl.col("exit_ns").is_null())
    expected = dict(alive.select("pid", "ideal_share").iter_rows())
    assert len(expected) == 6
    assert {pid: ideal_shares[pid] for pid in expected} == pytest.approx(expected, rel=1e-9)
    limited_share = known.filter(pl.col("name") == "held")["ideal_share"].item()
    if policy == "hsfq":  # the other has no quotas
        assert limited_share == pytest.approx(0.09 / cpus, rel=0.02)


def test_groups_exist_for_a_late_model(tmp_path: Path) -> None:
    records = records_of(simulated(tmp_path, TEXT, "hsfq"))
    snapshot = TraceState(1)
    snapshot.apply(records)
    opening = snapshot.opening().records
    groups = opening[opening["kind"] == Kind.TASK_GROUP]
    assert groups[["process", "first", "second"]].tolist() == [
        (1, GroupField.PARENT, 0),
        (2, GroupField.WEIGHT, 300),
        (3, GroupField.PARENT, 2),
        (3, GroupField.QUOTA, 9_000_000),
    ]

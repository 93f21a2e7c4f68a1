# SPDX-License-Identifier: MIT
"""Tests how close a replay is to its recording, on figures that are counted by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import polars as pl
import pytest

from schedlab.metrics import Metrics
from schedlab.metrics.stored import schemas
from schedlab.runs.replay.accuracy import compare_groups, relative_error, replay_metrics


@cache
def _nothing() -> Metrics:
    tables: dict[str, Any] = {
        name: pl.DataFrame(schema=schema) for name, schema in schemas().items()
    }
    return Metrics(**tables)


def measured(*processes: tuple[str, str, int | None, int | None]) -> Metrics:
    """Metrics of processes: role, group, turnaround, waiting."""
    schema = schemas()["processes"]
    rows = [
        {
            "role": role,
            "group": group,
            "turnaround_ns": turnaround,
            "waiting_ns": waiting,
            "exit_ns": turnaround,
        }
        for role, group, turnaround, waiting in processes
    ]
    table = pl.DataFrame(rows, schema={name: schema[name] for name in rows[0]})
    rest = [pl.lit(None, kind).alias(name) for name, kind in schema.items() if name not in rows[0]]
    summary = pl.DataFrame({"context_switches": [7]})
    return replace(_nothing(), processes=table.with_columns(rest), summary=summary)


RECORDED = measured(
    ("workload", "a long name", 100, 10),
    ("workload", "a long name", None, 30),
    ("workload", "b", None, 60),
    ("other", "[kernel]", None, 1000),
)
REPLAYED = measured(
    ("workload", "a_long_n", 130, 20),
    ("workload", "a_long_name", 90, 30),
    ("workload", "b", 500, 45),
    ("workload", "_kernel_", 500, 2000),
)


def test_groups_are_those_that_the_recording_measured() -> None:
    nearness_table = compare_groups(RECORDED, REPLAYED)
    assert nearness_table.to_dicts() == [
        {
            "group": "a long name",
            "processes": 2,
            "turnaround_ns": 100,
            "waiting_ns": 20,
            "turnaround_replayed_ns": 110,
            "waiting_replayed_ns": 25,
        },
        {
            "group": "b",
            "processes": 1,
            "turnaround_ns": None,
            "waiting_ns": 60,
            "turnaround_replayed_ns": 500,
            "waiting_replayed_ns": 45,
        },
    ]
    # (2 × 5 + 15) of 2 × 20 + 60; a group without a turnaround in the recording does not count.
    assert relative_error(nearness_table, "waiting") == pytest.approx(25 / 100)
    assert relative_error(nearness_table, "turnaround") == pytest.approx(10 / 100)


def test_figures_are_of_the_same_groups() -> None:
    replay_figures = replay_metrics(RECORDED, REPLAYED)
    assert (replay_figures["processes"], replay_figures["finished"]) == (3, 3)
    assert replay_figures["waiting_mean_ns"] == pytest.approx((20 + 30 + 45) / 3)
    assert replay_figures["turnaround_mean_ns"] == pytest.approx((130 + 90 + 500) / 3)
    assert replay_figures["context_switches"] == 7

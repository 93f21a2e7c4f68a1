# SPDX-License-Identifier: MIT
"""Tests the stored effect of each cause: its runs with and without the cause, on the CPUs with
the largest effect, or with --long on all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from schedlab.machines.spec import RunSpec
from schedlab.runs.collection import Collection, read_collection
from schedlab.runs.perform import perform
from schedlab.runs.plan import Plan
from schedlab.studies.causes import Cause, read_causes
from schedlab.studies.experiments import TIMING_TESTS
from schedlab.studies.lottery_tests import LOTTERY_TESTS
from schedlab.studies.planning import plan
from schedlab.studies.study import find_studies

pytestmark = pytest.mark.spike

EVERY = [cause for study in find_studies() for cause in read_causes(study.number)]
OF_SUITES = "suite"
"""All tests in a row are one run: the program prints where each test begins."""
OF_SUITES_VALUES = {"context switches": "switches", "completion": "complete"}
NEAR = 0.1
"""Allowed relative difference of a measured value from the stored one."""
NEAR_EFFECT = 0.25
"""Allowed relative difference of the effect from the stored one."""
Tables = dict[str, pl.DataFrame]


def in_suite(tables: Tables, cause: Cause, _: str) -> float:
    (row,) = cause.rows
    position = 1 + list(TIMING_TESTS.values()).index(row)
    rows = tables["values"].with_columns(
        test=pl.when(pl.col("name") == "test").then(pl.col("value")).forward_fill()
    )
    of_test = (pl.col("test") == position) & (pl.col("name") == OF_SUITES_VALUES[cause.metric])
    return float(rows.filter(of_test)["value"].mean())  # type: ignore[arg-type]


def completion(tables: Tables, _: Cause, __: str) -> float:
    summary = tables["summary"]
    return float((summary["completion_ns"] / summary["tick_ns"]).mean())  # type: ignore[arg-type]


def switches(tables: Tables, _: Cause, __: str) -> float:
    return float(tables["processes"]["selections"].sum() / len(tables["summary"]))


def share(tables: Tables, cause: Cause, _: str) -> float:
    """Returns the group's share of the selections, in percent."""
    (row,) = cause.rows
    (group,) = {
        name for test in LOTTERY_TESTS for name, title in test.rows.items() if title == row
    } & set(tables["groups"]["group"])
    selections = tables["groups"].group_by("group").agg(pl.col("selections").sum())
    (own,) = selections.filter(pl.col("group") == group)["selections"]
    return float(100 * own / selections["selections"].sum())


def turnaround(tables: Tables, _: Cause, column: str) -> float:
    """Returns the interactive tasks' least or greatest mean turnaround, in ticks."""
    rows = tables["groups"].filter(pl.col("group") == "inter")
    ticks = rows["turnaround_mean_ns"] / tables["summary"]["tick_ns"][0]
    return float((ticks.min if column.endswith("least") else ticks.max)())


MEASURES: dict[str, Callable[[Tables, Cause, str], float]] = {
    "completion": completion,
    "context switches": switches,
    "share": share,
    "turnaround": turnaround,
}


def measured(collection: Collection, cause: Cause, named: str, column: str) -> float:
    """Returns the measurement of the cause's run, in the unit of its effects."""
    experiment, _, policy = named.partition(" ")
    of_run = pl.col("experiment") == experiment
    if policy:
        of_run &= pl.col("policy") == policy
    tables = {
        name: rows.filter(of_run)
        for name in ("summary", "processes", "groups", "values")
        if len(rows := getattr(collection, name))
    }
    measure = in_suite if OF_SUITES in experiment else MEASURES[cause.metric]
    return measure(tables, cause, column)


def columns_of(cause: Cause, every: bool) -> list[str]:
    """Returns the columns to measure: all, or the one with the largest effect."""

    def size(column: str) -> float:
        before, after = cause.effects[column]
        return max(before / after, after / before)

    return list(cause.effects) if every else [max(cause.effects, key=size)]


def title_of(run: RunSpec) -> str:
    return " ".join(filter(None, (str(run.policy), run.settings_text)))


def runs_of(folder: Path, cause: Cause, column: str, every: bool) -> Plan:
    """Returns the runs of the cause's two experiments: one seed, or those of a quick run."""
    on = re.match(r"(\d+) CPU", column)
    cpus = int(on[1]) if on else None
    every = every or cause.metric == "turnaround"
    names = {cause.experiment, cause.counterpart}
    return Plan(
        folder,
        tuple(
            run
            for run in plan(folder, "quick", (cause.study,)).runs
            if cpus in (None, run.cpus) and (every or run.seed == 1)
            if {run.label, f"{run.label} {title_of(run)}"} & names
        ),
    )


@pytest.mark.parametrize("cause", EVERY, ids=lambda cause: f"{cause.study}-{cause.name}")
def test_the_stored_effect_is_what_its_runs_measure(
    tmp_path: Path, cause: Cause, request: pytest.FixtureRequest
) -> None:
    every = request.config.getoption("--long")
    for column in columns_of(cause, every):
        folder = tmp_path / column
        perform(runs_of(folder, cause, column, every))
        collection = read_collection([folder])
        before, after = (
            measured(collection, cause, named, column)
            for named in (cause.counterpart, cause.experiment)
        )
        assert (before, after) == pytest.approx(cause.effects[column], rel=NEAR), column
        stored_before, stored_after = cause.effects[column]
        effect = pytest.approx(stored_after - stored_before, rel=NEAR_EFFECT, abs=1)
        assert after - before == effect, column

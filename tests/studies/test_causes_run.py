# SPDX-License-Identifier: MIT
"""Tests the stored effect of each cause that alone explains figures: its two runs on the
first column's CPUs.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from schedlab.runs.collection import Collection, read
from schedlab.runs.perform import perform
from schedlab.runs.plan import Plan
from schedlab.studies import select
from schedlab.studies.causes import Cause, causes
from schedlab.studies.planning import plan
from schedlab.studies.study import studies

pytestmark = pytest.mark.spike

WORDED_BY_DATA = [cause for study in studies() for cause in causes(study.number) if cause.places]
OF_SUITES = "suite"
"""All tests in a row are one run: the program prints where each test begins."""
SUITE_TEST = 4
"""Mixed Load's position in the suite, counted from 1."""
NEAR = 0.1


def measured(collection: Collection, cause: Cause, named: str) -> float:
    """Returns the measurement of the cause's run, in the unit of its effects."""
    experiment = named.partition(" ")[0]
    of = {
        name: rows.filter(pl.col("experiment") == experiment)
        for name, rows in (
            ("summary", collection.summary),
            ("processes", collection.processes),
            ("values", collection.values),
        )
        if len(rows)
    }
    if OF_SUITES in experiment:
        tests = pl.when(pl.col("name") == "test").then(pl.col("value")).forward_fill()
        with_tests = of["values"].with_columns(test=tests)
        switches = with_tests.filter(
            (pl.col("test") == SUITE_TEST) & (pl.col("name") == "switches")
        )
        return float(switches["value"].mean())  # type: ignore[arg-type]
    if cause.measured == "completion":
        return float((of["summary"]["completion_ns"] / of["summary"]["tick_ns"])[0])
    return float(of["processes"]["selections"].sum())


@pytest.mark.parametrize("cause", WORDED_BY_DATA, ids=lambda each: f"{each.study}-{each.name}")
def test_the_stored_effect_is_what_its_runs_measure(tmp_path: Path, cause: Cause) -> None:
    column, (before, after) = next(iter(cause.effects.items()))
    (figure, *_) = (figure for figure in select(study=cause.study) if figure.column == column)
    names = [named.partition(" ") for named in (cause.without, cause.run)]
    cpus = figure.cpus or 2
    expected = {(experiment, policy) for experiment, _, policy in names}
    runs = tuple(
        run
        for run in plan(tmp_path, "quick", (cause.study,)).runs
        if run.cpus == cpus and run.seed == 1
        if {(run.label, ""), (run.label, str(run.policy))} & expected
    )
    assert len(runs) == 2
    perform(Plan(tmp_path, runs))
    collection = read([tmp_path])
    for named, stored in ((cause.without, before), (cause.run, after)):
        assert measured(collection, cause, named) == pytest.approx(stored, rel=NEAR)

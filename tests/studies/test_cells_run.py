# SPDX-License-Identifier: MIT
"""Tests that a plan covers all cells of the published tables.

Each configuration is one failed run: a cell needs no measurement to show that it was run.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kept_runs import MANIFEST
from schedlab.machines import LINUX_MACHINES, SIMULATOR
from schedlab.report.build import page_maker
from schedlab.report.model import Table
from schedlab.report.study_tables import NOT_RUN
from schedlab.runs.collection import Collection, StoredRun
from schedlab.studies.experiment import Depth
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.studies.planning import plan
from schedlab.studies.study import find_studies

MOST_NOT_RUN = {"quick": 0.1, "full": 0.0}


def planned(depth: Depth, number: int) -> Collection:
    linux = LINUX_MACHINES if depth == "full" else ()
    machines = ("spike", SIMULATOR, *linux)
    planned_runs = (
        run
        for name in machines
        for run in plan(Path("/nowhere"), depth, (number,), machine=name).runs
        if name != SIMULATOR or EXPERIMENTS[run.label].machine == name
    )
    return Collection(
        StoredRun(
            Path("/nowhere") / run.name,
            MANIFEST
            | {"label": run.label, "policy": str(run.policy), "tunables": dict(run.settings)}
            | {"cpus": run.cpus, "tick_ns": run.tick_ns, "machine": run.machine}
            | {"status": "hung", "message": "not really"},
        )
        for run in planned_runs
        if run.seed == 1
    )


@pytest.mark.parametrize("depth", ["quick", pytest.param("full", marks=pytest.mark.long)])
@pytest.mark.parametrize("number", [study.number for study in find_studies()])
def test_nearly_all_published_cells_are_run(number: int, depth: Depth) -> None:
    page = page_maker(number)(planned(depth, number))
    assert page is not None
    cells = missing = 0
    for block in page.blocks():
        if not isinstance(block, Table) or not {"published", "missing"} <= set(block.data.columns):
            continue
        published = block.data.filter(block.data["published"].is_not_null())
        cells += len(published)
        missing += published["missing"].to_list().count(NOT_RUN)
    assert cells > 10
    assert missing <= MOST_NOT_RUN[depth] * cells, f"{missing} of {cells}"

# SPDX-License-Identifier: MIT
"""Tests the operations that took longer on the studies' machines: the files, and the runs
that use them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from schedlab.studies.costs import COSTS_FILE, costs_of
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.studies.planning import plan
from schedlab.studies.study import find_studies

WITH_COSTS = [study.number for study in find_studies() if (study.folder / COSTS_FILE).exists()]
TICK_NS = 1_000_000


def test_delays_are_in_proportion_between_the_numbers_of_cpus(tmp_path: Path) -> None:
    written(tmp_path, "delays: [{operation: fork, policies: [rr], ticks: {1: 0.2, 5: 0.6}}]")
    study_costs = costs_of(1, tmp_path)
    for cpus, ticks in ((1, 0.2), (3, 0.4), (5, 0.6), (8, 0.6)):
        assert study_costs.delays_of("rr", cpus, TICK_NS) == (("fork", round(ticks * TICK_NS)),)
    assert study_costs.delays_of("rr", 2, 10 * TICK_NS) == (("fork", 3_000_000),)
    assert study_costs.delays_of("mlfq", 2, TICK_NS) == ()
    assert costs_of(2, tmp_path).delays_of("rr", 1, TICK_NS) == ()


def written(folder: Path, text: str) -> None:
    (folder / "1").mkdir()
    (folder / "1" / COSTS_FILE).write_text(text)


@pytest.mark.parametrize("study", WITH_COSTS)
def test_experiments_on_their_costs_have_delays_and_no_others_have(
    tmp_path: Path, study: int
) -> None:
    runs = plan(tmp_path, "full", (study,)).runs
    for run in runs:
        assert bool(run.delays) == bool(EXPERIMENTS[run.label].repeated_experiment), run.name
    assert any(run.delays for run in runs)
    for experiment in (EXPERIMENTS[run.label] for run in runs):
        if experiment.repeated_experiment:
            assert experiment.command == EXPERIMENTS[experiment.repeated_experiment].command

# SPDX-License-Identifier: MIT
"""Reads experiments from a study's folder: experiments.yaml lists workload files for the simulator, and policies.

Such a study needs no Python code.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from schedlab.machines import SIMULATOR
from schedlab.studies.experiment import Experiment, PolicyGroup, RunGrid
from schedlab.studies.study import Study, find_studies, read_list
from schedlab.units import parse_time
from schedlab.workload.changes import Change

EXPERIMENTS_FILE = "experiments.yaml"
SEEDS_BY_DEPTH = (3, 10)
"""Seeds per configuration, quick and full."""
_LIMIT_TICKS = 3_600_000
"""One hour; the files define their own duration."""


@dataclass(frozen=True)
class SimulatedExperiment:
    """An experiment, and its workload."""

    experiment: Experiment
    workload: str
    """The file in `workloads/files`, or `studies/N/…`, without `.json`."""
    changes: tuple[Change, ...]


def simulated_experiments() -> tuple[SimulatedExperiment, ...]:
    """Returns the simulated experiments of all studies. Raises FileRefused."""
    return tuple(entry for study in find_studies() for entry in _simulated_of_study(study))


@cache
def _simulated_of_study(study: Study) -> tuple[SimulatedExperiment, ...]:
    expected = "a list of experiments, each with name, title, workload, tick and policies"
    return read_list(
        study.folder / EXPERIMENTS_FILE,
        partial(_parse_simulated_experiment, study.number),
        expected,
    )


def _parse_simulated_experiment(study: int, entry: Mapping[str, Any]) -> SimulatedExperiment:
    """Returns the experiment of an entry of experiments.yaml."""
    policies = tuple(entry["policies"])
    quick, full = (
        (PolicyGroup(policies, RunGrid((int(entry.get("cpus", "1")),), seeds)),)
        for seeds in SEEDS_BY_DEPTH
    )
    experiment = Experiment(
        f"s{study}-{entry['name']}",
        study,
        entry["title"],
        "",
        policies,
        quick,
        full,
        scales_with_tick=False,
        tick_ns=parse_time(entry["tick"]),
        machine=SIMULATOR,
        limit_ticks=_LIMIT_TICKS,
    )
    return SimulatedExperiment(experiment, entry["workload"], tuple(entry.get("with", {}).items()))

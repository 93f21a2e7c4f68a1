# SPDX-License-Identifier: MIT
"""Reads experiments from a study's folder: experiments.yaml lists workload files for the simulator, and policies.

Such a study needs no Python code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from schedlab.machines import SIMULATOR
from schedlab.studies.experiment import Experiment, Part, Share
from schedlab.studies.study import Study, read_list, studies
from schedlab.units import parse_time
from schedlab.workload.changes import Change

EXPERIMENTS = "experiments.yaml"
SEEDS = (3, 10)
"""Seeds per configuration, quick and full."""
_LIMIT_TICKS = 3_600_000
"""One hour; the files define their own duration."""


@dataclass(frozen=True)
class SimulatedExperiment:
    """An experiment, and its workload."""

    experiment: Experiment
    workload: str
    """The file in `workloads/files`, without `.json`."""
    changes: tuple[Change, ...]


def simulated() -> tuple[SimulatedExperiment, ...]:
    """Returns the simulated experiments of all studies. Raises FileRefused."""
    return tuple(entry for study in studies() for entry in _of(study))


@cache
def _of(study: Study) -> tuple[SimulatedExperiment, ...]:
    expected = "a list of experiments, each with name, title, workload, tick and policies"
    return read_list(study.folder / EXPERIMENTS, partial(_simulated, study.number), expected)


def _simulated(study: int, entry: Mapping[str, Any]) -> SimulatedExperiment:
    policies = tuple(entry["policies"])
    quick, full = (
        (Part(policies, Share((int(entry.get("cpus", "1")),), seeds)),) for seeds in SEEDS
    )
    experiment = Experiment(
        f"s{study}-{entry['name']}",
        study,
        entry["title"],
        "",
        policies,
        quick,
        full,
        scaled=False,
        tick_ns=parse_time(entry["tick"]),
        machine=SIMULATOR,
        limit_ticks=_LIMIT_TICKS,
    )
    return SimulatedExperiment(experiment, entry["workload"], tuple(entry.get("with", {}).items()))

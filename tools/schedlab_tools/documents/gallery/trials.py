# SPDX-License-Identifier: MIT
"""Runs the gallery's sweep: all built-in policies under the workloads of sweeps/gallery.yaml."""

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from schedlab.base.display.numbers import POINTS, SHARE, TIME
from schedlab.base.toolchain.policies import known_policies
from schedlab.paths import ROOT
from schedlab.sweep import command, dataset, ranking, yaml_lines
from schedlab.sweep.expansion import Point
from schedlab.sweep.objectives import Objective, parse_objective
from schedlab.sweep.plan import SweepPlan
from schedlab_tools.documents.gallery.extremes import PolicyComparison

SWEEP = ROOT / "sweeps" / "gallery.yaml"
Setup = tuple[str, int, str]
"""Workload, CPUs and policy."""
MEASURES = ("turnaround", "response", "slowdown", "wakeup-99th", "share-error", "misses")
"""Measures where less is better."""
_NOTICEABLE = {TIME: 1e6, POINTS: 1.0, SHARE: 0.01}
"""By quantity, smaller values count as this: a tick of 1 ms, a percentage point, one deadline of a hundred."""


def policies() -> list[str]:
    """Returns the built-in policies, in the order of their numbers."""
    return list(known_policies())


def run(folder: Path) -> list[PolicyComparison]:
    """Completes the sweep in its folder, and returns all comparisons with a value for every policy.

    Raises SchedlabError as a sweep does.
    """
    command.execute_plan(_plan(), command.ExecutionOptions(folder))
    return [
        comparison
        for text in MEASURES
        for comparison in _comparisons(folder, parse_objective(text))
    ]


def traces(folder: Path, setups: Set[Setup]) -> dict[Setup, Path]:
    """Runs setups once more, with the first seed, and keeps their traces in that folder. Returns the files."""
    plan = _plan()
    first_seed = min(point.run.seed for point in plan.points)
    chosen = {
        _setup(point): point
        for point in plan.points
        if point.run.seed == first_seed and _setup(point) in setups
    }
    first_seed_plan = replace(plan, points=tuple(chosen.values()))
    command.execute_plan(first_seed_plan, command.ExecutionOptions(folder, keep_traces=True))
    keys = first_seed_plan.by_key(command.build_program_set(plan.machines))
    return {
        _setup(point): next((folder / dataset.TRACES_FOLDER).glob(f"*-{key[:8]}*")) / "trace.bin"
        for key, point in keys.items()
    }


def hashes_text(trace_folders: Mapping[Setup, Path]) -> str:
    """Returns a line for each trace: its setup, and its hash."""
    rows = sorted(
        (*setup, sha256(file.read_bytes()).hexdigest()) for setup, file in trace_folders.items()
    )
    return "".join(" ".join(map(str, row)) + "\n" for row in rows)


def setups_of(text: str) -> set[Setup]:
    """Returns the setups of what `hashes_text` returned."""
    rows = (line.split() for line in text.splitlines())
    return {(workload, int(cpus), policy) for workload, cpus, policy, _ in rows}


def _plan() -> SweepPlan:
    names = yaml_lines.parse_yaml(f"[{', '.join(policies())}]")
    return command.plan_sweep(SWEEP, {"policies": names})


def _setup(point: Point) -> Setup:
    return (str(point.run.workload), point.run.cpus, str(point.run.policy))


def _comparisons(folder: Path, objective: Objective) -> Iterator[PolicyComparison]:
    """Yields the comparisons by one objective, from the sweep's data set."""
    for scene in ranking.read_values(folder, [objective]):
        place = dict(zip(ranking.SCENE_COLUMNS, scene.scene, strict=True))
        values = {
            policy: tuple(float(value) for value in row)
            for (policy, _), row in zip(scene.setups, scene.values[0], strict=True)
        }
        if len(values) == len(policies()):
            alike = _NOTICEABLE.get(objective.quantity, 0.0)
            yield PolicyComparison(place["workload"], place["cpus"], objective.text, alike, values)

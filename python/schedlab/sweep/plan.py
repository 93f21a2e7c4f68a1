# SPDX-License-Identifier: MIT
"""The plan of a sweep: its points, their keys and their identities in the data set."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from schedlab.base.display.names import visible_line
from schedlab.errors import WrongUsage
from schedlab.machines import SIMULATOR
from schedlab.machines.spec import Machine
from schedlab.sweep.columns import CHANGE_PREFIX, SHAPE_COLUMN, TUNABLE_PREFIX
from schedlab.sweep.expansion import Point
from schedlab.sweep.program_identity import ProgramSet, inputs_hash, run_key
from schedlab.workload.changes import changes_text

Row = dict[str, Any]
_NO_NAME_CHARACTERS = re.compile(r"[^A-Za-z0-9_]+")


@dataclass(frozen=True)
class SweepPlan:
    """Points in order of execution."""

    title: str
    points: tuple[Point, ...]
    source: str = ""
    """The complete sweep file; empty if the sweep has only options."""

    @property
    def machines(self) -> set[Machine]:
        """Returns the machines that the points need."""
        return {point.run.machine for point in self.points}

    @property
    def tools(self) -> tuple[str, ...]:
        """Tools that machines need for workload files, in addition to their parts."""
        loading = {point.run.machine for point in self.points if point.run.file}
        return tuple(sorted({tool for machine in loading for tool in machine.tools}))

    @cached_property
    def dimensions(self) -> tuple[str, ...]:
        """Columns of tunables that are set, of changed workload values, and of shapes."""
        tunables = {name: None for point in self.points for name, _ in point.run.settings}
        places = {place: None for point in self.points for place, _ in point.run.changes}
        columns = {change_column(place): place for place in places}
        if len(columns) < len(places):
            hidden_place = next(place for place in places if place not in columns.values())
            raise WrongUsage(
                f"{hidden_place} and {columns[change_column(hidden_place)]} would share the column "
                f"{change_column(hidden_place)}; change one of them at a time"
            )
        shape = [SHAPE_COLUMN] if any(point.run.shape for point in self.points) else []
        return (*(TUNABLE_PREFIX + name for name in tunables), *columns, *shape)

    def by_key(self, program_set: ProgramSet) -> dict[str, Point]:
        """Returns the points by key, in order."""
        return {run_key(point.run, program_set): point for point in self.points}

    def identity(
        self, point: Point, program_set: ProgramSet, dimensions: Iterable[str] | None = None
    ) -> Row:
        """Returns a run's identity columns.

        `dimensions` are the data set's if it has more than the plan.
        """
        run = point.run
        simulated = run.machine.name == SIMULATOR
        tunables = {TUNABLE_PREFIX + name: value for name, value in point.tunables}
        changes = {change_column(place): value for place, value in run.changes}
        values = {**tunables, **changes, SHAPE_COLUMN: run.shape.name if run.shape else None}
        return {
            "workload": run.label or run.workload,
            "policy": str(run.policy),
            "settings": run.settings_text,
            "changes": changes_text(run.changes),
            "machine": run.machine.name,
            "costs": run.costs.name if simulated else None,
            "cpus": run.cpus,
            "tick_ns": run.tick_ns,
            "limit_ns": run.limit_ns,
            "memory_mib": None if simulated else run.memory_mib,
            "seed": run.seed,
            "made_of": inputs_hash(run, program_set),
            **{name: values.get(name) for name in dimensions or self.dimensions},
        }


def change_column(place: str) -> str:
    """Returns the column of a place in a workload file, such as `with_tasks_cpu_instance`, which
    SQL can use unquoted.
    """
    return CHANGE_PREFIX + _NO_NAME_CHARACTERS.sub("_", place)


def title_of(point: Point) -> str:
    """Returns a point's title for people."""
    run = point.run
    texts = (
        run.label or run.workload_title,
        run.title.removeprefix(f"{run.label}, ") if run.label else run.title,
        run.machine.name,
        f"seed {run.seed}",
    )
    return visible_line(", ".join(part for part in texts if part))


def evenly_spaced(points: Sequence[Point], count: int) -> list[Point]:
    """Returns `count` evenly spaced points."""
    if len(points) <= count:
        return list(points)
    step = (len(points) - 1) / (count - 1)
    return [points[round(number * step)] for number in range(count)]

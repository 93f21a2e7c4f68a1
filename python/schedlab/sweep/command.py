# SPDX-License-Identifier: MIT
"""What `./schedlab sweep` does: plans, runs what is not there yet, and says what is best."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.display.terminal import say
from schedlab.files.json_lines import Node
from schedlab.machines import machine_named
from schedlab.runs.carrying_out import Software, inputs
from schedlab.runs.parts import supply
from schedlab.sweep import dataset, expanding, reading
from schedlab.sweep.description import PolicyEntry
from schedlab.sweep.make import Make, make_of
from schedlab.sweep.one_run import Task
from schedlab.sweep.origin import origin_of
from schedlab.sweep.plan import SweepPlan
from schedlab.toolchain.build import host_processors
from schedlab.toolchain.policies import parse_choices, read_catalogue
from schedlab.toolchain.versions import sitting

if TYPE_CHECKING:
    from schedlab.sweep.crew import Crew


@dataclass(frozen=True)
class Doing:
    """How a sweep is run."""

    out: Path
    scheduler: str | None = None
    certificate: Path | None = None
    """The folder of the certificate by which a scheduler is spoken to."""
    workers: int | None = None
    """Processes of this host; None: one for each CPU."""
    keep_traces: bool = False
    retry_failed: bool = False


@dataclass(frozen=True)
class Done:
    """What came of it."""

    folder: Path
    runs: int
    """The number of the sweep's runs."""
    already: int
    """Those that were there before."""
    failed: int


def plan(path: Path | None, options: Mapping[str, Node], loads: str | None = None) -> SweepPlan:
    """`loads`: at which all workload files are run. Raises WrongUsage for whatever cannot be, before anything is
    written."""
    description = reading.read(path, options, read_catalogue())
    if loads:
        from schedlab.sweep.load_curves import with_loads

        description = with_loads(description, loads)
    source = path.read_bytes().decode() if path else ""
    found = SweepPlan(description.title, tuple(expanding.expand(description)), source)
    _ = found.dimensions  # raises, if columns would have the same name
    return found


def carry_out(wanted: SweepPlan, doing: Doing) -> Done:
    """Runs what is not there yet. Raises Interrupted (schedlab.runs.carrying_out), SchedlabError, WrongUsage."""
    make = built(wanted.machines, wanted.tools)
    points = wanted.by_key(make)
    origin = origin_of(wanted, make)
    dimensions, title = wanted.dimensions, wanted.title
    with dataset.opened(
        doing.out, dimensions, make.to_dict(), title, origin, standards
    ) as data_set:
        for name in data_set.edited:
            say(f"schedlab: {name} is not what it was in {doing.out}: its runs are another setup")
        if doing.retry_failed:
            say(f"schedlab: {data_set.drop_failed()} runs that failed are run again")
        already = sum(key in data_set.statuses for key in points)
        left = [key for key in points if key not in data_set.statuses]
        if already:
            say(f"schedlab: {already} of {len(points)} runs are there already")
        if left:
            run(wanted, make, {key: points[key] for key in left}, data_set, doing)
        failed = sum(data_set.statuses[key] != "success" for key in points)
        return Done(doing.out, len(points), already, failed)


def standards(policy: str) -> Mapping[str, int]:
    """What a policy's tunables are if nothing is set; none of a policy that is not known."""
    (choice,) = parse_choices(policy)
    known = read_catalogue().get(choice.name)
    return PolicyEntry(choice, known, {}, (), None).standard() if known else {}


def built(machines: set[str], tools: tuple[str, ...] = ()) -> Make:
    """Brings up to date what machines start from."""
    names = {*tools, *(name for each in machines for name in machine_named(each).parts)}
    return make_of(machines, supply(sorted(names)), tools)


def run(
    wanted: SweepPlan,
    make: Make,
    points: Mapping[str, expanding.Point],
    data_set: dataset.DataSet,
    doing: Doing,
) -> None:
    """Runs them on workers of this host, or of a cluster."""
    from schedlab.sweep import execution
    from schedlab.sweep.progress import Board

    traces = traces_of(doing)
    said = sitting()
    tasks = [
        Task(key, point.run, manifest_of(point, make, said) if traces else {})
        for key, point in points.items()
    ]
    identities = {
        key: wanted.identity(point, make, data_set.dimensions) for key, point in points.items()
    }
    with crew_of(doing, len(tasks)) as crew, Board(len(tasks)) as board:
        execution.carry_out(tasks, identities, crew, make, data_set, board, traces)


def traces_of(doing: Doing) -> Path | None:
    """Returns the folder of runs that are kept, which is there then; None: none are."""
    if not doing.keep_traces:
        return None
    traces = doing.out / dataset.TRACES
    traces.mkdir(exist_ok=True)
    return traces


def crew_of(doing: Doing, most: int) -> AbstractContextManager[Crew]:
    """Returns the crew of a cluster, which needs Dask, or of this host: no more workers than can
    have a run."""
    if doing.scheduler:
        from schedlab.sweep import cluster

        return cluster.connected(doing.scheduler, doing.certificate)
    from schedlab.sweep import processes

    return processes.local(min(doing.workers or host_processors(), most))


def manifest_of(point: expanding.Point, make: Make, said: Mapping[str, Any]) -> dict[str, Any]:
    """What the manifest says of a run with a kept folder, as `./schedlab run` would say it."""
    facts = dict(make.machines[point.run.machine])
    version = facts.pop("machine_version")
    base = Software({}, {**said, **facts})
    found = inputs(point.run, machine_named(point.run.machine), base)
    return {**found, "machine_version": version, "host": "a sweep's worker"}

# SPDX-License-Identifier: MIT
"""`./schedlab sweep`: plans a sweep and executes missing runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.base.display.terminal import say
from schedlab.base.files.json_lines import Node
from schedlab.base.files.reading import read_text
from schedlab.base.host.processor import host_processors
from schedlab.base.toolchain.needs import need_extra
from schedlab.base.toolchain.policies import parse_choices, read_catalogue
from schedlab.base.toolchain.versions import sitting
from schedlab.machines.spec import Machine
from schedlab.runs.executor import Workers, execute, local
from schedlab.runs.parts import supply
from schedlab.runs.plan_execution import Interrupted, Software, inputs
from schedlab.runs.worker import Laboratory, Result, Task
from schedlab.sweep import dataset, description_reader, expansion
from schedlab.sweep.description import PolicyEntry
from schedlab.sweep.origin import origin_of
from schedlab.sweep.plan import SweepPlan
from schedlab.sweep.program_identity import Make, check_worker, make_of
from schedlab.sweep.rows import rows_of

if TYPE_CHECKING:
    from schedlab.runs.progress import Board

_PROCESSES_FROM = 24
"""Minimum number of runs for workers in processes instead of threads."""
_KEEP_SECONDS = (0.3, 30.0)
"""Minimum and maximum seconds between writes of finished runs; long sweeps write larger parts."""
_KEEP_ROWS = 5000


@dataclass(frozen=True)
class Doing:
    """How a sweep is executed."""

    out: Path
    scheduler: str | None = None
    certificate: Path | None = None
    """Folder of the certificate for the scheduler's connection."""
    workers: int | None = None
    """Processes of this host; None means one for each CPU."""
    keep_traces: bool = False
    retry_failed: bool = False


@dataclass(frozen=True)
class Done:
    """The outcome of a sweep."""

    folder: Path
    runs: int
    """Number of the sweep's runs."""
    already: int
    """Runs that existed before."""
    failed: int


def plan(path: Path | None, options: Mapping[str, Node], loads: str | None = None) -> SweepPlan:
    """Plans a sweep; `loads` are loads for all workload files.

    Raises WrongUsage before anything is written.
    """
    description = description_reader.read(path, options, read_catalogue())
    if loads:
        from schedlab.sweep.load_curves import with_loads

        description = with_loads(description, loads)
    source = read_text(path) if path else ""
    sweep_plan = SweepPlan(description.title, tuple(expansion.expand(description)), source)
    _ = sweep_plan.dimensions  # raises, if columns would have the same name
    return sweep_plan


def carry_out(plan: SweepPlan, doing: Doing) -> Done:
    """Executes missing runs.

    Raises Interrupted (schedlab.runs.plan_execution), SchedlabError, WrongUsage.
    """
    make = built(plan.machines, plan.tools)
    points = plan.by_key(make)
    origin = origin_of(plan, make)
    dimensions, title = plan.dimensions, plan.title
    with dataset.opened(
        doing.out, dimensions, make.to_dict(), title, origin, standards
    ) as data_set:
        for name in data_set.edited:
            say(
                f"schedlab: {name} has changed since the sweep in {doing.out}: its runs "
                "are another configuration"
            )
        if doing.retry_failed:
            say(f"schedlab: running {data_set.drop_failed()} failed runs again")
        already = sum(key in data_set.statuses for key in points)
        left = [key for key in points if key not in data_set.statuses]
        if already:
            say(f"schedlab: {already} of {len(points)} runs exist already")
        if left:
            with workers_of(doing, len(left)) as (workers, board):
                Execution(plan, make, data_set, doing, workers, board).run(
                    {key: points[key] for key in left}
                )
        failed = sum(data_set.statuses[key] != "success" for key in points)
        return Done(doing.out, len(points), already, failed)


def standards(policy: str) -> Mapping[str, int]:
    """Returns the defaults of a policy's tunables; empty for unknown policies."""
    (choice,) = parse_choices(policy)
    known = read_catalogue().get(choice.name)
    return PolicyEntry(choice, known, {}, (), None).standard() if known else {}


def built(machines: set[Machine], tools: tuple[str, ...] = ()) -> Make:
    """Builds the parts that machines start from."""
    names = {*tools, *(name for machine in machines for name in machine.parts)}
    return make_of(machines, supply(sorted(names)), tools)


class Execution:
    """Executes points of a sweep and adds their results to its data set."""

    def __init__(
        self,
        plan: SweepPlan,
        make: Make,
        data_set: dataset.DataSet,
        doing: Doing,
        workers: Workers,
        board: Board,
    ) -> None:
        self.plan, self.make, self.data_set = plan, make, data_set
        self.workers, self.board = workers, board
        self.traces = traces_of(doing)
        check = partial(check_worker, make.to_dict(), self.traces)
        self.laboratory = Laboratory(make.programs, rows_of, check)
        self.sitting_id = sitting()
        self.finished: list[tuple[Mapping[str, Any], Result]] = []
        self.began_s = self.last_write_s = time.monotonic()

    def run(self, points: Mapping[str, expansion.Point]) -> None:
        """Executes points by key. Raises Interrupted; finished runs are then in the data set."""
        self.points = points
        tasks = [self.task(key, point) for key, point in points.items()]
        try:
            number = execute(tasks, self.workers, self.laboratory, self)
        finally:
            self.keep()
        if number:
            raise Interrupted(number)

    def task(self, key: str, point: expansion.Point) -> Task:
        if not self.traces:
            return Task(key, point.run)
        manifest = manifest_of(point, self.make, self.sitting_id)
        return Task(key, point.run, manifest, self.traces / f"{point.run.name}-{key[:8]}")

    def started(self, task: Task) -> None:
        pass

    def ended(self, task: Task, result: Result) -> None:
        identity = self.plan.identity(self.points[task.key], self.make, self.data_set.dimensions)
        # Uses the plan's key object; each result has a copy, which would add up in a long sweep.
        self.finished.append((identity, replace(result, key=task.key)))
        self.board.ended(task.run, result.outcome, result.seconds)

    def poll(self) -> None:
        """Writes finished runs: the first ones soon, later ones in larger parts."""
        now = time.monotonic()
        least, most = _KEEP_SECONDS
        due = min(most, max(least, (now - self.began_s) / 20))
        if len(self.finished) >= _KEEP_ROWS or now - self.last_write_s >= due:
            self.keep()

    def keep(self) -> None:
        finished, self.finished = self.finished, []
        self.data_set.add(finished)
        self.last_write_s = time.monotonic()


def traces_of(doing: Doing) -> Path | None:
    """Creates and returns the folder of stored runs, or None if runs are not stored."""
    if not doing.keep_traces:
        return None
    traces = (doing.out / dataset.TRACES).absolute()
    traces.mkdir(exist_ok=True)
    return traces


@contextmanager
def workers_of(doing: Doing, most: int) -> Iterator[tuple[Workers, Board]]:
    """Yields workers of a cluster (needs Dask) or of this host, at most `most`, and a progress board."""
    from schedlab.runs.progress import Board

    with ExitStack() as stack:
        count = min(doing.workers or host_processors(), most)
        workers: AbstractContextManager[Workers]
        if doing.scheduler:
            need_extra("sweep")
            from schedlab.runs import cluster

            workers = cluster.connected(doing.scheduler, doing.certificate)
        else:
            workers = local(count, processes=most >= _PROCESSES_FROM)
        board = Board((), count, total=most)
        yield stack.enter_context(workers), stack.enter_context(board)


def manifest_of(
    point: expansion.Point, make: Make, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the manifest of a stored run, like that of `./schedlab run`."""
    facts = dict(make.machines[point.run.machine.name])
    version = facts.pop("machine_version")
    base = Software({}, {**parameters, **facts})
    manifest = inputs(point.run, base)
    return {**manifest, "machine_version": version, "host": "a sweep's worker"}

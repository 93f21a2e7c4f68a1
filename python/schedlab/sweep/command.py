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
from schedlab.base.host.processor import count_host_cpus
from schedlab.base.toolchain.needs import need_extra
from schedlab.base.toolchain.policies import parse_choices, read_catalogue
from schedlab.base.toolchain.versions import process_facts
from schedlab.errors import WrongUsage, format_parameter
from schedlab.machines import SIMULATOR
from schedlab.machines.published import is_published
from schedlab.machines.spec import Machine
from schedlab.runs.executor import Workers, execute, local_workers
from schedlab.runs.parts import build_parts
from schedlab.runs.perform import check_schedulers
from schedlab.runs.plan_execution import Interrupted, Software, manifest_inputs
from schedlab.runs.worker import Laboratory, Result, Task
from schedlab.sweep import dataset, description_reader, expansion
from schedlab.sweep.description import PolicyEntry
from schedlab.sweep.origin import make_origin
from schedlab.sweep.plan import SweepPlan
from schedlab.sweep.program_identity import ProgramSet, check_worker, read_program_set
from schedlab.sweep.rows import select_rows

if TYPE_CHECKING:
    from schedlab.runs.progress import ProgressBoard

_RUNS_FOR_PROCESSES_MIN = 24
"""Minimum number of runs for workers in processes instead of threads."""
_WRITE_INTERVAL_S = (0.3, 30.0)
"""Minimum and maximum seconds between writes of finished runs; long sweeps write larger parts."""
_WRITE_ROWS_MAX = 5000


@dataclass(frozen=True)
class ExecutionOptions:
    """Where and how a sweep is executed."""

    out: Path
    scheduler: str | None = None
    certificate: Path | None = None
    """Folder of the certificate for the scheduler's connection."""
    workers: int | None = None
    """Processes of this host; None means one for each CPU."""
    keep_traces: bool = False
    retry_failed: bool = False


@dataclass(frozen=True)
class SweepOutcome:
    """The outcome of a sweep."""

    folder: Path
    runs: int
    """Number of the sweep's runs."""
    existing_runs: int
    """Runs that existed before."""
    failed: int


def plan_sweep(
    path: Path | None, options: Mapping[str, Node], loads: str | None = None
) -> SweepPlan:
    """Plans a sweep; `loads` are loads for all workload files.

    Raises WrongUsage before anything is written.
    """
    description = description_reader.read_description(path, options, read_catalogue())
    if loads:
        from schedlab.sweep.load_curves import with_loads

        description = with_loads(description, loads)
    source = read_text(path) if path else ""
    sweep_plan = SweepPlan(description.title, tuple(expansion.expand(description)), source)
    _ = sweep_plan.dimensions  # raises, if columns would have the same name
    return sweep_plan


def execute_plan(plan: SweepPlan, execution: ExecutionOptions) -> SweepOutcome:
    """Executes missing runs.

    Raises Interrupted (schedlab.runs.plan_execution), SchedlabError, WrongUsage.
    """
    check_sched_ext_schedulers(plan, on_cluster=bool(execution.scheduler))
    program_set = build_program_set(plan.machines, plan.tools)
    points = plan.by_key(program_set)
    origin = make_origin(plan, program_set)
    dimensions, title = plan.dimensions, plan.title
    with dataset.open_data_set(
        execution.out, dimensions, program_set.to_dict(), title, origin, tunable_defaults
    ) as data_set:
        for name in data_set.edited_files:
            say(
                f"schedlab: {name} has changed since the sweep in {execution.out}: its runs "
                "are another configuration"
            )
        if execution.retry_failed:
            say(f"schedlab: running {data_set.drop_failed()} failed runs again")
        existing_runs = sum(key in data_set.statuses for key in points)
        missing_keys = [key for key in points if key not in data_set.statuses]
        if existing_runs:
            say(f"schedlab: {existing_runs} of {len(points)} runs exist already")
        if missing_keys:
            with open_workers(execution, len(missing_keys)) as (workers, board):
                Execution(plan, program_set, data_set, execution, workers, board).run(
                    {key: points[key] for key in missing_keys}
                )
        failed = sum(data_set.statuses[key] != "success" for key in points)
        return SweepOutcome(execution.out, len(points), existing_runs, failed)


def check_sched_ext_schedulers(plan: SweepPlan, *, on_cluster: bool) -> None:
    """Loads the sched_ext schedulers of a sweep, and prints their warnings.

    Raises WrongUsage if one cannot run, or if the sweep runs it elsewhere.
    """
    runs = [point.run for point in plan.points if is_published(point.run.policy)]
    for run in runs:
        if run.machine.name != SIMULATOR:
            raise WrongUsage(
                f"sweeps run sched_ext schedulers on the simulator only, not on {run.machine.name}",
                what=format_parameter("policy", run.policy),
                fix="choose another policy, or `machine='sim'`",
            )
    if runs and on_cluster:
        raise WrongUsage(
            "the workers of a cluster lack the object",
            what=format_parameter("policy", runs[0].policy),
            fix="leave out `scheduler=`, so that the sweep runs on this host",
        )
    check_schedulers(runs)


def tunable_defaults(policy: str) -> Mapping[str, int]:
    """Returns the defaults of a policy's tunables; empty for unknown policies."""
    (choice,) = parse_choices(policy)
    policy_description = read_catalogue().get(choice.name)
    return (
        PolicyEntry(choice, policy_description, {}, (), None).standard()
        if policy_description
        else {}
    )


def build_program_set(machines: set[Machine], tools: tuple[str, ...] = ()) -> ProgramSet:
    """Builds the parts that machines start from."""
    names = {*tools, *(name for machine in machines for name in machine.parts)}
    return read_program_set(machines, build_parts(sorted(names)), tools)


class Execution:
    """Executes points of a sweep and adds their results to its data set."""

    def __init__(
        self,
        plan: SweepPlan,
        program_set: ProgramSet,
        data_set: dataset.DataSet,
        execution: ExecutionOptions,
        workers: Workers,
        board: ProgressBoard,
    ) -> None:
        """Prepares to execute points of the plan with these workers."""
        self.plan, self.make, self.data_set = plan, program_set, data_set
        self.workers, self.board = workers, board
        self.traces = create_traces_folder(execution)
        check = partial(check_worker, program_set.to_dict(), self.traces)
        self.laboratory = Laboratory(program_set.programs, select_rows, check=check)
        self.sitting_id = process_facts()
        self.finished: list[tuple[Mapping[str, Any], Result]] = []
        self.began_s = self.last_write_s = time.monotonic()

    def run(self, points: Mapping[str, expansion.Point]) -> None:
        """Executes points by key. Raises Interrupted; finished runs are then in the data set."""
        self.points = points
        tasks = [self.task(key, point) for key, point in points.items()]
        try:
            number = execute(tasks, self.workers, self.laboratory, self)
        finally:
            self.write_finished()
        if number:
            raise Interrupted(number)

    def task(self, key: str, point: expansion.Point) -> Task:
        """Returns the task that executes a point."""
        if not self.traces:
            return Task(key, point.run)
        manifest = make_manifest(point, self.make, self.sitting_id)
        return Task(key, point.run, manifest, self.traces / f"{point.run.name}-{key[:8]}")

    def started(self, task: Task) -> None:
        """Notes that a task has started."""

    def ended(self, task: Task, result: Result) -> None:
        """Collects the result of a task."""
        identity = self.plan.identity(self.points[task.key], self.make, self.data_set.dimensions)
        # Uses the plan's key object; each result has a copy, which would add up in a long sweep.
        self.finished.append((identity, replace(result, key=task.key)))
        self.board.ended(task.run, result.outcome, result.seconds)

    def poll(self) -> None:
        """Writes finished runs: the first ones soon, later ones in larger parts."""
        now = time.monotonic()
        interval_min_s, interval_max_s = _WRITE_INTERVAL_S
        write_interval_s = min(interval_max_s, max(interval_min_s, (now - self.began_s) / 20))
        if len(self.finished) >= _WRITE_ROWS_MAX or now - self.last_write_s >= write_interval_s:
            self.write_finished()

    def write_finished(self) -> None:
        """Writes all finished runs to the data set."""
        finished, self.finished = self.finished, []
        self.data_set.add(finished)
        self.last_write_s = time.monotonic()


def create_traces_folder(execution: ExecutionOptions) -> Path | None:
    """Creates and returns the folder of stored runs, or None if runs are not stored."""
    if not execution.keep_traces:
        return None
    traces = (execution.out / dataset.TRACES_FOLDER).absolute()
    traces.mkdir(exist_ok=True)
    return traces


@contextmanager
def open_workers(
    execution: ExecutionOptions, workers_max: int
) -> Iterator[tuple[Workers, ProgressBoard]]:
    """Yields workers of a cluster (needs Dask) or of this host, at most `workers_max`, and a progress board."""
    from schedlab.runs.progress import ProgressBoard

    with ExitStack() as stack:
        count = min(execution.workers or count_host_cpus(), workers_max)
        workers: AbstractContextManager[Workers]
        if execution.scheduler:
            need_extra("sweep")
            from schedlab.runs import cluster

            workers = cluster.connect_workers(execution.scheduler, execution.certificate)
        else:
            workers = local_workers(count, processes=workers_max >= _RUNS_FOR_PROCESSES_MIN)
        board = ProgressBoard((), count, total=workers_max)
        yield stack.enter_context(workers), stack.enter_context(board)


def make_manifest(
    point: expansion.Point, program_set: ProgramSet, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the manifest of a stored run, like that of `./schedlab run`."""
    facts = dict(program_set.machines[point.run.machine.name])
    version = facts.pop("machine_version")
    base = Software({}, {**parameters, **facts})
    manifest = manifest_inputs(point.run, base)
    return {**manifest, "machine_version": version, "host": "a sweep's worker"}

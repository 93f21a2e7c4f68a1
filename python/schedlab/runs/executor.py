# SPDX-License-Identifier: MIT
"""Executes many runs in parallel. Each run is executed once, even if a worker dies.

Workers are threads or processes of this host (`local_workers`), or workers of a Dask cluster
(`schedlab.runs.cluster`).
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from glob import escape
from multiprocessing import parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from schedlab.base.host.supervision import catch_signals
from schedlab.base.host.workers import SPAWN_CONTEXT, prepare_worker
from schedlab.errors import SchedlabError
from schedlab.runs.results import UNFINISHED_PREFIX
from schedlab.runs.worker import Laboratory, Result, Task, record_worker_death

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_BATCH_SECONDS = 0.5
"""Target duration of a batch of short runs, so that communication costs little."""
_BATCH_MAX = 500
_POLL_INTERVAL_S = 0.2
_STOP_GRACE_S = 30.0
"""Seconds that workers have for finishing after a stop."""
Batch = Future[list[Result]]


class Workers(Protocol):
    """A group of workers that execute runs."""

    death: type[Exception]
    """The exception that a batch raises if its worker died."""
    runs_single_tasks: bool
    """True if runs are assigned one at a time; false if in batches, to reduce overhead."""

    def prepare(self, laboratory: Laboratory) -> None:
        """Prepares all workers, including later ones.

        Raises SchedlabError if a worker is unfit.
        """

    def slots(self) -> int:
        """Returns the current number of slots, which are CPUs or threads.

        Raises SchedlabError if all workers are lost.
        """

    def cpus(self, task: Task) -> int:
        """Returns how many slots a run occupies."""

    def give(self, tasks: Sequence[Task]) -> Batch:
        """Assigns a batch of runs to a worker, and returns the future results."""

    def stop(self) -> None:
        """Stops all runs in progress."""


class Observer(Protocol):
    """Receives the progress of execution."""

    def started(self, task: Task) -> None: ...

    def ended(self, task: Task, result: Result) -> None: ...

    def poll(self) -> None:
        """Called several times per second."""


def execute(
    tasks: Sequence[Task], workers: Workers, laboratory: Laboratory, observer: Observer
) -> int:
    """Executes all runs.

    Returns 0 when they are done, or the number of the signal that stopped execution early. Raises
    SchedlabError if all workers are lost, or a worker is unfit.
    """
    with catch_signals() as caught:
        workers.prepare(laboratory)
        _Assigner(tasks, workers, observer).conduct(lambda: bool(caught.number))
    return caught.number


class WaitingRuns:
    """Runs that wait for free CPUs. A small run may overtake a run that needs more CPUs."""

    def __init__(self, tasks: Sequence[Task], cpus: Callable[[Task], int]) -> None:
        self._lines: dict[int, deque[tuple[int, Task]]] = {}
        """By number of CPUs: tasks, with their positions in the overall order."""
        self._left = len(tasks)
        for index, task in enumerate(tasks):
            self._lines.setdefault(cpus(task), deque()).append((index, task))

    def __len__(self) -> int:
        return self._left

    def next_cpus(self, free: int) -> int:
        """Returns the number of CPUs of the first run that needs at most `free` CPUs; 0 if there is none."""
        fitting = [
            (queue[0][0], cpus) for cpus, queue in self._lines.items() if queue and cpus <= free
        ]
        return min(fitting)[1] if fitting else 0

    def first(self, cpus: int) -> Task | None:
        """Returns the next run that needs this number of CPUs."""
        queue = self._lines[cpus]
        return queue[0][1] if queue else None

    def take(self, cpus: int) -> Task:
        self._left -= 1
        return self._lines[cpus].popleft()[1]

    def put_back(self, tasks: Sequence[Task], cpus: int) -> None:
        """Puts runs back before all others, in their old order."""
        self._left += len(tasks)
        self._lines[cpus].extendleft((-1, task) for task in reversed(tasks))


class _Assigner:
    """Assigns runs to workers, only a few in advance, until all are done."""

    def __init__(self, tasks: Sequence[Task], workers: Workers, observer: Observer) -> None:
        self.workers = workers
        self.observer = observer
        self.waiting = WaitingRuns(tasks, workers.cpus)
        self.lone_tasks: deque[Task] = deque()
        """Runs of batches whose worker died; they are executed one by one at the end."""
        self.running_batches: dict[Batch, tuple[list[Task], int]] = {}
        """Batches in progress, with their CPUs. 0: the batch runs alone, so if its worker dies, its
        run is the cause.
        """
        self.usual_seconds_by_kind: dict[tuple[Any, ...], float] = {}
        """Typical duration of runs in seconds, by their main properties."""

    def conduct(self, is_stopped: Callable[[], bool]) -> None:
        while (self.waiting or self.lone_tasks or self.running_batches) and not is_stopped():
            self.fill()
            self.take_all()
            self.observer.poll()
        if self.running_batches:
            self.workers.stop()
            wait(self.running_batches, _STOP_GRACE_S)
            self.take_all(stopped=True)

    # --- assigning

    def fill(self) -> None:
        """Assigns waiting runs to the workers, as far as CPUs are free."""
        slots = self.workers.slots()
        while cpus := self.waiting.next_cpus(
            slots - sum(n for _, n in self.running_batches.values())
        ):
            self.give(self.next_batch(cpus, slots), cpus)
        if slots and self.lone_tasks and not self.waiting and not self.running_batches:
            self.give([self.lone_tasks.popleft()], 0)

    def next_batch(self, cpus: int, slots: int) -> list[Task]:
        """Returns the runs of the next batch.

        A run of unknown duration forms a batch alone. Batches become smaller towards the end, so
        that all workers finish at about the same time.
        """
        batch_max = min(_BATCH_MAX, max(1, len(self.waiting) // slots))
        batch = [self.waiting.take(cpus)]
        seconds = self.usual_seconds(batch[0])
        while not self.workers.runs_single_tasks and len(batch) < batch_max:
            task = self.waiting.first(cpus)
            seconds += self.usual_seconds(task) if task else _BATCH_SECONDS
            if seconds > _BATCH_SECONDS:
                break
            batch.append(self.waiting.take(cpus))
        return batch

    def give(self, tasks: list[Task], cpus: int) -> None:
        for task in tasks:
            self.observer.started(task)
        self.running_batches[self.workers.give(tasks)] = tasks, cpus

    # --- collecting

    def take_all(self, *, stopped: bool = False) -> None:
        """Waits for finished batches, and reports their results."""
        if not self.running_batches:
            time.sleep(_POLL_INTERVAL_S)  # all workers are gone
        done, _ = wait(self.running_batches, 0 if stopped else _POLL_INTERVAL_S, FIRST_COMPLETED)
        for batch in sorted(done, key=[*self.running_batches].index):
            tasks, cpus = self.running_batches.pop(batch)
            try:
                results = batch.result()
            except CancelledError:  # the worker was lost before it returned results
                self.waiting.put_back(tasks, cpus or self.workers.cpus(tasks[0]))
            except self.workers.death:
                self.take_death(tasks, alone=not (cpus or stopped))
            except SchedlabError:
                raise
            except Exception as error:
                description = f"{type(error).__name__}: {error}"
                raise SchedlabError(
                    f"a worker failed outside of a run: {description}; run the command again, "
                    "and report the message if it fails again"
                ) from error
            else:
                for task, result in zip(tasks, results, strict=False):
                    self.learn(task, result.seconds)
                    self.observer.ended(task, result)
                if unfinished := tasks[
                    len(results) :
                ]:  # these runs had not begun when the worker was stopped
                    self.waiting.put_back(unfinished, cpus or self.workers.cpus(unfinished[0]))

    def take_death(self, tasks: list[Task], alone: bool) -> None:
        """Removes what a dead worker left; repeats its runs one by one, or reports a lone one."""
        for task in tasks:
            if task.place:
                name = f"{UNFINISHED_PREFIX}{escape(task.place.name)}-????????"
                for folder in task.place.parent.glob(name):
                    shutil.rmtree(folder, ignore_errors=True)
        if not alone:
            self.lone_tasks.extend(tasks)
            return
        for task in tasks:
            self.observer.ended(task, record_worker_death(task))

    def learn(self, task: Task, seconds: float) -> None:
        """Updates the typical duration; recent runs have the largest weight."""
        for kind in _duration_kinds(task):
            usual = self.usual_seconds_by_kind.get(kind, seconds)
            self.usual_seconds_by_kind[kind] = 0.8 * usual + 0.2 * seconds

    def usual_seconds(self, task: Task) -> float:
        """Returns how long such a task usually takes; a guess if none has ended yet."""
        usual = (self.usual_seconds_by_kind.get(kind) for kind in _duration_kinds(task))
        return next((seconds for seconds in usual if seconds is not None), _BATCH_SECONDS)


def _duration_kinds(task: Task) -> tuple[tuple[Any, ...], ...]:
    """Returns properties that determine a run's duration, from the most exact to the least."""
    run = task.run
    rough = (run.machine.name, run.workload)
    return ((*rough, run.cpus, run.policy.name), rough)


# --- workers of this host


@contextmanager
def local_workers(count: int, *, processes: bool) -> Iterator[Workers]:
    """Provides `count` workers of this host for the duration of a `with` block.

    Worker processes compute metrics in parallel, and survive each other's death; starting one takes
    as long as measuring about 50 runs. Threads suffice if the machines need more time than the
    metrics.
    """
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        workers = (_Processes if processes else _Threads)(count, Path(folder))
        try:
            yield workers
        finally:
            workers.stop()
            workers.leave()


class _LocalWorkers:
    """Common part of _Threads and _Processes; implements Workers."""

    death: type[Exception] = BrokenProcessPool

    def __init__(self, count: int, scratch: Path) -> None:
        self.count = count
        self.scratch = scratch
        self.laboratory: Laboratory | None = None

    def slots(self) -> int:
        return self.count

    def cpus(self, task: Task) -> int:
        assert self.laboratory
        run = task.run
        return min(self.count, run.machine.host_cpus(run.cpus))


class _Threads(_LocalWorkers):
    """Workers that are threads of this process."""

    runs_single_tasks = True

    def prepare(self, laboratory: Laboratory) -> None:
        if not self.laboratory:
            self.laboratory = laboratory
            self.pool = ThreadPoolExecutor(self.count)
            laboratory.set_up(f"worker {os.getpid()}", self.scratch)

    def give(self, tasks: Sequence[Task]) -> Batch:
        assert self.laboratory
        return self.pool.submit(self.laboratory.perform_all, tasks)

    def stop(self) -> None:
        if self.laboratory:
            self.laboratory.stopping = True

    def leave(self) -> None:
        if self.laboratory:
            self.pool.shutdown(cancel_futures=True)
            self.laboratory.tear_down()


class _Processes(_LocalWorkers):
    """Workers that are processes.

    They communicate through pipes, which other users cannot reach. Each process is the only one of
    its ProcessPoolExecutor, because the death of a process breaks the whole pool. The processes stop
    when a second pipe is closed, which also happens if this process dies.

    """

    runs_single_tasks = False

    def prepare(self, laboratory: Laboratory) -> None:
        if not self.laboratory:
            self.laboratory = laboratory
            self.far_end, self.pipe = SPAWN_CONTEXT.Pipe(duplex=False)
            self.begin = partial(_begin_worker, laboratory, self.far_end, self.scratch)
            self.pools = [self.start() for _ in range(self.count)]
            self.batches: list[Batch | None] = [None] * self.count

    def start(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, SPAWN_CONTEXT, self.begin)

    def give(self, tasks: Sequence[Task]) -> Batch:
        free = next(n for n, batch in enumerate(self.batches) if batch is None or batch.done())
        try:
            batch = self.pools[free].submit(_perform_batch, tuple(tasks))
        except BrokenProcessPool:
            self.pools[free].shutdown()
            self.pools[free] = self.start()
            batch = self.pools[free].submit(_perform_batch, tuple(tasks))
        self.batches[free] = batch
        return batch

    def stop(self) -> None:
        if self.laboratory:
            self.pipe.close()

    def leave(self) -> None:
        if self.laboratory:
            for pool in self.pools:
                pool.shutdown(cancel_futures=True)
            self.far_end.close()


# --- in a worker process


class _Worker:
    """The state of a worker process. `scratch` is the folder to prepare it in; None once it is prepared."""

    laboratory: Laboratory
    scratch: Path | None


def _begin_worker(laboratory: Laboratory, pipe: Connection[Any, Any], scratch: Path) -> None:
    _Worker.laboratory, _Worker.scratch = laboratory, scratch
    prepare_worker()
    threading.Thread(target=_watch_parent, args=(pipe,), daemon=True).start()


def _watch_parent(pipe: Connection[Any, Any]) -> None:
    """Stops the runs when the pipe from the parent is closed, and then ends this worker process."""
    with suppress(EOFError, OSError):
        pipe.recv()
    laboratory, parent = _Worker.laboratory, parent_process()
    assert parent
    laboratory.stopping = True
    parent.join()
    while laboratory.busy:
        time.sleep(_POLL_INTERVAL_S)
    os._exit(1)


def _perform_batch(tasks: Sequence[Task]) -> list[Result]:
    """Executes a batch in a worker process; the first batch also prepares the worker. Raises Unfit."""
    laboratory = _Worker.laboratory
    if _Worker.scratch:
        laboratory.set_up(f"worker {os.getpid()}", _Worker.scratch)
        _Worker.scratch = None
    return laboratory.perform_all(tasks)

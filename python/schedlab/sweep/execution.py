# SPDX-License-Identifier: MIT
"""Has workers do the runs of a sweep, and keeps what comes of them."""

from __future__ import annotations

import queue
import secrets
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from distributed import Client, Future, KilledWorker

from schedlab.errors import SchedlabError
from schedlab.outcome import Outcome
from schedlab.sweep import cluster, worker
from schedlab.sweep.dataset import DataSet
from schedlab.sweep.make import Make
from schedlab.sweep.one_run import Result, Rows, Task

BATCH_SECONDS = 0.5
"""Short runs are given to a worker together: so long, and what Dask takes for a task is little."""
BATCH_MAX = 500
_AHEAD = 2
"""Batches for each thread of the workers: one is done, the next lies ready."""
_POLL_SECONDS = 0.2
_THREADS_SECONDS = 2.0
"""After which it is asked again how many workers there are."""
_PATIENCE_SECONDS = 30.0
"""Without workers, until that is said."""
_KEEP_SECONDS = (0.3, 30.0)
"""Finished runs are kept after so long: the first soon, those of a long sweep in larger parts."""
_KEEP_ROWS = 5000
_LEAVE_SECONDS = 10.0

WORKER_DIED = "worker-died"


class Told(Protocol):
    """Who is told how far it is."""

    def ended(self, task: Task, result: Result) -> None: ...

    def waiting_for_workers(self) -> None: ...


@dataclass(frozen=True)
class Batch:
    """What a worker was given."""

    future: Future[list[Result]]
    tasks: tuple[Task, ...]
    alone: bool
    """Nothing else was under way: if its worker dies, it was this run that did it."""


class Interrupted(Exception):
    """Somebody wants it to end. What was finished is kept."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def carry_out(
    tasks: Sequence[Task],
    identities: Mapping[str, Mapping[str, Any]],
    client: Client,
    make: Make,
    data_set: DataSet,
    told: Told,
    traces: Path | None = None,
    local: bool = True,
) -> None:
    """Does all runs, each once, and adds them to the data set. `identities`: by their keys.

    Raises Interrupted on SIGINT, SIGTERM and SIGHUP, and SchedlabError if the scheduler is lost or
    a worker is unfit; what was finished is in the data set then.
    """
    name = f"schedlab-sweep-{secrets.token_hex(4)}"
    with _signals_caught() as caught:
        prepare(client, worker.Laboratory(name, make, traces, local))
        conductor = _Conductor(name, tasks, identities, client, data_set, told, caught)
        try:
            conductor.conduct()
        finally:
            conductor.keep()
            leave(client, name)
    if caught.number:
        raise Interrupted(caught.number)


def prepare(client: Client, laboratory: worker.Laboratory) -> None:
    """All workers, those that come later too, get what they need, or are found unfit."""
    try:
        client.register_plugin(laboratory)
    except worker.Unfit as error:
        raise SchedlabError(str(error)) from None
    except Exception as error:
        raise SchedlabError(
            f"the workers cannot take part: {type(error).__name__}: {error}. Start them in the same"
            " version of schedlab: ./schedlab dask worker"
        ) from error


def leave(client: Client, name: str) -> None:
    """Nothing of the sweep goes on, and nothing of it stays with the workers."""
    if client.status != "running":
        return
    with suppress(Exception):
        client.run(worker.stop, name, on_error="ignore")
        client.unregister_worker_plugin(name)  # type: ignore[no-untyped-call]


class _Caught:
    number = 0


@contextmanager
def _signals_caught() -> Iterator[_Caught]:
    """The first signal is noted; a second one of the same kind ends the program as it would."""
    caught = _Caught()
    if threading.current_thread() is not threading.main_thread():
        yield caught
        return

    def catch(number: int, frame: FrameType | None) -> None:
        caught.number = number
        signal.signal(number, before[signal.Signals(number)])

    before = {
        number: signal.signal(number, catch)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Conductor:
    """Keeps all workers busy, and no more than a little ahead of them."""

    def __init__(
        self,
        name: str,
        tasks: Sequence[Task],
        identities: Mapping[str, Mapping[str, Any]],
        client: Client,
        data_set: DataSet,
        told: Told,
        caught: _Caught,
    ) -> None:
        self.name = name
        self.waiting = deque(tasks)
        self.suspects: deque[Task] = deque()
        """Runs of batches whose workers died: done one by one, at the end."""
        self.identities = identities
        self.client = client
        self.data_set = data_set
        self.told = told
        self.caught = caught
        self.under_way: dict[str, Batch] = {}
        self.done: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.batches = 0
        self.threads = 0
        self.threads_known = 0.0
        self.alive = time.monotonic()
        self.usual: dict[tuple[Any, ...], float] = {}
        """Seconds that runs take, by what decides that roughly."""
        self.finished: list[tuple[Mapping[str, Any], Result]] = []
        self.began = self.kept = time.monotonic()

    def conduct(self) -> None:
        while (self.waiting or self.suspects or self.under_way) and not self.caught.number:
            self.count_threads()
            self.fill()
            with suppress(queue.Empty):
                self.take(self.done.get(timeout=_POLL_SECONDS))
                while True:
                    self.take(self.done.get_nowait())
            self.keep_if_due()
        with suppress(queue.Empty):
            while True:
                self.take(self.done.get_nowait())

    # --- giving

    def count_threads(self) -> None:
        now = time.monotonic()
        if self.client.status != "running":
            raise SchedlabError(
                "the scheduler of Dask is gone; what was finished is kept. Start it again, and go on"
                " with the same command"
            )
        if now - self.threads_known < _THREADS_SECONDS:
            return
        self.threads, self.threads_known = cluster.threads(self.client), now
        if self.threads:
            self.alive = now
        elif now - self.alive > _PATIENCE_SECONDS:
            self.told.waiting_for_workers()
            self.alive = now

    def fill(self) -> None:
        while self.waiting and len(self.under_way) < max(1, _AHEAD * self.threads):
            self.give(self.next_batch(), alone=False)
        if self.suspects and not self.waiting and not self.under_way:
            self.give([self.suspects.popleft()], alone=True)

    def next_batch(self) -> list[Task]:
        """Runs that take so long together; of what is not known yet, one. Less towards the end."""
        share = len(self.waiting) / max(1, _AHEAD * self.threads)
        batch: list[Task] = []
        seconds = 0.0
        while self.waiting and len(batch) < min(BATCH_MAX, max(1.0, share)):
            usual = self.usual.get(_kind(self.waiting[0]), BATCH_SECONDS)
            if batch and seconds + usual > BATCH_SECONDS:
                break
            seconds += usual
            batch.append(self.waiting.popleft())
        return batch

    def give(self, tasks: Sequence[Task], alone: bool) -> None:
        self.batches += 1
        key = f"{self.name}-{self.batches}"
        future = self.client.submit(
            worker.perform_batch, self.name, tuple(tasks), key=key, pure=False
        )
        self.under_way[key] = Batch(future, tuple(tasks), alone)
        future.add_done_callback(self.tell_done)  # type: ignore[no-untyped-call]

    def tell_done(self, future: Future[list[Result]]) -> None:
        """In a thread of Dask's."""
        self.done.put(str(future.key))

    # --- taking

    def take(self, key: str) -> None:
        batch = self.under_way.pop(key, None)
        if batch is None:
            return
        if batch.future.status == "finished":
            self.take_results(batch)
        elif batch.future.status == "cancelled":  # what its worker held of it was lost
            self.waiting.extendleft(reversed(batch.tasks))
        else:
            self.take_failure(batch)
        batch.future.release()  # type: ignore[no-untyped-call]

    def take_results(self, batch: Batch) -> None:
        results: list[Result] = batch.future.result()
        for task, result in zip(batch.tasks, results, strict=True):
            self.learn(task, result.seconds)
            self.take_result(task, result)

    def take_result(self, task: Task, result: Result) -> None:
        self.finished.append((self.identities[task.key], result))
        self.told.ended(task, result)

    def take_failure(self, batch: Batch) -> None:
        error = batch.future.exception()  # type: ignore[no-untyped-call]
        if isinstance(error, worker.Stopped):
            return
        if not isinstance(error, KilledWorker):
            raise SchedlabError(
                f"a worker failed, and not because of a run: {type(error).__name__}: {error}"
            ) from error
        if not batch.alone:
            self.suspects.extend(batch.tasks)
            return
        message = "its worker died each time that it was run: of memory, perhaps, that it had not"
        for task in batch.tasks:
            outcome = Outcome(WORKER_DIED, message)
            self.take_result(task, Result(task.key, outcome, 0.0, Rows()))

    def learn(self, task: Task, seconds: float) -> None:
        """The latest count for most."""
        kind = _kind(task)
        known = self.usual.get(kind, seconds)
        self.usual[kind] = 0.8 * known + 0.2 * seconds

    # --- keeping

    def keep_if_due(self) -> None:
        now = time.monotonic()
        least, most = _KEEP_SECONDS
        due = min(most, max(least, (now - self.began) / 20))
        if len(self.finished) >= _KEEP_ROWS or now - self.kept >= due:
            self.keep()

    def keep(self) -> None:
        """Adds what was finished to the data set."""
        finished, self.finished = self.finished, []
        self.data_set.add(finished)
        self.kept = time.monotonic()


def _kind(task: Task) -> tuple[Any, ...]:
    run = task.run
    return (run.machine, run.workload, run.cpus, run.policy.name)

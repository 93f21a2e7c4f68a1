# SPDX-License-Identifier: MIT
"""Has workers do the runs of a sweep, and keeps what comes of them."""

from __future__ import annotations

import signal
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from schedlab.host.supervision import Caught
from schedlab.machines.outcome import Outcome
from schedlab.runs.carrying_out import Interrupted
from schedlab.sweep.crew import Crew
from schedlab.sweep.dataset import DataSet
from schedlab.sweep.make import Make
from schedlab.sweep.one_run import Result, Rows, Task
from schedlab.sweep.worker import Laboratory

BATCH_SECONDS = 0.5
"""Short runs are given to a worker together: so long, and what it takes to give them is little."""
BATCH_MAX = 500
_POLL_SECONDS = 0.2
_PATIENCE_SECONDS = 30.0
"""Seconds without workers before that is said."""
_KEEP_SECONDS = (0.3, 30.0)
"""Finished runs are kept after so long: the first soon, those of a long sweep in larger parts."""
_KEEP_ROWS = 5000

WORKER_DIED = "worker-died"


class Told(Protocol):
    """What is told how far it is."""

    def ended(self, task: Task, result: Result) -> None: ...

    def waiting_for_workers(self) -> None: ...


@dataclass(frozen=True)
class Batch:
    """What a worker was given."""

    tasks: tuple[Task, ...]
    alone: bool
    """Nothing else was under way: if its worker dies, it was this run that did it."""


def carry_out(
    tasks: Sequence[Task],
    identities: Mapping[str, Mapping[str, Any]],
    crew: Crew,
    make: Make,
    data_set: DataSet,
    told: Told,
    traces: Path | None = None,
    prepared: bool = False,
) -> None:
    """Does all runs, each once, and adds them to the data set. `identities`: by their keys; `prepared`: the crew
    has done runs of this make before.

    Raises Interrupted on SIGINT, SIGTERM and SIGHUP, and SchedlabError if the workers are lost or
    one is unfit; what was finished is in the data set then.
    """
    with signals_caught() as caught:
        if not prepared:
            crew.prepare(Laboratory(make, traces))
        conductor = _Conductor(tasks, identities, crew, data_set, told, caught)
        try:
            conductor.conduct()
        finally:
            conductor.keep()
    if caught.number:
        raise Interrupted(caught.number)


@contextmanager
def signals_caught() -> Iterator[Caught]:
    """The first signal is noted; a second one of the same kind ends the program as it would."""
    caught = Caught()
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
        tasks: Sequence[Task],
        identities: Mapping[str, Mapping[str, Any]],
        crew: Crew,
        data_set: DataSet,
        told: Told,
        caught: Caught,
    ) -> None:
        self.waiting = deque(tasks)
        self.suspects: deque[Task] = deque()
        """Runs of batches that a worker died of: they are done one by one, at the end."""
        self.identities = identities
        self.crew = crew
        self.data_set = data_set
        self.told = told
        self.caught = caught
        self.under_way: dict[str, Batch] = {}
        self.batches = 0
        self.room = 0
        self.alive = time.monotonic()
        self.usual: dict[tuple[Any, ...], float] = {}
        """Seconds that runs take, by what decides that roughly."""
        self.finished: list[tuple[Mapping[str, Any], Result]] = []
        self.began = self.kept = time.monotonic()

    def conduct(self) -> None:
        while (self.waiting or self.suspects or self.under_way) and not self.caught.number:
            self.see_room()
            self.fill()
            self.take_all(_POLL_SECONDS)
            self.keep_if_due()
        self.take_all(0)

    # --- giving

    def see_room(self) -> None:
        now = time.monotonic()
        self.room = self.crew.room()
        if self.room:
            self.alive = now
        elif now - self.alive > _PATIENCE_SECONDS:
            self.told.waiting_for_workers()
            self.alive = now

    def fill(self) -> None:
        while self.waiting and len(self.under_way) < self.room:
            self.give(self.next_batch(), alone=False)
        if self.room and self.suspects and not self.waiting and not self.under_way:
            self.give([self.suspects.popleft()], alone=True)

    def next_batch(self) -> list[Task]:
        """Runs that take so long together; of what is not known yet, one. Less towards the end."""
        share = len(self.waiting) / max(1, self.room)
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
        key = str(self.batches)
        self.under_way[key] = Batch(tuple(tasks), alone)
        self.crew.give(key, tasks)

    # --- taking

    def take_all(self, seconds: float) -> None:
        for ended in self.crew.ended(seconds):
            batch = self.under_way.pop(ended.key)
            if ended.results is not None:
                self.take_results(batch, ended.results)
            elif ended.died:
                self.take_death(batch)
            else:
                self.waiting.extendleft(reversed(batch.tasks))

    def take_results(self, batch: Batch, results: Sequence[Result]) -> None:
        for task, result in zip(batch.tasks, results, strict=True):
            self.learn(task, result.seconds)
            # With the plan's key: each result comes with a copy, of which a long sweep would keep many.
            self.take_result(task, replace(result, key=task.key))

    def take_result(self, task: Task, result: Result) -> None:
        self.finished.append((self.identities[task.key], result))
        self.told.ended(task, result)

    def take_death(self, batch: Batch) -> None:
        if not batch.alone:
            self.suspects.extend(batch.tasks)
            return
        message = "its worker died each time that it was run: of memory, perhaps, that it had not"
        for task in batch.tasks:
            outcome = Outcome(WORKER_DIED, message)
            self.take_result(task, Result(task.key, outcome, 0.0, Rows()))

    def learn(self, task: Task, seconds: float) -> None:
        """Notes how long a run took; the latest runs count for most."""
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

# SPDX-License-Identifier: MIT
"""Workers that are processes of this host, each at the end of a pipe: there is no port or path by
which another user could reach them."""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.errors import SchedlabError
from schedlab.sweep.crew import Ended
from schedlab.sweep.one_run import Task
from schedlab.sweep.serving import DONE, READY, serve
from schedlab.sweep.worker import Laboratory

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    Pipe = Connection[Any, Any]

_LEAVE_SECONDS = 10.0


class Processes:
    """A crew (`crew`) of processes, each with one batch at a time."""

    def __init__(self, count: int, scratch: Path) -> None:
        """`scratch`: a folder for what runs leave until they are measured."""
        self.count = count
        self.scratch = scratch
        self.laboratory: Laboratory | None = None
        self.members: dict[Pipe, BaseProcess] = {}
        self.ready: list[Pipe] = []
        self.under_way: dict[Pipe, str] = {}

    def prepare(self, laboratory: Laboratory) -> None:
        """Starts them, and waits until each is ready. Raises SchedlabError."""
        self.laboratory = laboratory
        started = [self.start() for _ in range(self.count)]
        for pipe in started:
            self.equip(pipe)
        while len(self.ready) < self.count:
            self.ended(_LEAVE_SECONDS)

    def start(self) -> Pipe:
        # A fork would copy locks that threads of Polars and others hold.
        context = multiprocessing.get_context("spawn")
        pipe, far_end = context.Pipe()
        process = context.Process(target=serve, args=(far_end, self.scratch), daemon=True)
        # Ctrl-C reaches all processes of a terminal, also one that is about to begin.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            far_end.close()
        self.members[pipe] = process
        return pipe

    def equip(self, pipe: Pipe) -> None:
        with suppress(BrokenPipeError):  # `ended` finds it dead
            pipe.send(self.laboratory)

    def room(self) -> int:
        """One for each that is ready."""
        return len(self.ready)

    def give(self, key: str, tasks: Sequence[Task]) -> None:
        """Gives a batch to a worker that has none."""
        pipe = next(each for each in self.ready if each not in self.under_way)
        self.under_way[pipe] = key
        with suppress(BrokenPipeError):
            pipe.send(tuple(tasks))

    def ended(self, seconds: float) -> list[Ended]:
        """Raises SchedlabError if one cannot do its work."""
        speaking = set(connection.wait(list(self.members), seconds))
        found = [self.hear(pipe) for pipe in list(self.members) if pipe in speaking]
        return [each for each in found if each]

    def hear(self, pipe: Pipe) -> Ended | None:
        try:
            word, content = pipe.recv()
        except (EOFError, OSError):
            return self.replace(pipe)
        if word == READY:
            self.ready.append(pipe)
            return None
        if word == DONE:
            return Ended(self.under_way.pop(pipe), tuple(content))
        raise SchedlabError(content)

    def replace(self, pipe: Pipe) -> Ended | None:
        """Replaces a process that died by another. Raises SchedlabError if it never began."""
        process = self.members.pop(pipe)
        pipe.close()
        process.join(_LEAVE_SECONDS)
        if pipe not in self.ready:
            raise SchedlabError(f"a worker could not begin: its exit status is {process.exitcode}")
        self.ready.remove(pipe)
        self.equip(self.start())
        key = self.under_way.pop(pipe, None)
        return Ended(key, None, died=True) if key else None

    def leave(self) -> None:
        """Ends all workers: a pipe that is closed tells its worker to end what it is at."""
        for pipe in self.members:
            pipe.close()
        for process in self.members.values():
            process.join(_LEAVE_SECONDS)
            process.kill()
            process.join()
        self.members.clear()


@contextmanager
def local(count: int) -> Iterator[Processes]:
    """Starts that many processes, of which nothing is left after the block."""
    with tempfile.TemporaryDirectory(prefix="schedlab-sweep-") as folder:
        found = Processes(count, Path(folder))
        try:
            yield found
        finally:
            found.leave()

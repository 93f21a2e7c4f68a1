# SPDX-License-Identifier: MIT
"""Workers of a cluster of Dask's, spoken to by TLS alone: a program that a scheduler lets in can run
anything there."""

from __future__ import annotations

import logging
import queue
import secrets
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dask
from distributed import (
    CancelledError,
    Client,
    Future,
    KilledWorker,
    Security,
    WorkerPlugin,
    get_worker,
)

from schedlab.errors import SchedlabError, WrongUsage
from schedlab.sweep import certificate
from schedlab.sweep.certificate import SCHEME, Certificate
from schedlab.sweep.crew import Ended
from schedlab.sweep.one_run import Result, Task
from schedlab.sweep.worker import Laboratory, Stopped, Unfit

_CONNECT_SECONDS = 20
_AHEAD = 2
"""Batches for each thread of the workers: one is done, the next lies ready."""
_ENDS = ("finished", "error", "cancelled")
"""What a batch of Dask's can end as."""
_THREADS_SECONDS = 2.0
"""The time after which it is asked again how many workers there are."""

_SETTINGS = {
    "distributed.admin.large-graph-warning-threshold": "100MB",
    "distributed.comm.timeouts.connect": f"{_CONNECT_SECONDS}s",
}


class Plugin(WorkerPlugin):
    """Has a laboratory on each worker."""

    def __init__(self, laboratory: Laboratory) -> None:
        self.laboratory = laboratory

    def setup(self, worker: Any) -> None:
        """Sets the laboratory up on a worker. Raises Unfit."""
        self.laboratory.set_up(f"worker {worker.address}", Path(worker.local_directory))

    def teardown(self, worker: Any) -> None:
        self.laboratory.tear_down()


class Cluster:
    """A crew (`crew`) that has the workers that it has."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.name = f"schedlab-sweep-{secrets.token_hex(4)}"
        self.under_way: dict[str, Future[list[Result]]] = {}
        self.done: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.anew: set[str] = set()
        """Batches that had ended, and whose worker died before it was asked for the results: Dask computes them anew,
        and tells of no second end."""
        self.threads = 0
        self.threads_known = float("-inf")

    def prepare(self, laboratory: Laboratory) -> None:
        """Prepares all workers. Raises SchedlabError if one is unfit."""
        try:
            self.client.register_plugin(Plugin(laboratory), name=self.name)
        except Unfit as error:
            raise SchedlabError(str(error)) from None
        except Exception as error:
            raise SchedlabError(
                f"the workers cannot take part: {type(error).__name__}: {error}. Start them in the"
                " same version of schedlab: ./schedlab dask worker"
            ) from error

    def room(self) -> int:
        """Returns how many batches it takes, by its threads, which come and go."""
        now = time.monotonic()
        if self.client.status != "running":
            raise SchedlabError(
                "the scheduler of Dask is gone; what was finished is kept. Start it again, and go on"
                " with the same command"
            )
        if now - self.threads_known >= _THREADS_SECONDS:
            found: dict[str, Any] = self.client.nthreads()  # type: ignore[no-untyped-call]
            self.threads, self.threads_known = sum(found.values()), now
        return _AHEAD * self.threads

    def give(self, key: str, tasks: Sequence[Task]) -> None:
        own = f"{self.name}-{key}"
        future = self.client.submit(perform_batch, self.name, tuple(tasks), key=own, pure=False)
        self.under_way[key] = future
        # In a thread of Dask's.
        future.add_done_callback(lambda _: self.done.put(key))  # type: ignore[no-untyped-call]

    def ended(self, seconds: float) -> list[Ended]:
        found = []
        with suppress(queue.Empty):
            found.append(self.take(self.done.get(timeout=seconds)))
            while True:
                found.append(self.take(self.done.get_nowait()))
        found += [self.take(key) for key in sorted(self.anew)]
        return [each for each in found if each]

    def take(self, key: str) -> Ended | None:
        future = self.under_way.get(key)
        if future is None:
            return None
        if future.status not in _ENDS:
            self.anew.add(key)
            return None
        self.anew.discard(key)
        del self.under_way[key]
        try:
            return Ended(key, tuple(future.result()))
        except CancelledError:  # what its worker held of it was lost
            return Ended(key, None)
        except Exception as error:
            return self.failed(key, error)
        finally:
            future.release()  # type: ignore[no-untyped-call]

    def failed(self, key: str, error: BaseException) -> Ended | None:
        if isinstance(error, Stopped):
            return None
        if isinstance(error, KilledWorker):
            return Ended(key, None, died=True)
        raise SchedlabError(
            f"a worker failed, and not because of a run: {type(error).__name__}: {error}"
        ) from error

    def leave(self) -> None:
        """Leaves nothing of the sweep with the workers."""
        if self.client.status != "running":
            return
        with suppress(Exception):
            self.client.run(stop, self.name, on_error="ignore")
            self.client.unregister_worker_plugin(self.name)  # type: ignore[no-untyped-call]


# --- on the workers


def perform_batch(name: str, tasks: Sequence[Task]) -> list[Result]:
    """Task of Dask: all of them, in order. Raises Stopped."""
    plugin = get_worker().plugins[name]
    assert isinstance(plugin, Plugin)
    return [plugin.laboratory.perform(task) for task in tasks]


def stop(name: str, dask_worker: Any = None) -> None:
    """Ends a worker's runs when a sweep ends before its time."""
    plugin = dask_worker.plugins.get(name)
    if plugin:
        plugin.laboratory.stop()


# --- connecting


@contextmanager
def connected(scheduler: str, folder: Path | None) -> Iterator[Cluster]:
    """The cluster at an address. `folder`: of the certificate. Raises WrongUsage, SchedlabError."""
    with _connected(scheduler, folder) as client:
        crew = Cluster(client)
        try:
            yield crew
        finally:
            crew.leave()


@contextmanager
def executor(scheduler: str, folder: Path | None = None) -> Iterator[Executor]:
    """The same cluster's workers as an executor of Python's. Raises WrongUsage, SchedlabError."""
    with _connected(scheduler, folder) as client:
        yield client.get_executor(pure=False)  # type: ignore[no-untyped-call]


@contextmanager
def _connected(scheduler: str, folder: Path | None) -> Iterator[Client]:
    found = certificate.of_scheduler(scheduler, folder)
    with dask.config.set(_SETTINGS), _quiet_logs(), _client(scheduler, found) as client:
        yield client


def _client(scheduler: str, found: Certificate) -> Client:
    security = Security(  # type: ignore[no-untyped-call]
        require_encryption=True,
        tls_ca_file=str(found.certificate),
        tls_client_cert=str(found.certificate),
        tls_client_key=str(found.key),
    )
    try:
        return Client(  # type: ignore[no-untyped-call]
            scheduler, timeout=_CONNECT_SECONDS, set_as_default=False, security=security
        )
    except ValueError as error:
        raise WrongUsage(
            f"--scheduler {scheduler}: {error}: expected an address such as {SCHEME}10.0.0.1:8786"
        ) from None
    except (OSError, TimeoutError) as error:
        raise SchedlabError(
            f"--scheduler {scheduler}: no scheduler of Dask answers there that has this certificate:"
            f" {_first_line(error)}. Start one: ./schedlab dask scheduler"
        ) from None


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """Dask tells of each worker that comes and goes; what matters of it, the sweep says itself."""
    loggers = [logging.getLogger(name) for name in ("distributed", "asyncio", "tornado")]
    before = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for each, level in zip(loggers, before, strict=True):
            each.setLevel(level)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]

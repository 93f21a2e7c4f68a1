# SPDX-License-Identifier: MIT
"""Executes runs on the workers of a Dask cluster.

Connections use TLS, because a client can run any program on a cluster.
"""

import logging
import secrets
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dask
from distributed import Client, KilledWorker, Security, WorkerPlugin, get_worker

from schedlab.base.display.terminal import say
from schedlab.errors import SchedlabError, WrongUsage, format_parameter
from schedlab.runs import certificate
from schedlab.runs.certificate import SCHEME, Certificate
from schedlab.runs.executor import Batch, Workers
from schedlab.runs.worker import Laboratory, Result, Task, Unfit

_CONNECT_SECONDS = 20
_BATCHES_PER_THREAD = 2
"""Batches assigned per worker thread: one in progress, and one waiting."""
_THREAD_QUERY_INTERVAL_S = 2.0
"""Interval between queries for the number of workers, in seconds."""

_NO_WORKERS_MESSAGE_S = 30.0
"""If there have been no workers for this many seconds, the user gets a message."""

_DASK_SETTINGS = {
    "distributed.admin.large-graph-warning-threshold": "100MB",
    "distributed.comm.timeouts.connect": f"{_CONNECT_SECONDS}s",
}


class LaboratoryPlugin(WorkerPlugin):
    """Sends the laboratory (programs and functions for runs) to each worker, also to later ones."""

    def __init__(self, laboratory: Laboratory) -> None:
        self.laboratory = laboratory

    def setup(self, worker: Any) -> None:
        """Prepares the laboratory on a worker. Raises Unfit."""
        self.laboratory.set_up(f"worker {worker.address}", Path(worker.local_directory))

    def teardown(self, worker: Any) -> None:
        self.laboratory.tear_down()


class Cluster:
    """Implements the interface Workers (schedlab.runs.executor) with a Dask cluster."""

    death: type[Exception] = KilledWorker
    runs_single_tasks = False

    def __init__(self, client: Client) -> None:
        self.client = client
        self.executor: Executor = client.get_executor(pure=False)  # type: ignore[no-untyped-call]
        self.name = f"schedlab-{secrets.token_hex(4)}"
        self.prepared = False
        self.threads = 0
        self.threads_known = float("-inf")
        self.seen = time.monotonic()
        """The last time when a worker was present, or the user was informed of missing workers."""

    def prepare(self, laboratory: Laboratory) -> None:
        """Prepares all workers. Raises SchedlabError if a worker is unfit."""
        if self.prepared:
            return
        try:
            self.client.register_plugin(LaboratoryPlugin(laboratory), name=self.name)
        except Unfit:
            raise
        except Exception as error:
            raise SchedlabError(
                f"the workers cannot take part: {type(error).__name__}: {error}. Start "
                "them with the same version of schedlab: ./schedlab dask worker"
            ) from error
        self.prepared = True

    def slots(self) -> int:
        """Returns how many batches may be assigned at once; depends on the current worker threads."""
        now = time.monotonic()
        if self.client.status != "running":
            raise SchedlabError(
                "the Dask scheduler has ended; finished runs are kept. Start it again, "
                "and repeat the command to continue"
            )
        if now - self.threads_known >= _THREAD_QUERY_INTERVAL_S:
            threads: dict[str, Any] = self.client.nthreads()  # type: ignore[no-untyped-call]
            self.threads, self.threads_known = sum(threads.values()), now
        if self.threads:
            self.seen = now
        elif now - self.seen > _NO_WORKERS_MESSAGE_S:
            say("waiting for a worker (start one: ./schedlab dask worker ADDRESS)")
            self.seen = now
        return _BATCHES_PER_THREAD * self.threads

    def cpus(self, task: Task) -> int:
        return 1

    def give(self, tasks: Sequence[Task]) -> Batch:
        return self.executor.submit(perform_batch, self.name, tuple(tasks))

    def stop(self) -> None:
        """Removes the runs' files and data from the workers."""
        if self.client.status == "running" and self.prepared:
            with suppress(Exception):
                self.client.run(stop, self.name, on_error="ignore")
                self.client.unregister_worker_plugin(self.name)  # type: ignore[no-untyped-call]
            self.prepared = False


# --- on the workers


def perform_batch(name: str, tasks: Sequence[Task]) -> list[Result]:
    """Executes a batch of runs in order, as a Dask task."""
    plugin = get_worker().plugins[name]
    assert isinstance(plugin, LaboratoryPlugin)
    return plugin.laboratory.perform_all(tasks)


def stop(name: str, dask_worker: Any = None) -> None:
    """Stops the runs in progress on a worker, because execution ends early."""
    plugin = dask_worker.plugins.get(name)
    if plugin:
        plugin.laboratory.stopping = True


# --- connecting


@contextmanager
def connect_workers(scheduler: str, folder: Path | None) -> Iterator[Workers]:
    """Connects to the cluster whose scheduler has this address.

    `folder`: the folder of the certificate. Raises WrongUsage if the address or certificate is
    invalid, and SchedlabError if no scheduler answers.
    """
    with _connect_client(scheduler, folder) as client:
        workers = Cluster(client)
        try:
            yield workers
        finally:
            workers.stop()


@contextmanager
def executor(scheduler: str, folder: Path | None = None) -> Iterator[Executor]:
    """Connects to a cluster, and provides it as an Executor of Python's concurrent.futures.

    Raises the same errors as `connect_workers`.
    """
    with _connect_client(scheduler, folder) as client:
        yield client.get_executor(pure=False)  # type: ignore[no-untyped-call]


@contextmanager
def _connect_client(scheduler: str, folder: Path | None) -> Iterator[Client]:
    scheduler_certificate = certificate.certificate_for(scheduler, folder)
    with (
        dask.config.set(_DASK_SETTINGS),
        _quiet_logs(),
        _client(scheduler, scheduler_certificate) as client,
    ):
        yield client


def _client(scheduler: str, certificate: Certificate) -> Client:
    security = Security(  # type: ignore[no-untyped-call]
        require_encryption=True,
        tls_ca_file=str(certificate.certificate),
        tls_client_cert=str(certificate.certificate),
        tls_client_key=str(certificate.key),
    )
    try:
        return Client(  # type: ignore[no-untyped-call]
            scheduler, timeout=_CONNECT_SECONDS, set_as_default=False, security=security
        )
    except ValueError as error:
        raise WrongUsage(
            f"{error}; use an address such as {SCHEME}10.0.0.1:8786",
            what=format_parameter("scheduler", scheduler),
        ) from None
    except (OSError, TimeoutError) as error:
        raise SchedlabError(
            f"no Dask scheduler with this certificate answers: {_first_line(error)}. "
            "Start one: ./schedlab dask scheduler",
            what=format_parameter("scheduler", scheduler),
        ) from None


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """Silences Dask's log messages about workers; schedlab reports what matters."""
    loggers = [logging.getLogger(name) for name in ("distributed", "asyncio", "tornado")]
    previous_levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, previous_levels, strict=True):
            logger.setLevel(level)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]

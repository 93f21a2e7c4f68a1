# SPDX-License-Identifier: MIT
"""Workers of Dask: processes of this host that end with the sweep, or those of a cluster."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask
from distributed import Client, LocalCluster

from schedlab.errors import SchedlabError, WrongUsage

_CONNECT_SECONDS = 20
_DEATHS = 1
"""Of workers here, with a task: it is given to another worker so often, and then given up."""

_QUIET = {
    # One thread is all that a small table needs, and the other workers have the other CPUs.
    "distributed.nanny.pre-spawn-environ.POLARS_MAX_THREADS": "1",
    "distributed.worker.profile.enabled": False,
    "distributed.scheduler.allowed-failures": _DEATHS,
    "distributed.admin.large-graph-warning-threshold": "100MB",
    # Dask cannot be without its HTTP servers: they have any port that is free, and serve nothing.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.comm.timeouts.connect": f"{_CONNECT_SECONDS}s",
}


@contextmanager
def connected(scheduler: str | None, workers: int) -> Iterator[Client]:
    """A client of the cluster at an address, or, without one, of `workers` processes here.

    Those here listen on the loopback interface alone, without a dashboard; nothing of them is left
    after the block. Their memory is not limited: a run takes what it needs.
    """
    with tempfile.TemporaryDirectory(prefix="schedlab-dask-") as folder:
        settings = {**_QUIET, "temporary-directory": folder}
        found = _of_cluster(scheduler) if scheduler else _local(workers)
        with dask.config.set(settings), _quiet_logs(), found as client:
            yield client


@contextmanager
def _local(workers: int) -> Iterator[Client]:
    here = LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        protocol="tcp://",
        dashboard_address=None,
        scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
        worker_dashboard_address=None,
        memory_limit=None,
        silence_logs=logging.CRITICAL,
    )
    with here, Client(here, set_as_default=False) as client:  # type: ignore[no-untyped-call]
        yield client


@contextmanager
def _of_cluster(scheduler: str) -> Iterator[Client]:
    try:
        client = Client(  # type: ignore[no-untyped-call]
            scheduler, timeout=_CONNECT_SECONDS, set_as_default=False
        )
    except ValueError as error:
        raise WrongUsage(
            f"--scheduler {scheduler}: {error}: expected an address such as tcp://10.0.0.1:8786"
        ) from None
    except (OSError, TimeoutError) as error:
        raise SchedlabError(
            f"--scheduler {scheduler}: no scheduler of Dask answers there: {_first_line(error)}."
            " Start one: ./schedlab dask scheduler"
        ) from None
    with client:
        yield client


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


def threads(client: Client) -> int:
    """How many tasks can be done at a time, now."""
    found: dict[str, Any] = client.nthreads()  # type: ignore[no-untyped-call]
    return sum(found.values())

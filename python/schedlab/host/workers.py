# SPDX-License-Identifier: MIT
"""Processes of this host that share work."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from schedlab.errors import SchedlabError


@contextmanager
def worker_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """They end with the block; what they have not begun by then is dropped.

    Raises SchedlabError if one of them was killed.
    """
    # A fork would copy locks that threads of Polars and others hold.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, prepare)
    try:
        yield pool
    except BrokenProcessPool as error:
        raise SchedlabError(
            "a process that shared the work was ended from outside; if the host has no memory left,"
            " name fewer runs at a time"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def prepare() -> None:
    """Prepares a worker before it loads Polars: one thread is all that small tables need, and the
    other workers have the other CPUs. An interrupt from the keyboard is for the parent, which ends
    the work."""
    os.environ["POLARS_MAX_THREADS"] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)

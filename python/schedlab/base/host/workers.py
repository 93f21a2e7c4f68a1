# SPDX-License-Identifier: MIT
"""Pools of worker processes."""

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import Any

from schedlab.errors import SchedlabError

_POLARS_THREADS = "POLARS_MAX_THREADS"
_INTERRUPT_SIGNALS = [signal.SIGINT]


class _Process(SpawnProcess):
    """A process that does not run the user's main script again, as multiprocessing usually would.

    Scripts may use the Python API without `if __name__ == "__main__"`. The process gives Polars one
    thread, because tables are small and other workers use the other CPUs. Ctrl-C reaches all
    processes of a terminal; here it is blocked until `prepare_worker` ignores it.
    """

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802
        main, threads = sys.modules["__main__"], os.environ.get(_POLARS_THREADS)
        sys.modules["__main__"] = ModuleType("__main__")
        os.environ[_POLARS_THREADS] = "1"
        resource_tracker.ensure_running()  # started here, because its start unblocks the signal
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPT_SIGNALS)
        try:
            return SpawnProcess._Popen(process_obj)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            sys.modules["__main__"] = main
            os.environ.pop(_POLARS_THREADS)
            if threads is not None:
                os.environ[_POLARS_THREADS] = threads


class _Context(SpawnContext):
    Process = _Process


SPAWN_CONTEXT = _Context()
"""Starts processes by spawning. A fork would copy locks held by threads of Polars and others."""


@contextmanager
def worker_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Yields a pool of `workers` processes.

    Work that has not begun at the end of the block is dropped. Raises SchedlabError if a process
    was killed.
    """
    pool = ProcessPoolExecutor(workers, SPAWN_CONTEXT, prepare_worker)
    try:
        yield pool
    except BrokenProcessPool as error:
        raise SchedlabError(
            "a worker process was killed",
            fix="if the host ran out of memory, run fewer runs at a time",
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def prepare_worker() -> None:
    """Prepares a worker process: it ignores Ctrl-C, which the parent process handles."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPT_SIGNALS)

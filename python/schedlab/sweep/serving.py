# SPDX-License-Identifier: MIT
"""A process of this host that does runs, as it is from within (`processes` has the other side).

What is imported here is so before Polars may be: it is told first how many threads it has.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.host.workers import prepare

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from typing import Any

    from schedlab.sweep.one_run import Task
    from schedlab.sweep.worker import Laboratory

    Pipe = Connection[Any, Any]
    Given = queue.SimpleQueue[Sequence[Task] | None]

READY, DONE, FAILED = "ready", "done", "failed"
"""What it says: of itself, of a batch, and of why it can do nothing."""


def serve(pipe: Pipe, scratch: Path) -> None:
    """Lives the life of a worker: it gets its laboratory, then batches, until the pipe is closed or the
    process that holds its other end is gone."""
    prepare()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    from schedlab.sweep.worker import Stopped, Unfit

    with suppress(EOFError, BrokenPipeError, ConnectionResetError, Stopped):
        laboratory: Laboratory = pipe.recv()
        try:
            laboratory.set_up(f"worker {os.getpid()}", scratch)
        except Unfit as error:
            pipe.send((FAILED, str(error)))
            return
        try:
            _work(pipe, laboratory)
        except Stopped:
            raise
        except Exception as error:
            words = f"{type(error).__name__}: {error}"
            pipe.send((FAILED, f"a worker failed, and not because of a run: {words}"))
        finally:
            laboratory.tear_down()


def _work(pipe: Pipe, laboratory: Laboratory) -> None:
    given: Given = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(pipe, laboratory, given), daemon=True).start()
    pipe.send((READY, None))
    while (tasks := given.get()) is not None:
        pipe.send((DONE, [laboratory.perform(task) for task in tasks]))


def _receive(pipe: Pipe, laboratory: Laboratory, given: Given) -> None:
    """Runs beside the work, so that the end of the pipe is heard in the middle of a run."""
    with suppress(EOFError, OSError):
        while True:
            given.put(pipe.recv())
    laboratory.stop()
    given.put(None)

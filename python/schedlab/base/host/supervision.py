# SPDX-License-Identifier: MIT
"""A process of the host with all that it starts: begun, awaited, and ended without a rest."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from schedlab.base.display.working import begin_display
from schedlab.base.host.disk import LOOK_SECONDS, DiskWatch
from schedlab.errors import SchedlabError

T = TypeVar("T")

_GRACE_SECONDS = 2.0
"""The time between asking a process to end and killing it."""


def supervise(
    command: Sequence[str],
    folder: Path,
    console: Path,
    seconds: float,
    has_problem: Callable[[], bool] | None = None,
) -> int | None:
    """Runs a machine in `folder`. Returns its exit status, or None if it had to be ended: after `seconds`, or since
    it `has_problem`.

    The machine and all that it starts are one process group, of which nothing is left afterwards.
    """
    with console.open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            ended = _ends_within(process, seconds, has_problem)
        finally:
            signal_group(process.pid, signal.SIGKILL)
            status = process.wait()
        return status if ended else None


def attend(command: Sequence[str], disk: DiskWatch) -> int:
    """Runs a program in this terminal, whose keys are the program's. Returns its exit status. Raises SchedlabError if
    it had to be ended since the disk has a problem."""
    begin_display()
    process = subprocess.Popen(command)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while not disk.has_problem():
            with suppress(subprocess.TimeoutExpired):
                return process.wait(LOOK_SECONDS)
        raise SchedlabError(disk.problem)
    finally:
        process.terminate()
        process.wait()
        signal.signal(signal.SIGINT, before)


def _ends_within(
    process: subprocess.Popen[bytes], seconds: float, has_problem: Callable[[], bool] | None
) -> bool:
    """A thread waits: Popen's own wait with a limit looks again and again, which costs a short run its time again, and
    not every sandbox has pidfd_open(). Nobody else may get the process's number yet, so it is not reaped here; except
    on macOS, where Python has no waitid() before 3.13."""

    def wait() -> None:
        if not hasattr(os, "waitid"):
            process.wait()
            return
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    waiter = threading.Thread(target=wait, daemon=True)
    waiter.start()
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not (has_problem and has_problem()):
        waiter.join(min(left, LOOK_SECONDS) if has_problem else left)
        if not waiter.is_alive():
            return True
    return False


async def supervise_async(
    command: Sequence[str], folder: Path, console: Path, seconds: float
) -> int | None:
    """The same for a coroutine, whose cancellation ends the machine."""
    stop = threading.Event()
    work = asyncio.to_thread(supervise, command, folder, console, seconds, stop.is_set)
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([task])
        raise


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Awaits what cannot be broken off: a cancellation takes effect after it."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


@dataclass
class Caught:
    """The signal that asked a program to end; 0: none has."""

    number: int = 0


@contextmanager
def cancelled_by_signals(task: asyncio.Future[Any] | None) -> Iterator[Caught]:
    """SIGINT, SIGTERM and SIGHUP cancel a task, which ends what it supervises on its way out. After that
    they mean what they meant before. In a thread they do not reach the task."""
    assert task is not None
    loop = asyncio.get_running_loop()
    caught = Caught()
    if threading.current_thread() is not threading.main_thread():  # which alone has signals
        yield caught
        return

    def catch(number: int) -> None:
        if not caught.number:
            caught.number = number
            task.cancel()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        loop.add_signal_handler(number, catch, number)
    try:
        yield caught
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            # asyncio leaves the host's own answer, by which a program ends with its folders left behind.
            signal.signal(number, handler)


@contextmanager
def signals_caught() -> Iterator[Caught]:
    """The first signal is noted; a second one of the same kind ends the program as it would. A thread catches none."""
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


async def end_group(process: asyncio.subprocess.Process) -> None:
    """Asks a process group to end, then ends it."""
    signal_group(process.pid, signal.SIGTERM)
    waiting = asyncio.ensure_future(process.wait())
    await asyncio.wait([waiting], timeout=_GRACE_SECONDS)
    signal_group(process.pid, signal.SIGKILL)
    await waiting


def signal_group(leader: int, number: signal.Signals) -> None:
    """Sends a signal to a process group, which may be gone already: of one whose leader has ended and is not reaped,
    macOS says that it may not be signalled."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)

# SPDX-License-Identifier: MIT
"""Starts, watches and ends processes of the host, together with their child processes."""

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

from schedlab.base.display.activity import begin_display
from schedlab.base.host.disk import CHECK_INTERVAL_S, DiskWatch
from schedlab.errors import SchedlabError

T = TypeVar("T")

_GRACE_SECONDS = 2.0
"""Seconds between SIGTERM and SIGKILL."""


def supervise(
    command: Sequence[str],
    folder: Path,
    console: Path,
    seconds: float,
    has_problem: Callable[[], bool] | None = None,
) -> int | None:
    """Runs a machine's command in `folder`; returns its exit status, or None if it was killed.

    It is killed after `seconds`, or when `has_problem` returns True. Its process group, which
    includes child processes, is killed at the end. `console`: receives all output.
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


def run_interactively(command: Sequence[str], disk: DiskWatch) -> int:
    """Runs a program interactively in this terminal; returns its exit status.

    Raises SchedlabError if the program was ended because of a problem with the disk.
    """
    begin_display()
    process = subprocess.Popen(command)
    previous_handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while not disk.has_problem():
            with suppress(subprocess.TimeoutExpired):
                return process.wait(CHECK_INTERVAL_S)
        raise SchedlabError(disk.problem)
    finally:
        process.terminate()
        process.wait()
        signal.signal(signal.SIGINT, previous_handler)


def _ends_within(
    process: subprocess.Popen[bytes], seconds: float, has_problem: Callable[[], bool] | None
) -> bool:
    """Waits for the end of a process; returns False after `seconds`, or when `has_problem` returns
    True.

    It waits in a thread: Popen's wait with a timeout polls, which would prolong short runs, and
    some sandboxes lack pidfd_open(). It does not reap the process, so that its PID is not reused
    before its group is killed. (On macOS, Python before 3.13 lacks waitid(), so the process is
    reaped here.)
    """

    def wait() -> None:
        if not hasattr(os, "waitid"):
            process.wait()
            return
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    waiter = threading.Thread(target=wait, daemon=True)
    waiter.start()
    end_s = time.monotonic() + seconds
    while (remaining_s := end_s - time.monotonic()) > 0 and not (has_problem and has_problem()):
        waiter.join(min(remaining_s, CHECK_INTERVAL_S) if has_problem else remaining_s)
        if not waiter.is_alive():
            return True
    return False


async def supervise_async(
    command: Sequence[str], folder: Path, console: Path, seconds: float
) -> int | None:
    """Does the same as `supervise`, as a coroutine; cancelling it kills the machine."""
    stop = threading.Event()
    work = asyncio.to_thread(supervise, command, folder, console, seconds, stop.is_set)
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([task])
        raise


async def await_completely(work: Coroutine[Any, Any, T]) -> T:
    """Awaits a coroutine completely; a cancellation takes effect afterwards."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


@dataclass
class CaughtSignal:
    """Which signal asked this program to end; `number` is 0 if none did."""

    number: int = 0


@contextmanager
def cancelled_by_signals(task: asyncio.Future[Any] | None) -> Iterator[CaughtSignal]:
    """Makes SIGINT, SIGTERM and SIGHUP cancel a task within the block.

    Yields an object that holds the signal's number. Afterwards, the previous handlers are restored.
    Outside of the main thread, it has no effect.
    """
    assert task is not None
    loop = asyncio.get_running_loop()
    caught = CaughtSignal()
    # signals arrive only in the main thread
    if threading.current_thread() is not threading.main_thread():
        yield caught
        return

    def catch(number: int) -> None:
        if not caught.number:
            caught.number = number
            task.cancel()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    previous_handlers = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        loop.add_signal_handler(number, catch, number)
    try:
        yield caught
    finally:
        for number, handler in previous_handlers.items():
            loop.remove_signal_handler(number)
            # asyncio would restore the default action, which ends the program without cleaning up.
            signal.signal(number, handler)


@contextmanager
def catch_signals() -> Iterator[CaughtSignal]:
    """Notes the first signal that arrives within the block, instead of ending the program.

    A second signal of the same kind has its usual effect. Outside of the main thread, it has no
    effect.
    """
    caught = CaughtSignal()
    if threading.current_thread() is not threading.main_thread():
        yield caught
        return

    def catch(number: int, frame: FrameType | None) -> None:
        caught.number = number
        signal.signal(number, previous_handlers[signal.Signals(number)])

    previous_handlers = {
        number: signal.signal(number, catch)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield caught
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


async def end_group(process: asyncio.subprocess.Process) -> None:
    """Ends a process group with SIGTERM, and after _GRACE_SECONDS with SIGKILL."""
    signal_group(process.pid, signal.SIGTERM)
    waiting = asyncio.ensure_future(process.wait())
    await asyncio.wait([waiting], timeout=_GRACE_SECONDS)
    signal_group(process.pid, signal.SIGKILL)
    await waiting


def signal_group(leader: int, number: signal.Signals) -> None:
    """Sends a signal to a process group, which may already have ended.

    macOS reports PermissionError if the group's leader has ended but was not reaped.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)

# SPDX-License-Identifier: MIT
"""Starts, supervises and ends a process group of the host."""

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

from schedlab.base.display.activity import begin_display
from schedlab.base.host.disk import LOOK_SECONDS, DiskWatch
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
    """Runs a machine in `folder`; returns its exit status, or None if it was killed.

    It is killed after `seconds`, or when `has_problem` returns true. The machine and its children
    are one process group, which is killed at the end.
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
    """Runs a program interactively in this terminal; returns its exit status.

    Raises SchedlabError if a problem with the disk ended it.
    """
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
    """Waits for a process in a thread; returns False after `seconds` or a problem.

    Popen's wait with a timeout polls, which would prolong short runs, and some sandboxes lack
    pidfd_open(). The process is not reaped here, so that its PID is not reused before its group is
    killed. On macOS, Python before 3.13 lacks waitid(), so it is reaped there.
    """

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
    """Does the same in a coroutine; cancellation kills the machine."""
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
    """Awaits a coroutine without interruption; a cancellation takes effect afterwards."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


@dataclass
class Caught:
    """The signal that requested the program's end; 0 if none did."""

    number: int = 0


@contextmanager
def cancelled_by_signals(task: asyncio.Future[Any] | None) -> Iterator[Caught]:
    """Makes SIGINT, SIGTERM and SIGHUP cancel a task, which ends its processes.

    Afterwards the previous handlers are restored. Has no effect outside of the main thread.
    """
    assert task is not None
    loop = asyncio.get_running_loop()
    caught = Caught()
    # only the main thread receives signals
    if threading.current_thread() is not threading.main_thread():
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
            # asyncio restores the default action, which would end the program without cleaning up.
            signal.signal(number, handler)


@contextmanager
def signals_caught() -> Iterator[Caught]:
    """Notes the first signal; a second one of the same kind has its usual effect.

    Has no effect outside of the main thread.
    """
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
    """Ends a process group by SIGTERM, and by SIGKILL after the grace period."""
    signal_group(process.pid, signal.SIGTERM)
    waiting = asyncio.ensure_future(process.wait())
    await asyncio.wait([waiting], timeout=_GRACE_SECONDS)
    signal_group(process.pid, signal.SIGKILL)
    await waiting


def signal_group(leader: int, number: signal.Signals) -> None:
    """Sends a signal to a process group that may have ended.

    macOS reports a PermissionError if the group's leader has ended but is not reaped.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)

# SPDX-License-Identifier: MIT
"""A process of the host with all that it starts: begun, awaited, and ended without a rest."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

_GRACE_SECONDS = 2.0
"""The time between asking a process to end and killing it."""


async def supervise(command: list[str], folder: Path, console: Path, seconds: float) -> int | None:
    """Runs a machine in `folder`. Returns its exit status, or None if it had to be ended after `seconds`.

    The machine and all that it starts are one process group, of which nothing is left afterwards.
    """
    with console.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            return await asyncio.wait_for(process.wait(), seconds)
        except (TimeoutError, asyncio.TimeoutError):
            return None
        finally:
            await to_the_end(end_group(process))


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
    they mean what they meant before."""
    assert task is not None
    loop = asyncio.get_running_loop()
    caught = Caught()

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


async def end_group(process: asyncio.subprocess.Process) -> None:
    """Asks a process group to end, then ends it."""
    signal_group(process.pid, signal.SIGTERM)
    waiting = asyncio.ensure_future(process.wait())
    await asyncio.wait([waiting], timeout=_GRACE_SECONDS)
    signal_group(process.pid, signal.SIGKILL)
    await waiting


def signal_group(leader: int, number: signal.Signals) -> None:
    """Sends a signal to a process group, which may be gone already."""
    with suppress(ProcessLookupError):
        os.killpg(leader, number)

# SPDX-License-Identifier: MIT
"""Processes of the host, as seen by tests.

An ended process may stay as a zombie until its parent reaps it. Where process 1 does not reap
orphans, as in many containers, it stays forever. Zombies count as gone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_ENDED = ("Z", "X", "x")


def _fields(pid: int) -> list[str]:
    """Returns the fields of its stat file, starting with the state; empty if there is no such
    process.
    """
    with suppress(FileNotFoundError, ProcessLookupError):
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return []


def is_running(pid: int) -> bool:
    fields = _fields(pid)
    return bool(fields) and fields[0] not in _ENDED


def _running() -> Iterator[tuple[int, list[str]]]:
    for entry in _PROC.glob("[0-9]*"):
        fields = _fields(int(entry.name))
        if fields and fields[0] not in _ENDED:
            yield int(entry.name), fields


def is_stopped(pid: int) -> bool:
    """Returns whether all threads of the process are stopped: each runs for a moment after
    the signal.
    """
    threads = (_fields(int(thread.name)) for thread in (_PROC / str(pid) / "task").iterdir())
    return all(fields[:1] == ["T"] for fields in threads)


def children_of(parent: int) -> list[int]:
    """Returns the running children."""
    return [pid for pid, fields in _running() if int(fields[1]) == parent]


def in_session(leader: int) -> list[int]:
    """Returns the running processes of the session that began with this process."""
    return [pid for pid, fields in _running() if int(fields[3]) == leader]


def wait_until(condition: Callable[[], object], what: str = "", seconds: float = 60) -> None:
    """Raises AssertionError if the condition is not met in time; `what` names the failure."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, what or "it did not come to be so"
        time.sleep(0.02)

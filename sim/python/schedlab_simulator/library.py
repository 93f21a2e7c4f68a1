# SPDX-License-Identifier: MIT
"""Opens the C library, and checks that its enumerations and structures are those of this package."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import IntEnum
from functools import cache
from os import PathLike, fspath
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from cffi import FFIError

from schedlab_simulator import declarations
from schedlab_simulator.declarations import LibraryUnusable

FilePath = str | PathLike[str]


class Status(IntEnum):
    """The state of a run; C: enum simulator_status."""

    TIME = 0
    """Everything until the given time has happened."""
    DONE = 1
    """The workload's first process has ended."""


class Place(IntEnum):
    """The state of a process; C: enum simulator_place."""

    QUEUED = 1
    RUNNING = 2
    BLOCKED = 3
    ENDED = 4
    """Ended, but no process has reaped it yet."""


class Attribute(IntEnum):
    """An attribute that users set; C: enum attribute_kind."""

    PRIORITY = 1
    """0 (highest) to 10."""
    TICKETS = 2
    WEIGHT = 3
    """1 to 10."""
    NICE = 4
    """-20 (best) to 19."""
    SLICE = 5
    """Nanoseconds, like the next three attributes; 0: none."""
    RUNTIME = 6
    DEADLINE = 7
    PERIOD = 8
    TASKGROUP = 9


class Counts(NamedTuple):
    """What has happened since the start; C: struct simulator_counts. Times are in ns."""

    now: int
    decisions: int
    """Number of times that a process was picked."""
    switches: int
    """Switches to another process."""
    idle_switches: int
    ticks: int
    """Ticks of CPUs that ran a process."""
    forks: int
    wakeups: int
    migrations: int
    records: int
    """Records of the trace."""
    idle_time: int
    """Nanoseconds, summed over all CPUs."""
    process_bytes: int
    """Bytes of memory for each possible process."""
    exit_status: int
    """Exit status of the first process; -1: the process has not ended, or was killed."""
    processes: int
    """Number of processes that have not been reaped."""


PROCESS_FIELDS = (
    "pid",
    "parent",
    "place",
    "cpu",
    "program",
    "priority",
    "tickets",
    "weight",
    "run_time",
)
"""Fields of struct simulator_process that become columns of Simulator.processes()."""

_ENUMERATIONS: tuple[tuple[str, str, type[IntEnum], set[str]], ...] = (
    ("simulator_status", "SIMULATOR_", Status, {"FAILED"}),  # FAILED becomes an exception
    ("simulator_place", "SIMULATOR_", Place, set()),
    ("attribute_kind", "ATTRIBUTE_", Attribute, set()),
)
"""For each C enumeration: its name, prefix, Python class, and the enumerators that Python omits."""


class Library:
    """The opened C library: cffi's types (`ffi`) and functions (`c`), and matching numpy types."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.ffi, self.c = declarations.load(path)
        try:
            self.check()
        except (KeyError, AttributeError, FFIError) as error:
            raise LibraryUnusable(
                f"{path} is of another version; {declarations.CURE}: {error}"
            ) from None
        self.process = self.dtype("struct simulator_process")
        self.counts = self.dtype("struct simulator_counts")
        self.step = self.dtype("struct workload_step")

    def check(self) -> None:
        """Compares this package's declarations with the library's. Raises LibraryUnusable."""
        for c_name, prefix, ours, without in _ENUMERATIONS:
            constants = self.ffi.typeof(f"enum {c_name}").relements
            theirs = {name.removeprefix(prefix): value for name, value in constants.items()}
            self.compare(f"enum {c_name}", {entry.name: entry.value for entry in ours},
                         {name: theirs[name] for name in theirs if name not in without})  # fmt: skip
        self.compare("struct simulator_counts", set(Counts._fields), self.fields("counts"))
        self.compare("struct simulator_process", set(PROCESS_FIELDS), self.fields("process"))

    def fields(self, name: str) -> set[str]:
        return {field for field, _ in self.ffi.typeof(f"struct simulator_{name}").fields or ()}

    def compare(self, declaration: str, ours: object, theirs: object) -> None:
        if ours != theirs:
            raise LibraryUnusable(
                f"the library's {declaration} is {theirs}, and this package needs {ours}; "
                f"{declarations.CURE}"
            )

    def dtype(self, name: str) -> np.dtype[np.void]:
        """Returns numpy's type of a C structure of whole numbers, with its offsets and size."""
        kind = self.ffi.typeof(name)
        layout: Any = {
            "names": [field for field, _ in kind.fields],
            "formats": [self.number_format(field.type) for _, field in kind.fields],
            "offsets": [field.offset for _, field in kind.fields],
            "itemsize": self.ffi.sizeof(kind),
        }
        layout_type: np.dtype[np.void] = np.dtype(layout)
        return layout_type

    def number_format(self, kind: Any) -> str:
        signed = int(self.ffi.cast(kind, -1)) < 0
        return f"{'i' if signed else 'u'}{self.ffi.sizeof(kind)}"

    def message(self, error: Any) -> str:
        """Returns the text of a struct simulator_error."""
        text = self.ffi.string(error.text)
        assert isinstance(text, bytes)
        return text.decode(errors="replace")


def library() -> Library:
    """Returns the C library, opened at the first call; within `using`, the library named there.

    Raises errors.LibraryUnusable.
    """
    with _OPENING:
        return opened(_chosen.get())


@cache
def opened(path: str) -> Library:
    """Opens a library, and keeps it open. Only one thread at a time may call this."""
    return Library(path or declarations.find())


@contextmanager
def using(path: FilePath) -> Iterator[None]:
    """Makes library() return another library within the block, in this thread."""
    token = _chosen.set(fspath(path))
    try:
        yield
    finally:
        _chosen.reset(token)


_chosen: ContextVar[str] = ContextVar("library", default="")
_OPENING = Lock()
"""Held while a library is opened.

Threads that opened a library twice would have different types, which reject each other's objects.
"""

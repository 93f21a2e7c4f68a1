# SPDX-License-Identifier: MIT
"""Describes what is wrong with a trace, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from schedlab.errors import FileRefused
from schedlab.trace.format import Kind, ProcessState


class RecordSource(Protocol):
    """What error messages need of a trace: its records by row, and their sequence numbers."""

    def piece(self, begin: int, end: int) -> npt.NDArray[np.void]:
        """Returns the records in the rows from `begin` to before `end`."""

    def sequence_at(self, row: int) -> int:
        """Returns a record's sequence number without wrap-around at 2**32."""


@dataclass(frozen=True)
class RecordName:
    """The content of one record, for an error message."""

    row: int
    sequence: int
    time_ns: int
    cpu: int
    kind: int
    process: int
    first: int
    second: int

    @classmethod
    def of(cls, trace: RecordSource, row: int) -> RecordName:
        """Returns the name of the record in a row of a trace."""
        record = trace.piece(row, row + 1)
        fields = ("cpu", "kind", "process", "first", "second")
        return cls(
            row=row,
            sequence=trace.sequence_at(row),
            time_ns=int(record["time"].view(np.int64)[0]),
            **{name: int(record[name][0]) for name in fields},
        )

    @property
    def kind_name(self) -> str:
        """Name of the record's kind, or its number if it is unknown."""
        return Kind(self.kind).name if self.kind in set(Kind) else f"kind {self.kind}"

    def __str__(self) -> str:
        return (
            f"record {self.sequence} at {self.time_ns} ns on CPU {self.cpu}: "
            f"{self.kind_name}{self._arguments()}"
        )

    def _arguments(self) -> str:
        """Returns the meaning of the record's numbers, in words."""
        if self.kind == Kind.SWITCH:
            left = f"process {self.first} ({state_name(self.second)})" if self.first else "idle"
            return f" from {left} to {process_name(self.process)}"
        if self.kind == Kind.FORK:
            return f" of process {self.first} by process {self.process}"
        if self.kind == Kind.WAKEUP:
            waker = f"process {self.first}" if self.first else "an interrupt"
            return f" of process {self.process} by {waker}"
        if self.kind == Kind.QUEUED:
            return f" of process {self.process} for CPU {self.first}, level {self.second}"
        if self.kind == Kind.AFFINITY:
            return f" of process {self.process}, CPUs {64 * self.first} and up: {self.second:#x}"
        return f", process {self.process}, first {self.first}, second {self.second}"


class TraceError(FileRefused):
    """The file is not a trace, or its records are inconsistent."""

    def __init__(self, message: str, record: RecordName | None = None) -> None:
        super().__init__(message)
        self.record = record


def process_name(pid: int) -> str:
    """Returns the name of a process in messages."""
    return f"process {pid}" if pid else "idle"


def state_name(state: int) -> str:
    """Returns the name of a process state in messages."""
    return ProcessState(state).name.lower() if state in set(ProcessState) else f"state {state}"

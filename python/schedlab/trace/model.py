# SPDX-License-Identifier: MIT
"""Defines how a trace is represented in memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from schedlab.trace.format import HEADER, RECORD, Kind, is_kind

Integers = npt.NDArray[np.int64]

CLOCK_SAMPLE = 65_536
"""Number of times used to estimate the clock's step."""
_CLOCK_FIRST_SAMPLE = 256


EVENTS_SCHEMA: dict[str, type[pl.DataType]] = {
    "sequence": pl.Int64,
    "time_ns": pl.Int64,
    "cpu": pl.UInt16,
    "kind": pl.UInt16,
    "process": pl.UInt32,
    "first": pl.UInt32,
    "second": pl.UInt64,
}
TEXTS_SCHEMA: dict[str, type[pl.DataType]] = {"row": pl.Int64, "text": pl.String}


@dataclass(frozen=True)
class Header:
    """The trace's header: a description of the machine."""

    cpus: int
    tick_ns: int
    cycles_per_second: int
    seed: int
    header_bytes: int = HEADER.itemsize


class Columns(NamedTuple):
    """Records in order, as columns of equal length; `time` in ns. `first`, `second`: as the kind says."""

    time: Integers
    cpu: npt.NDArray[np.uint16]
    kind: npt.NDArray[np.uint16]
    process: npt.NDArray[np.uint32]
    first: npt.NDArray[np.uint32]
    second: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, records: npt.NDArray[np.void]) -> Columns:
        """Returns the columns of records that are in the file's layout."""
        time, *others = (records[name].copy() for name in ("time", *cls._fields[1:]))
        return cls(time.view(np.int64), *others)


@dataclass(frozen=True, eq=False)
class Trace:
    """A trace in memory, as returned by `read`."""

    path: Path
    header: Header
    events: pl.DataFrame
    """One row per record in sequence order; columns of EVENTS_SCHEMA."""
    texts: pl.DataFrame
    """Texts of the records of TEXT_OWNERS kinds: row (in `events`), text."""
    truncated: bool
    """True if recording ended too early: the last records of at least one CPU are missing."""
    missing: int
    """How many sequence numbers between the first and the last have no record."""
    declared_lost: int
    """How many lost records the machine reports in LOST records."""

    @property
    def lost(self) -> int:
        """How many records were lost, as gaps in the sequence or LOST records show."""
        return max(self.missing, self.declared_lost)

    @cached_property
    def begin_ns(self) -> int:
        """Time of the earliest record; 0 if there is none."""
        return int(self.column("time_ns").min()) if len(self.events) else 0

    @cached_property
    def end_ns(self) -> int:
        """Time of the latest record; 0 if there is none."""
        return int(self.column("time_ns").max()) if len(self.events) else 0

    @cached_property
    def clock_step_ns(self) -> int:
        """The clock's step in ns (see clock_step)."""
        return clock_step(self.column("time_ns")[:CLOCK_SAMPLE])

    def column(self, name: str) -> npt.NDArray[np.int64]:
        """Returns a column of `events` in its integer type, without copying."""
        return self.events[name].to_numpy()

    def __len__(self) -> int:
        return len(self.events)

    def at(self, name: str, rows: Integers) -> npt.NDArray[np.int64]:
        """Returns a column's values in some rows."""
        values: npt.NDArray[np.int64] = self.column(name)[rows]
        return values

    def piece(self, begin: int, end: int) -> npt.NDArray[np.void]:
        """Returns the rows from `begin` to before `end`, in the file's layout."""
        return self.records(np.arange(begin, min(end, len(self))))

    @property
    def columns(self) -> Columns:
        """All records, without copying."""
        time, cpu, kind, process, first, second = (
            self.events[name].to_numpy()
            for name in ("time_ns", "cpu", "kind", "process", "first", "second")
        )
        return Columns(time, cpu, kind, process, first, second)

    def has(self, kind: Kind) -> bool:
        """True if there is a record of this kind."""
        return bool((self.column("kind") == kind).any())

    def sequence_at(self, row: int) -> int:
        """Returns a row's sequence number without wrap-around at 2**32."""
        return int(self.events["sequence"][row])

    def rows(self, *kinds: Kind) -> Integers:
        """Returns the rows of `events` with a record of one of these kinds."""
        return np.flatnonzero(is_kind(self.column("kind"), *kinds))

    def records(self, rows: Integers) -> npt.NDArray[np.void]:
        """Returns some rows of `events` in the file's layout."""
        seldom_records = np.empty(len(rows), RECORD)
        for name in RECORD.names or ():
            column = self.column("time_ns" if name == "time" else name)[rows]
            seldom_records[name] = column.astype(RECORD[name])
        return seldom_records

    def file_offset(self, row: int) -> int:
        """Returns where in the file (in bytes) a row's record is. Reads the file again."""
        sequence = np.uint32(self.sequence_at(row) & 0xFFFF_FFFF)
        with self.path.open("rb") as file:
            file.seek(self.header.header_bytes)
            records = np.fromfile(file, RECORD, count=-1)
        return self.header.header_bytes + RECORD.itemsize * int(
            np.flatnonzero(records["sequence"] == sequence)[0]
        )


def clock_step(times: Integers) -> int:
    """Returns the step (ns) of a clock: the greatest common divisor of times; 0 if all
    are equal.

    It is 1 for a fine clock. With a coarse clock, shorter durations appear as 0.
    """
    if not len(times):
        return 0
    distance = times - times[0]
    # Of a fine clock, a few times have no common divisor. All others then cannot have one.
    first_divisor = int(np.gcd.reduce(distance[:_CLOCK_FIRST_SAMPLE]))
    return first_divisor if first_divisor == 1 else int(np.gcd.reduce(distance))

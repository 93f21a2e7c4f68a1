# SPDX-License-Identifier: MIT
"""Extracts from a trace the few records that name, mark, fork and end processes.

Metrics need these records in any order, so they are kept in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from schedlab.trace.format import RECORD, Kind, is_kind
from schedlab.trace.model import CLOCK_SAMPLE, Header, Integers, clock_step
from schedlab.trace.ordered import OrderedRecords, read_records
from schedlab.trace.reader import PART_RECORDS, Records, read_texts, select_records

_SCHEDULING_KINDS = (
    Kind.WAKEUP,
    Kind.BLOCK,
    Kind.SWITCH,
    Kind.YIELD,
    Kind.PREEMPT,
    Kind.MIGRATE,
    Kind.SCHEDULER_ENTER,
    Kind.SCHEDULER_EXIT,
    Kind.DECISION,
    Kind.QUEUED,
    Kind.DISPATCH,
    Kind.KICK,
)
"""Kinds of records that a trace has by the million; an outline omits them."""


class TraceFacts(Protocol):
    """What an outline has in common with a whole trace."""

    @property
    def header(self) -> Header: ...
    @property
    def texts(self) -> pl.DataFrame: ...
    @property
    def truncated(self) -> bool: ...
    @property
    def lost(self) -> int: ...
    @property
    def begin_ns(self) -> int: ...
    @property
    def end_ns(self) -> int: ...
    @property
    def clock_step_ns(self) -> int: ...

    def __len__(self) -> int: ...

    def has(self, kind: Kind) -> bool:
        """True if there is a record of this kind."""

    def rows(self, *kinds: Kind) -> Integers:
        """Returns the rows of the trace with a record of one of these kinds."""

    def at(self, name: str, rows: Integers) -> npt.NDArray[np.int64]:
        """Returns the values of a column of the events in some rows."""


@dataclass(frozen=True, eq=False)
class Outline:
    """The records of a trace that do not record scheduling decisions."""

    path: Path
    header: Header
    length: int
    """Number of records of the whole trace."""
    row: Integers
    """Row of each record in the whole trace; ascending."""
    records: Records
    kinds: frozenset[Kind]
    """All kinds of records that occur in the whole trace."""
    begin_ns: int
    end_ns: int
    clock_step_ns: int
    missing: int
    last_record_complete: bool
    """False if the file ends within a record."""

    def __len__(self) -> int:
        return self.length

    @cached_property
    def truncated(self) -> bool:
        """See TraceFacts."""
        return (
            not self.last_record_complete
            or len(np.unique(self._records_of(Kind.END)["cpu"])) < self.header.cpus
        )

    @cached_property
    def lost(self) -> int:
        """See TraceFacts."""
        return max(self.missing, int(self._records_of(Kind.LOST)["second"].sum()))

    @cached_property
    def texts(self) -> pl.DataFrame:
        """See Trace; rows are those of the trace."""
        return read_texts(self.records, self.records["kind"], self.row)

    def _records_of(self, kind: Kind) -> Records:
        records: Records = self.records[self.records["kind"] == kind]
        return records

    def has(self, kind: Kind) -> bool:
        """See TraceFacts."""
        return kind in self.kinds

    def rows(self, *kinds: Kind) -> Integers:
        """See Facts. Raises ValueError for a kind that outlines do not contain."""
        if set(kinds) & set(_SCHEDULING_KINDS):
            raise ValueError("an outline does not hold such records")
        selected_rows: Integers = self.row[is_kind(self.records["kind"], *kinds)]
        return selected_rows

    def at(self, name: str, rows: Integers) -> npt.NDArray[np.int64]:
        """See Facts. Values are arbitrary for rows that the outline omits."""
        column = self.records["time" if name == "time_ns" else name]
        if name == "time_ns":
            column = column.view(np.int64)
        if not len(column):
            return np.zeros(len(rows), np.int64)
        place = np.minimum(np.searchsorted(self.row, rows), len(column) - 1)
        values: npt.NDArray[np.int64] = column[place]
        return values


def make_outline(source: OutlineSource) -> Outline:
    """Returns the outline of a trace that is in memory."""
    facts = _OutlineBuilder()
    facts.take(0, source.piece(0, len(source)))
    return facts.of(source)


def open_outlined(path: str | Path) -> tuple[OrderedRecords, Outline]:
    """Opens a trace that may be larger than memory, and extracts its outline. Raises the same errors as `read`."""
    builder = _OutlineBuilder()
    source = read_records(path, builder.take)
    return source, builder.of(source) if source.order is None else extract_outline(source)


def extract_outline(source: OrderedRecords) -> Outline:
    """Extracts the outline, reading the trace once."""
    builder = _OutlineBuilder()
    for begin in range(0, len(source), PART_RECORDS):
        builder.take(begin, source.piece(begin, begin + PART_RECORDS))
    return builder.of(source)


class OutlineSource(Protocol):
    """What an outline is extracted from."""

    @property
    def path(self) -> Path: ...
    @property
    def header(self) -> Header: ...
    @property
    def missing(self) -> int: ...
    @property
    def last_record_complete(self) -> bool: ...

    def __len__(self) -> int: ...

    def piece(self, begin: int, end: int) -> Records:
        """Returns the records from row `begin` to before row `end`."""


class _OutlineBuilder:
    """Collects the records that do not record scheduling decisions, while the trace is read part by part."""

    def __init__(self) -> None:
        self._rows = [np.empty(0, np.int64)]
        self._needed_records = [np.empty(0, RECORD)]
        self._kinds: set[Kind] = set()
        self._begins: list[int] = []
        self._ends: list[int] = []
        self._sample = np.empty(0, np.int64)

    def take(self, begin: int, records: Records) -> None:
        """Adds the next records, whose first row is `begin`."""
        kind = records["kind"].copy()
        time = records["time"].copy().view(np.int64)
        needed = np.flatnonzero(~is_kind(kind, *_SCHEDULING_KINDS))
        self._rows.append(needed + begin)
        self._needed_records.append(select_records(records, needed))
        self._kinds |= {one for one in set(Kind) - self._kinds if is_kind(kind, one).any()}
        self._begins.append(int(time.min()))
        self._ends.append(int(time.max()))
        if len(self._sample) < CLOCK_SAMPLE:
            self._sample = np.concatenate((self._sample, time))[:CLOCK_SAMPLE]

    def of(self, source: OutlineSource) -> Outline:
        """Returns the outline. Call after all records were added."""
        return Outline(
            path=source.path,
            header=source.header,
            length=len(source),
            row=np.concatenate(self._rows),
            records=np.concatenate(self._needed_records),
            kinds=frozenset(self._kinds),
            begin_ns=min(self._begins, default=0),
            end_ns=max(self._ends, default=0),
            clock_step_ns=clock_step(self._sample),
            missing=source.missing,
            last_record_complete=source.last_record_complete,
        )

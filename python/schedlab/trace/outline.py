# SPDX-License-Identifier: MIT
"""What a trace says apart from scheduling: the few records that name, mark, fork and end."""

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
from schedlab.trace.reader import AT_ONCE, Records, gather, read_texts

_MANY = (
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
)
"""Kinds of which a trace has a record for each decision; an outline holds the others."""


class Facts(Protocol):
    """What is asked of a trace besides its scheduling; a whole one answers, and an outline."""

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
        """Rows of the trace that hold a record of one of these kinds."""

    def at(self, name: str, rows: Integers) -> npt.NDArray[np.int64]:
        """What a column of the events says in some rows."""


@dataclass(frozen=True, eq=False)
class Outline:
    """A trace that is longer than memory may be: its few records, and where they stand in it."""

    path: Path
    header: Header
    length: int
    """Records of the trace."""
    row: Integers
    """Of the trace, of each record that is held; ascending."""
    records: Records
    kinds: frozenset[Kind]
    """Of all records."""
    begin_ns: int
    end_ns: int
    clock_step_ns: int
    missing: int
    whole: bool
    """The last record is."""

    def __len__(self) -> int:
        return self.length

    @cached_property
    def truncated(self) -> bool:
        """See Trace."""
        return not self.whole or len(np.unique(self._of(Kind.END)["cpu"])) < self.header.cpus

    @cached_property
    def lost(self) -> int:
        """See Trace."""
        return max(self.missing, int(self._of(Kind.LOST)["second"].sum()))

    @cached_property
    def texts(self) -> pl.DataFrame:
        """See Trace; their rows are the trace's."""
        all_texts = read_texts(self.records, self.records["kind"])
        return all_texts.with_columns(
            row=pl.Series(self.row[all_texts["row"].to_numpy()], dtype=pl.Int64)
        )

    def _of(self, kind: Kind) -> Records:
        records: Records = self.records[self.records["kind"] == kind]
        return records

    def has(self, kind: Kind) -> bool:
        """See Facts."""
        return kind in self.kinds

    def rows(self, *kinds: Kind) -> Integers:
        """See Facts. Raises ValueError for a kind of which an outline holds none."""
        if set(kinds) & set(_MANY):
            raise ValueError("an outline does not hold such records")
        selected_rows: Integers = self.row[is_kind(self.records["kind"], *kinds)]
        return selected_rows

    def at(self, name: str, rows: Integers) -> npt.NDArray[np.int64]:
        """See Facts. Where an outline does not hold a row, what it says is any number."""
        column = self.records["time" if name == "time_ns" else name]
        if name == "time_ns":
            column = column.view(np.int64)
        if not len(column):
            return np.zeros(len(rows), np.int64)
        place = np.minimum(np.searchsorted(self.row, rows), len(column) - 1)
        values: npt.NDArray[np.int64] = column[place]
        return values


def read_outlined(path: str | Path) -> tuple[OrderedRecords, Outline]:
    """Opens a trace that may be larger than memory, and looks through it. Raises what `read` does."""
    facts = _Gathered()
    source = read_records(path, facts.take)
    return source, facts.of(source) if source.order is None else outline(source)


def outline(source: OrderedRecords) -> Outline:
    """Looks through a trace once."""
    facts = _Gathered()
    for begin in range(0, len(source), AT_ONCE):
        facts.take(begin, source.piece(begin, begin + AT_ONCE))
    return facts.of(source)


class _Gathered:
    """What an outline has of the records so far."""

    def __init__(self) -> None:
        self._rows = [np.empty(0, np.int64)]
        self._held = [np.empty(0, RECORD)]
        self._kinds: set[Kind] = set()
        self._begins: list[int] = []
        self._ends: list[int] = []
        self._sample = np.empty(0, np.int64)

    def take(self, begin: int, records: Records) -> None:
        """The records from this row on."""
        kind = records["kind"].copy()
        time = records["time"].copy().view(np.int64)
        few = np.flatnonzero(~is_kind(kind, *_MANY))
        self._rows.append(few + begin)
        self._held.append(gather(records, few))
        self._kinds |= {one for one in set(Kind) - self._kinds if is_kind(kind, one).any()}
        self._begins.append(int(time.min()))
        self._ends.append(int(time.max()))
        if len(self._sample) < CLOCK_SAMPLE:
            self._sample = np.concatenate((self._sample, time))[:CLOCK_SAMPLE]

    def of(self, source: OrderedRecords) -> Outline:
        """The outline of a trace, all of whose records were taken."""
        return Outline(
            path=source.path,
            header=source.header,
            length=len(source),
            row=np.concatenate(self._rows),
            records=np.concatenate(self._held),
            kinds=frozenset(self._kinds),
            begin_ns=min(self._begins, default=0),
            end_ns=max(self._ends, default=0),
            clock_step_ns=clock_step(self._sample),
            missing=source.missing,
            whole=source.whole,
        )

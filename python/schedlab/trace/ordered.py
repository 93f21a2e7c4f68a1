# SPDX-License-Identifier: MIT
"""Reads a trace that may be larger than memory: its records in order, one piece at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from schedlab.trace.format import RECORD
from schedlab.trace.model import Header, Integers
from schedlab.trace.reader import (
    AT_ONCE,
    Records,
    gather,
    map_records,
    order_of,
    read_header,
    rises,
    unwrap,
)


@dataclass(frozen=True, eq=False)
class OrderedRecords:
    """A trace's records in the order of their sequence; only requested records are in memory.

    If the file is not in order, an index needs another 8 bytes per record.
    """

    path: Path
    header: Header
    count: int
    """The number of records in the file."""
    order: Integers | None
    """For each place in the order, the position of its record in the file; None if the file is in order."""
    missing: int
    """Number of missing sequence numbers between the first and the last."""
    last_record_complete: bool
    """True if the last record is complete."""

    def __len__(self) -> int:
        return self.count

    def piece(self, begin: int, end: int) -> Records:
        """Returns the records at the places from `begin` to before `end` in the order."""
        if self.order is None:
            return _in_file(self.path, self.header, begin, min(end, self.count))
        # A new mapping for each piece, because pages stay in memory as long as their mapping.
        return gather(map_records(self.path, self.header, self.count), self.order[begin:end])

    def sequence_at(self, place: int) -> int:
        """Returns a record's sequence number, unwrapped."""
        sequence = int(self.piece(place, place + 1)["sequence"][0])
        return (sequence - self._origin + (1 << 31)) % (1 << 32) - (1 << 31) + self._base

    def file_offset(self, place: int) -> int:
        """Returns the byte offset in the file of a record: the first one with its sequence number."""
        expected = np.uint32(self.sequence_at(place) & 0xFFFF_FFFF)
        places = np.flatnonzero(_sequences(self.path, self.header, self.count) == expected)
        return self.header.header_bytes + RECORD.itemsize * int(places[0])

    @cached_property
    def _origin(self) -> int:
        """The sequence number of the file's first record."""
        return int(_in_file(self.path, self.header, 0, 1)["sequence"][0])

    @cached_property
    def _base(self) -> int:
        """The unwrapped sequence number of the file's first record."""
        return int(unwrap(_sequences(self.path, self.header, self.count))[0])


Look = Callable[[int, Records], None]


def read_records(path: str | Path, look: Look | None = None) -> OrderedRecords:
    """Opens a trace that may be larger than memory. Raises the same errors as `read`.

    `look` is called with each piece of records and the place of its first record. If the file is
    not in order, it gets only some of the records, in file order.
    """
    path = Path(path)
    header, record_bytes = read_header(path)
    count = record_bytes // RECORD.itemsize
    order, missing = _order(path, header, count, look)
    return OrderedRecords(
        path=path,
        header=header,
        count=count,
        order=order,
        missing=missing,
        last_record_complete=record_bytes % RECORD.itemsize == 0,
    )


def _order(
    path: Path, header: Header, count: int, look: Look | None
) -> tuple[Integers | None, int]:
    """Returns `order` and `missing` of OrderedRecords."""
    span = _span(path, header, count, look)
    if span is not None:
        return None, span - count
    sequence = unwrap(_sequences(path, header, count))
    missing = int(sequence.max()) - int(sequence.min()) + 1 - count
    return order_of(sequence), max(missing, 0)


def _span(path: Path, header: Header, count: int, look: Look | None) -> int | None:
    """Returns the length of the range of sequence numbers, or None if they are not in order."""
    span = 0
    last = None
    for begin in range(0, count, AT_ONCE):
        piece = _in_file(path, header, begin, min(begin + AT_ONCE, count))
        step = rises(last, piece["sequence"])
        span += int(step.sum(dtype=np.int64))
        # A range of more than half of all numbers may have wrapped around.
        if not ((step > 0) & (step < 1 << 31)).all() or span > 1 << 31:
            return None
        last = piece["sequence"][-1:].copy()
        if look:
            look(begin, piece)
    return span


def _sequences(path: Path, header: Header, count: int) -> npt.NDArray[np.uint32]:
    """Returns all sequence numbers in file order."""
    sequences = np.empty(count, np.uint32)
    for begin in range(0, count, AT_ONCE):
        piece = _in_file(path, header, begin, min(begin + AT_ONCE, count))
        sequences[begin : begin + AT_ONCE] = piece["sequence"]
    return sequences


def _in_file(path: Path, header: Header, begin: int, end: int) -> Records:
    """Returns the records from `begin` to before `end`, in file order."""
    offset = header.header_bytes + RECORD.itemsize * begin
    records: Records = np.fromfile(path, RECORD, count=max(end - begin, 0), offset=offset)
    return records

# SPDX-License-Identifier: MIT
"""Reads the records of a trace in order, one piece at a time; the trace may be larger than memory."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from schedlab.trace.format import RECORD
from schedlab.trace.model import Header, Integers
from schedlab.trace.reader import (
    PART_RECORDS,
    Records,
    map_records,
    read_header,
    select_records,
    sequence_differences,
    sequence_order,
    unwrap_sequence,
)


@dataclass(frozen=True, eq=False)
class OrderedRecords:
    """A trace's records in sequence order; only the requested ones are in memory.

    If the file is not in order, an index needs another 8 bytes per record.
    """

    path: Path
    header: Header
    count: int
    """The number of records in the file."""
    order: Integers | None
    """For each place in sequence order, where its record is in the file; None if the file is in order."""
    missing: int
    """Number of missing sequence numbers between the first and the last."""
    last_record_complete: bool
    """False if the file ends within a record."""

    def __len__(self) -> int:
        return self.count

    def piece(self, begin: int, end: int) -> Records:
        """Returns the records from place `begin` to before place `end` in sequence order."""
        if self.order is None:
            return _read_in_file_order(self.path, self.header, begin, min(end, self.count))
        # mapped anew each time: the pages of a mapping stay in memory as long as the mapping
        return select_records(
            map_records(self.path, self.header, self.count), self.order[begin:end]
        )

    def sequence_at(self, place: int) -> int:
        """Returns a record's sequence number without wrap-around at 2**32."""
        sequence = int(self.piece(place, place + 1)["sequence"][0])
        return (sequence - self._origin + (1 << 31)) % (1 << 32) - (1 << 31) + self._base

    def file_offset(self, place: int) -> int:
        """Returns where in the file (in bytes) the first record with this place's sequence number is."""
        expected = np.uint32(self.sequence_at(place) & 0xFFFF_FFFF)
        places = np.flatnonzero(_read_sequences(self.path, self.header, self.count) == expected)
        return self.header.header_bytes + RECORD.itemsize * int(places[0])

    @cached_property
    def _origin(self) -> int:
        """The sequence number of the file's first record."""
        return int(_read_in_file_order(self.path, self.header, 0, 1)["sequence"][0])

    @cached_property
    def _base(self) -> int:
        """Sequence number of the file's first record, without wrap-around."""
        return int(unwrap_sequence(_read_sequences(self.path, self.header, self.count))[0])


PieceCallback = Callable[[int, Records], None]


def read_records(path: str | Path, on_piece: PieceCallback | None = None) -> OrderedRecords:
    """Opens a trace without loading it. Raises the same errors as `read`.

    `on_piece` is called with each piece of records and the place of its first record. If the file is
    not in order, `on_piece` gets only some of the records, in file order.
    """
    path = Path(path)
    header, record_bytes = read_header(path)
    count = record_bytes // RECORD.itemsize
    order, missing = _sequence_order(path, header, count, on_piece)
    return OrderedRecords(
        path=path,
        header=header,
        count=count,
        order=order,
        missing=missing,
        last_record_complete=record_bytes % RECORD.itemsize == 0,
    )


def _sequence_order(
    path: Path, header: Header, count: int, on_piece: PieceCallback | None
) -> tuple[Integers | None, int]:
    """Returns the values of `order` and `missing` of OrderedRecords."""
    span = _sequence_span(path, header, count, on_piece)
    if span is not None:
        return None, span - count
    sequence = unwrap_sequence(_read_sequences(path, header, count))
    missing = int(sequence.max()) - int(sequence.min()) + 1 - count
    return sequence_order(sequence), max(missing, 0)


def _sequence_span(
    path: Path, header: Header, count: int, on_piece: PieceCallback | None
) -> int | None:
    """Returns how far the sequence numbers reach, or None if the records are not in order."""
    span = 0
    last = None
    for begin in range(0, count, PART_RECORDS):
        piece = _read_in_file_order(path, header, begin, min(begin + PART_RECORDS, count))
        step = sequence_differences(last, piece["sequence"])
        span += int(step.sum(dtype=np.int64))
        # If they reach over more than half of all 32-bit numbers, they may have wrapped around.
        if not ((step > 0) & (step < 1 << 31)).all() or span > 1 << 31:
            return None
        last = piece["sequence"][-1:].copy()
        if on_piece:
            on_piece(begin, piece)
    return span


def _read_sequences(path: Path, header: Header, count: int) -> npt.NDArray[np.uint32]:
    """Returns all sequence numbers in file order."""
    sequences = np.empty(count, np.uint32)
    for begin in range(0, count, PART_RECORDS):
        piece = _read_in_file_order(path, header, begin, min(begin + PART_RECORDS, count))
        sequences[begin : begin + PART_RECORDS] = piece["sequence"]
    return sequences


def _read_in_file_order(path: Path, header: Header, begin: int, end: int) -> Records:
    """Returns the records from `begin` to before `end`, in file order."""
    offset = header.header_bytes + RECORD.itemsize * begin
    records: Records = np.fromfile(path, RECORD, count=max(end - begin, 0), offset=offset)
    return records

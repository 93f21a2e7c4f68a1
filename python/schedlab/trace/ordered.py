# SPDX-License-Identifier: MIT
"""A trace that may be larger than memory: its records in their order, a piece at a time."""

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
    """A trace's records in the order of their sequence, of which only those that are asked for are
    in memory; besides them 8 bytes a record, unless the file has them in their order already."""

    path: Path
    header: Header
    count: int
    """The number of records in the file."""
    order: Integers | None
    """For each place in the order, where its record is to be found; None: the records are in order.
    """
    missing: int
    """Sequence numbers between the first and the last that are not there."""
    whole: bool
    """True if the last record is not cut."""

    def __len__(self) -> int:
        return self.count

    def piece(self, begin: int, end: int) -> Records:
        """The records at the places from `begin` to before `end` in the order."""
        if self.order is None:
            return _in_file(self.path, self.header, begin, min(end, self.count))
        # A mapping of its own: what a mapping has read stays in memory as long as it does.
        return gather(map_records(self.path, self.header, self.count), self.order[begin:end])

    def sequence_at(self, place: int) -> int:
        """The sequence number of a record, unwrapped."""
        sequence = int(self.piece(place, place + 1)["sequence"][0])
        return (sequence - self._origin + (1 << 31)) % (1 << 32) - (1 << 31) + self._base

    def file_offset(self, place: int) -> int:
        """Where in the file a record begins, in bytes: the first of its sequence number."""
        expected = np.uint32(self.sequence_at(place) & 0xFFFF_FFFF)
        places = np.flatnonzero(_sequences(self.path, self.header, self.count) == expected)
        return self.header.header_bytes + RECORD.itemsize * int(places[0])

    @cached_property
    def _origin(self) -> int:
        """The sequence number of the file's first record."""
        return int(_in_file(self.path, self.header, 0, 1)["sequence"][0])

    @cached_property
    def _base(self) -> int:
        """The same, unwrapped."""
        return int(unwrap(_sequences(self.path, self.header, self.count))[0])


Look = Callable[[int, Records], None]


def read_records(path: str | Path, look: Look | None = None) -> OrderedRecords:
    """Opens a trace that may be larger than memory. Raises what `read` does.

    `look` is shown all records on the way, a piece at a time, with the place of its first. If the file
    does not have them in their order, it is shown some of them, in the file's.
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
        whole=record_bytes % RECORD.itemsize == 0,
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
    """Returns how many sequence numbers there are from the first to the last, or None if they are not in
    order."""
    span = 0
    last = None
    for begin in range(0, count, AT_ONCE):
        piece = _in_file(path, header, begin, min(begin + AT_ONCE, count))
        step = rises(last, piece["sequence"])
        span += int(step.sum(dtype=np.int64))
        # What spans half of all numbers may have wrapped around.
        if not ((step > 0) & (step < 1 << 31)).all() or span > 1 << 31:
            return None
        last = piece["sequence"][-1:].copy()
        if look:
            look(begin, piece)
    return span


def _sequences(path: Path, header: Header, count: int) -> npt.NDArray[np.uint32]:
    """All sequence numbers, as the file has them."""
    sequences = np.empty(count, np.uint32)
    for begin in range(0, count, AT_ONCE):
        piece = _in_file(path, header, begin, min(begin + AT_ONCE, count))
        sequences[begin : begin + AT_ONCE] = piece["sequence"]
    return sequences


def _in_file(path: Path, header: Header, begin: int, end: int) -> Records:
    """Records as the file has them, from one place to before another."""
    offset = header.header_bytes + RECORD.itemsize * begin
    records: Records = np.fromfile(path, RECORD, count=max(end - begin, 0), offset=offset)
    return records

# SPDX-License-Identifier: MIT
"""Writes traces, for programs that convert recordings of other machines."""

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from schedlab.trace.format import (
    HEADER,
    MAGIC,
    RECORD,
    TEXT_BYTES_PER_RECORD,
    TEXT_FOLLOWS,
    TEXT_RECORDS_MAX,
    VERSION,
    Kind,
)

_PACK_RECORD = struct.Struct("<QIIHHIQ").pack
_UNPACK_TEXT = struct.Struct("<QI").unpack
_SEQUENCE_MASK = 0xFFFF_FFFF

assert struct.calcsize("<QIIHHIQ") == RECORD.itemsize

Fields = tuple[int, int, int, int, int, int]
"""time_ns, process, kind, cpu, first, second."""


def header_bytes(cpus: int, tick_ns: int, cycles_per_second: int, seed: int = 0) -> bytes:
    """Returns the header of a trace."""
    header = np.zeros((), HEADER)
    header["magic"] = MAGIC
    header["version"] = VERSION
    header["header_bytes"] = HEADER.itemsize
    header["record_bytes"] = RECORD.itemsize
    header["cpus"] = cpus
    header["tick_ns"] = tick_ns
    header["cycles_per_second"] = cycles_per_second
    header["seed"] = seed
    return header.tobytes()


def text_records(
    kind: Kind, text: str, first: int = 0, second: int = 0
) -> Iterator[tuple[Kind, int, int]]:
    """Yields kind, `first` and `second` of each record of a text.

    The parameters `first` and `second` are for kinds with both a text and numbers.
    """
    if kind in TEXT_FOLLOWS:
        yield kind, first, second
        kind = Kind.TEXT
    bytes_per_record = TEXT_BYTES_PER_RECORD
    data = text.encode()[: bytes_per_record * (TEXT_RECORDS_MAX - 1)]
    for index in range(0, max(len(data), 1), bytes_per_record):
        high, low = _UNPACK_TEXT(
            data[index : index + bytes_per_record].ljust(bytes_per_record, b"\0")
        )
        yield kind, low, high
        kind = Kind.TEXT


class TraceWriter:
    """Collects records in chronological order over all CPUs, and numbers them.

    Times must not decrease on one CPU. `write` adds START and END for all CPUs.
    """

    def __init__(self, cpus: int, tick_ns: int, cycles_per_second: int, seed: int = 0) -> None:
        self.cpus = cpus
        self._header = header_bytes(cpus, tick_ns, cycles_per_second, seed)
        self.records: list[Fields | list[Fields]] = []
        """The records so far; a list is a reserved place."""

    def add(
        self, time_ns: int, cpu: int, kind: Kind, process: int = 0, first: int = 0, second: int = 0
    ) -> None:
        """Adds the next record."""
        self.records.append((time_ns, process, kind, cpu, first, second))

    def hold(self) -> int:
        """Reserves a place for records that are known only later, and returns it."""
        self.records.append([])
        return len(self.records) - 1

    def fill(self, index: int, *records: Fields) -> None:
        """Adds records at a reserved place."""
        record = self.records[index]
        assert isinstance(record, list)
        record += records

    def in_order(self) -> Iterator[Fields]:
        """Yields the records so far; those of a reserved place appear there."""
        for record in self.records:
            if isinstance(record, list):
                yield from record
            else:
                yield record

    def add_text(
        self,
        time_ns: int,
        cpu: int,
        kind: Kind,
        text: str,
        process: int = 0,
        first: int = 0,
        second: int = 0,
    ) -> None:
        """Adds a record with a text. `first` and `second` are for kinds with both a text and numbers."""
        for text_record, low, high in text_records(kind, text, first, second):
            self.add(time_ns, cpu, text_record, process, low, high)

    def write(self, path: Path, begin_ns: int, end_ns: int, origin_ns: int = 0) -> int:
        """Writes the whole trace, and returns the number of records.

        `begin_ns`, `end_ns`: times of START and END of all CPUs. `origin_ns`: the time that becomes
        0 in the file.
        """
        rows: list[Fields] = [
            (begin_ns, 0, Kind.START, cpu, 0, begin_ns - origin_ns) for cpu in range(self.cpus)
        ]
        rows += self.in_order()
        count = [0] * self.cpus
        for record in rows:
            count[record[3]] += 1
        rows += [(end_ns, 0, Kind.END, cpu, 0, count[cpu] + 1) for cpu in range(self.cpus)]
        with path.open("wb") as file:
            file.write(self._header)
            file.write(
                b"".join(
                    _PACK_RECORD(
                        time - origin_ns, number & _SEQUENCE_MASK, process, kind, cpu, first, second
                    )
                    for number, (time, process, kind, cpu, first, second) in enumerate(rows)
                )
            )
        return len(rows)

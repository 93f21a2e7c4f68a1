# SPDX-License-Identifier: MIT
"""Splits a trace into parts that fit in memory and in the processor's caches."""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from schedlab.trace.cpu_records import CpuRecords, CpuSorter
from schedlab.trace.errors import RecordSource
from schedlab.trace.model import Columns, Header
from schedlab.trace.reader import PART_RECORDS, Records
from schedlab.trace.steps import Steps, StepSorter

_BUFFER_BYTES = 31 << 20
"""Size of a block that glibc still reuses; it ignores larger ones (M_MMAP_THRESHOLD in mallopt(3))."""


class Source(RecordSource, Protocol):
    """A trace that returns its records in order: in memory, or one piece at a time."""

    @property
    def path(self) -> Path: ...
    @property
    def header(self) -> Header: ...

    def __len__(self) -> int: ...

    def file_offset(self, row: int) -> int:
        """Returns the byte offset of a record in the file."""


class TracePart:
    """Consecutive records of a trace, in three orders, which are computed when they are first used.

    An order that is used for one part must be used for all, because states carry over between
    parts.
    """

    def __init__(
        self, begin: int, records: Records, by_cpu: CpuSorter, by_process: StepSorter
    ) -> None:
        self.begin = begin
        """Row of the first record."""
        self.records = records
        self._by_cpu = by_cpu
        self._by_process = by_process

    @cached_property
    def columns(self) -> Columns:
        """Records in the trace's order."""
        return Columns.of(self.records)

    @cached_property
    def cpu_records(self) -> CpuRecords:
        """Records sorted by CPU."""
        return self._by_cpu.take(self.begin, self.records)

    @cached_property
    def steps(self) -> Steps:
        """Steps sorted by process."""
        return self._by_process.take(self.begin, self.columns)


class TraceParts:
    """All parts of a trace; iterate only once."""

    def __init__(self, source: Source) -> None:
        """`source`: the trace to split."""
        self._source = source
        self.by_cpu = CpuSorter(source.header.cpus)
        self.by_process = StepSorter()

    def __iter__(self) -> Iterator[TracePart]:
        _keep_memory()
        begin = 0
        while begin < len(self._source):
            # With many live processes, parts are larger: each part repeats the states of all
            # processes.
            size = max(PART_RECORDS, 2 * len(self.by_process.rest().pid))
            records = self._source.piece(begin, begin + size)
            yield TracePart(begin, records, self.by_cpu, self.by_process)
            begin += len(records)


def _keep_memory() -> None:
    """Makes the C library keep large blocks for the next part.

    By default, glibc returns them to the kernel, which must clear new ones. After a block of this
    size was freed, glibc keeps up to 64 MB. The block itself is never written.
    """
    np.empty(_BUFFER_BYTES, np.uint8)

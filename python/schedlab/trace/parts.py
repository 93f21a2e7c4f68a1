# SPDX-License-Identifier: MIT
"""Splits a trace into parts that are small enough for memory and for the processor's caches."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from schedlab.trace.cpu_records import CpuOrder, CpuRecords
from schedlab.trace.errors import Named
from schedlab.trace.model import Columns, Header
from schedlab.trace.reader import AT_ONCE, Records
from schedlab.trace.steps import ProcessOrder, Steps

_BUFFER_BYTES = 31 << 20
"""glibc ignores larger blocks (M_MMAP_THRESHOLD in mallopt(3))."""


class Source(Named, Protocol):
    """A trace that returns its records in order: in memory, or one piece at a time."""

    @property
    def path(self) -> Path: ...
    @property
    def header(self) -> Header: ...

    def __len__(self) -> int: ...

    def file_offset(self, row: int) -> int:
        """Returns the byte offset of a record in the file."""


class Part:
    """Consecutive records in three orders.

    If an order of one part is used, it must be used of all parts, because open states carry over.
    """

    def __init__(
        self, begin: int, records: Records, by_cpu: CpuOrder, by_process: ProcessOrder
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


class Parts:
    """All parts of a trace; iterate only once."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.by_cpu = CpuOrder(source.header.cpus)
        self.by_process = ProcessOrder()

    def __iter__(self) -> Iterator[Part]:
        _keep_memory()
        begin = 0
        while begin < len(self._source):
            # Larger parts if many processes are alive, so that their open states add only a
            # constant factor.
            size = max(AT_ONCE, 2 * len(self.by_process.rest().pid))
            records = self._source.piece(begin, begin + size)
            yield Part(begin, records, self.by_cpu, self.by_process)
            begin += len(records)


def _keep_memory() -> None:
    """Makes the C library keep large blocks for the next part.

    By default, glibc returns them to the kernel, which must clear new ones. After a block of this
    size was freed, it keeps up to 64 MB. The block itself is never touched.
    """
    np.empty(_BUFFER_BYTES, np.uint8)

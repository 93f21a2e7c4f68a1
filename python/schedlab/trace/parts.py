# SPDX-License-Identifier: MIT
"""A trace, part by part: few enough records at a time that a long trace needs no more memory, and
that what is made of them stays in the processor's caches."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from schedlab.trace.errors import Named
from schedlab.trace.model import Columns, Header
from schedlab.trace.reader import AT_ONCE, Records
from schedlab.trace.steps import ProcessOrder, Steps
from schedlab.trace.stories import CpuOrder, Stories

_KEPT_BYTES = 31 << 20
"""glibc takes no notice of larger ones (M_MMAP_THRESHOLD in mallopt(3))."""


class Source(Named, Protocol):
    """A trace that gives its records in their order: a whole one, or one a piece at a time."""

    @property
    def path(self) -> Path: ...
    @property
    def header(self) -> Header: ...

    def __len__(self) -> int: ...

    def file_offset(self, row: int) -> int:
        """Where in the file a record begins, in bytes."""


class Part:
    """Some consecutive records, in three orders. Code that looks at an order of one part must look at it of
    all: what is open is carried on."""

    def __init__(
        self, begin: int, records: Records, by_cpu: CpuOrder, by_process: ProcessOrder
    ) -> None:
        self.begin = begin
        """Row of the first."""
        self.records = records
        self._by_cpu = by_cpu
        self._by_process = by_process

    @cached_property
    def columns(self) -> Columns:
        """In the trace's order."""
        return Columns.of(self.records)

    @cached_property
    def stories(self) -> Stories:
        """In the order of CPUs."""
        return self._by_cpu.take(self.begin, self.records)

    @cached_property
    def steps(self) -> Steps:
        """In the order of processes."""
        return self._by_process.take(self.begin, self.columns)


class Parts:
    """All parts of a trace, to be gone through once."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.by_cpu = CpuOrder(source.header.cpus)
        self.by_process = ProcessOrder()

    def __iter__(self) -> Iterator[Part]:
        _keep_memory()
        begin = 0
        while begin < len(self._source):
            # So that forks without end cost no more than what they do.
            size = max(AT_ONCE, 2 * len(self.by_process.rest().pid))
            records = self._source.piece(begin, begin + size)
            yield Part(begin, records, self.by_cpu, self.by_process)
            begin += len(records)


def _keep_memory() -> None:
    """The C library gives large blocks back at once, and has the host clear others for the next part,
    until one of this size was freed. (It keeps 64 MB then; the block itself is never touched.)"""
    np.empty(_KEPT_BYTES, np.uint8)

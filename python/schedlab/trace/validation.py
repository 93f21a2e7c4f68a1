# SPDX-License-Identifier: MIT
"""Checks whether a whole trace is consistent, without a Python loop over its records.

There are four groups of checks. Each relies on the groups before it:

1. each record individually: its kind, its CPU and its numbers (`record_checks`);

2. order: no sequence number is missing or duplicate;

3. each CPU: its records fit together, from START to END (`cpu_checks`);

4. each process: its state changes are possible (`process_checks`).

The error names the first invalid record that the first failing group found.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from schedlab.trace.affinity_checks import AffinityChecks
from schedlab.trace.breach import Breach, first_breach
from schedlab.trace.cpu_checks import cpu_checks
from schedlab.trace.errors import RecordName, TraceError
from schedlab.trace.format import Kind
from schedlab.trace.model import Integers, Trace
from schedlab.trace.outline import TraceFacts
from schedlab.trace.parts import Source, TracePart, TraceParts
from schedlab.trace.process_checks import process_checks, queued_checks
from schedlab.trace.reader import sequence_differences
from schedlab.trace.record_checks import loss_check, record_checks


def validate(trace: Trace) -> None:
    """Raises TraceError if a trace is not consistent.

    In a truncated trace, the last records of CPUs may be missing. Records of different CPUs are
    then compared only up to the first possible gap.
    """
    checks = Checks(trace, trace)
    for part in TraceParts(trace):
        checks.take(part)
    checks.end()


def check_records(trace: Trace) -> None:
    """Raises TraceError if a record has invalid contents; does not compare records."""
    for part in TraceParts(trace):
        breach = min(record_checks(part.columns, part.begin, trace.header.cpus), default=None)
        if breach is not None:
            raise _trace_error(trace, breach)


class Checks:
    """All checks of a trace whose parts arrive in order."""

    def __init__(self, trace: Source, facts: TraceFacts, *, only_together: bool = False) -> None:
        """`only_together`: contents and order of the records were checked before."""
        self._trace = trace
        self._facts = facts
        self._breach: Breach | None = None
        self._groups = [self._record_breaches, self._order_breaches, self._consistency_breaches]
        """The checks that may find an error of higher precedence."""
        if only_together:
            self._groups = [self._consistency_breaches]
        self._affinity = AffinityChecks(facts.header.cpus, facts.has(Kind.AFFINITY))
        self._has_visits = facts.has(Kind.SCHEDULER_ENTER)
        self._sequence: npt.NDArray[np.uint32] | None = None
        """The sequence number of the last record."""

    @property
    def good(self) -> bool:
        """True if no error was found yet."""
        return self._breach is None

    def take(self, part: TracePart) -> None:
        """Checks the next part.

        Raises TraceError as soon as it is certain which record is the first invalid one.
        """
        for index, group in enumerate(self._groups):
            breach = min(group(part), default=None)
            if breach is not None:
                self._breach = breach
                self._groups = self._groups[:index]
                break
        if not self._groups:
            self.end()
        self._sequence = part.records["sequence"][-1:].copy()

    def end(self) -> None:
        """Raises TraceError if an error was found."""
        if self._breach is not None:
            raise _trace_error(self._trace, self._breach)

    def _record_breaches(self, part: TracePart) -> Iterator[Breach]:
        yield from record_checks(part.columns, part.begin, self._facts.header.cpus)
        if not self._facts.truncated:
            yield from loss_check(part.columns, part.begin)

    def _order_breaches(self, part: TracePart) -> Iterator[Breach]:
        begin = part.begin
        step = sequence_differences(self._sequence, part.records["sequence"])
        yield from first_breach(
            begin,
            step == 0,
            lambda at: f"the sequence number {self._sequence_at(begin + at)} is there twice",
        )
        has_gap = step > 1
        if has_gap.any():
            # Records that a truncated CPU could not write follow all records that it wrote.
            has_gap &= np.arange(begin, begin + len(has_gap)) < self._certain_rows
        yield from first_breach(
            begin,
            has_gap,
            lambda at: (
                f"{step[at] - 1} records before it are missing: "
                f"expected sequence number {self._sequence_at(begin + at - 1) + 1}"
            ),
        )

    def _sequence_at(self, row: int) -> int:
        return self._trace.sequence_at(row)

    def _consistency_breaches(self, part: TracePart) -> Iterator[Breach]:
        yield from cpu_checks(part.cpu_records, self._has_visits)
        yield from process_checks(self._trace, part.steps, lambda: self._certain_rows)
        yield from queued_checks(part.columns, part.steps, lambda: self._certain_rows)
        yield from self._affinity.take(part.columns, part.begin, lambda: self._certain_rows)

    @cached_property
    def _certain_rows(self) -> int:
        """How many rows are surely complete: later ones may lack records of a truncated CPU."""
        if not self._facts.truncated:
            return len(self._trace)
        cpus = self._facts.header.cpus
        ended = np.zeros(cpus, bool)
        ends = self._facts.at("cpu", self._facts.rows(Kind.END))
        ended[ends[ends < cpus]] = True
        if ended.all():
            return len(self._trace)
        return max(int(_last_rows(self._trace, cpus)[~ended].min()), 1)


def _last_rows(trace: Source, cpus: int) -> Integers:
    """Returns each CPU's last row, counted from 1; 0 without records."""
    last = np.zeros(cpus, np.int64)
    for part in TraceParts(trace):
        cpu = part.records["cpu"]
        valid_rows = np.flatnonzero(cpu < cpus)
        last[cpu[valid_rows]] = valid_rows + part.begin + 1
    return last


def _trace_error(trace: Source, breach: Breach) -> TraceError:
    name = RecordName.of(trace, breach.row)
    offset = trace.file_offset(breach.row)
    return TraceError(f"{trace.path}: {name}: {breach.problem} (byte {offset} of the file)", name)

# SPDX-License-Identifier: MIT
"""Checks whether a whole trace is consistent, without a Python loop over its records.

There are four groups of checks. Each relies on the groups before it:

1. each record individually: its kind, its CPU and its numbers (`record_checks`);
2. order: no sequence number is missing or duplicate;
3. each CPU: its records are consistent, from START to END (`cpu_checks`);
4. each process: its steps follow its state machine (`process_checks`).

The error names the first invalid record that the first failing group found.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from schedlab.trace.affinity_checks import AffinityChecks
from schedlab.trace.breach import Breach, first_in
from schedlab.trace.cpu_checks import cpu_checks
from schedlab.trace.errors import RecordName, TraceError
from schedlab.trace.format import Kind
from schedlab.trace.model import Integers, Trace
from schedlab.trace.outline import Facts
from schedlab.trace.parts import Part, Parts, Source
from schedlab.trace.process_checks import process_checks, queued_checks
from schedlab.trace.reader import rises
from schedlab.trace.record_checks import loss_check, record_checks


def validate(trace: Trace) -> None:
    """Checks that a trace is consistent; raises TraceError if not.

    The last records of CPUs may be missing in a truncated trace. The records of different CPUs are
    then compared only up to the first possible gap.
    """
    checks = Checks(trace, trace)
    for part in Parts(trace):
        checks.take(part)
    checks.end()


def check_records(trace: Trace) -> None:
    """Checks each record individually, not their consistency; raises TraceError."""
    for part in Parts(trace):
        breach = min(record_checks(part.columns, part.begin, trace.header.cpus), default=None)
        if breach is not None:
            raise _error(trace, breach)


class Checks:
    """All checks of a trace whose parts arrive in order."""

    def __init__(self, trace: Source, facts: Facts) -> None:
        self._trace = trace
        self._facts = facts
        self._breach: Breach | None = None
        self._groups = [self._of_records, self._of_order, self._of_stories]
        """The checks that may find an error of higher precedence."""
        self._affinity = AffinityChecks(facts.header.cpus, facts.has(Kind.AFFINITY))
        self._has_visits = facts.has(Kind.SCHEDULER_ENTER)
        self._sequence: npt.NDArray[np.uint32] | None = None
        """The sequence number of the last record."""

    @property
    def good(self) -> bool:
        """True if no error was found so far."""
        return self._breach is None

    def take(self, part: Part) -> None:
        """Checks the next part. Raises TraceError as soon as later parts cannot change which record is named."""
        for place, group in enumerate(self._groups):
            breach = min(group(part), default=None)
            if breach is not None:
                self._breach = breach
                self._groups = self._groups[:place]
                break
        if not self._groups:
            self.end()
        self._sequence = part.records["sequence"][-1:].copy()

    def end(self) -> None:
        """Raises TraceError if an error was found."""
        if self._breach is not None:
            raise _error(self._trace, self._breach)

    def _of_records(self, part: Part) -> Iterator[Breach]:
        yield from record_checks(part.columns, part.begin, self._facts.header.cpus)
        if not self._facts.truncated:
            yield from loss_check(part.columns, part.begin)

    def _of_order(self, part: Part) -> Iterator[Breach]:
        begin = part.begin
        step = rises(self._sequence, part.records["sequence"])
        yield from first_in(
            begin,
            step == 0,
            lambda at: f"the sequence number {self._sequence_at(begin + at)} is there twice",
        )
        wrong = step > 1
        if wrong.any():
            # Records that a cut-off CPU could not write come after all records that it wrote.
            wrong &= np.arange(begin, begin + len(wrong)) < self._certain_rows
        yield from first_in(
            begin,
            wrong,
            lambda at: (
                f"{step[at] - 1} records before it are missing: "
                f"expected sequence number {self._sequence_at(begin + at - 1) + 1}"
            ),
        )

    def _sequence_at(self, row: int) -> int:
        return self._trace.sequence_at(row)

    def _of_stories(self, part: Part) -> Iterator[Breach]:
        yield from cpu_checks(part.cpu_records, self._has_visits)
        yield from process_checks(self._trace, part.steps, lambda: self._certain_rows)
        yield from queued_checks(part.columns, part.steps, lambda: self._certain_rows)
        yield from self._affinity.take(part.columns, part.begin, lambda: self._certain_rows)

    @cached_property
    def _certain_rows(self) -> int:
        """Number of rows before the first record that a cut-off CPU may have failed to write."""
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
    """Returns the number of each CPU's last row, counted from 1; 0 if it has none."""
    last = np.zeros(cpus, np.int64)
    for part in Parts(trace):
        cpu = part.records["cpu"]
        valid_rows = np.flatnonzero(cpu < cpus)
        last[cpu[valid_rows]] = valid_rows + part.begin + 1
    return last


def _error(trace: Source, breach: Breach) -> TraceError:
    name = RecordName.of(trace, breach.row)
    offset = trace.file_offset(breach.row)
    return TraceError(f"{trace.path}: {name}: {breach.problem} (byte {offset} of the file)", name)

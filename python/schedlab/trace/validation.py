# SPDX-License-Identifier: MIT
"""Could this have happened? Checks of a whole trace, without a Python loop over its records.

Four groups of checks, each sure of what the group before it has found good:

1. each record by itself: its kind, its CPU, the numbers in it (`record_checks`);
2. order: no sequence number missing or twice;
3. each CPU: what it says of itself is one story, from START to END (`cpu_checks`);
4. each process: a state machine, whose steps are in order (`process_checks`).

Of the first group that finds any, the first record that cannot be is the one that is named.
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
    """Checks that what the trace says can have happened; raises TraceError if not.

    Of a truncated trace, each CPU's last records may be missing, and what other
    CPUs say of a process is only compared as long as nothing is missing.
    """
    checks = Checks(trace, trace)
    for part in Parts(trace):
        checks.take(part)
    checks.end()


def check_records(trace: Trace) -> None:
    """Checks each record by itself, not what they say together; raises TraceError."""
    for part in Parts(trace):
        breach = min(record_checks(part.columns, part.begin, trace.header.cpus), default=None)
        if breach is not None:
            raise _error(trace, breach)


class Checks:
    """All checks of a trace whose parts come one after the other."""

    def __init__(self, trace: Source, facts: Facts) -> None:
        self._trace = trace
        self._facts = facts
        self._breach: Breach | None = None
        self._groups = [self._of_records, self._of_order, self._of_stories]
        """Those that may find something that comes before what was found."""
        self._affinity = AffinityChecks(facts.header.cpus, facts.has(Kind.AFFINITY))
        self._tells_visits = facts.has(Kind.SCHEDULER_ENTER)
        self._sequence: npt.NDArray[np.uint32] | None = None
        """Of the last record."""

    @property
    def good(self) -> bool:
        """True if nothing was found so far."""
        return self._breach is None

    def take(self, part: Part) -> None:
        """Judges the next part. Raises TraceError if none of those that follow can change what is named."""
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
        """Raises TraceError if something was found."""
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
            # What one CPU could not write comes after all that it wrote.
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
        yield from cpu_checks(part.stories, self._tells_visits)
        yield from process_checks(self._trace, part.steps, lambda: self._certain_rows)
        yield from queued_checks(part.columns, part.steps, lambda: self._certain_rows)
        yield from self._affinity.take(part.columns, part.begin, lambda: self._certain_rows)

    @cached_property
    def _certain_rows(self) -> int:
        """How many of the first rows come before anything that a cut-off CPU may not have written."""
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
    """After which row nothing comes of each CPU: its number, counted from 1; 0: the CPU has none."""
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

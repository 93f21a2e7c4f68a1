# SPDX-License-Identifier: MIT
"""Writes traces while a system runs; a trace may begin in the middle of a run."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Iterable, Iterator
from copy import deepcopy
from pathlib import Path

import numpy as np

from schedlab.monitor.system import Records
from schedlab.monitor.trace_state import Opening, TraceState
from schedlab.trace.format import RECORD, Kind, MarkKind
from schedlab.trace.model import Header
from schedlab.trace.writer import header_bytes

_SEQUENCE_MASK = 0xFFFF_FFFF
_PART = 256
"""Records: smaller parts are merged up to this size."""
_SPAN_NS = 30_000_000_000


class TraceFile:
    """A trace file that grows. It is complete after `finish`, which `with` calls.

    Records must arrive in order and complete, with no text split; they get new sequence numbers.
    """

    def __init__(
        self, path: Path, header: Header, opening: Opening | None = None, marks: bool = True
    ) -> None:
        """`opening` is the state before the first record; None means the trace's beginning.

        `marks` keeps marks that delimit the measured window. If it is false, they become notes and
        the whole trace is measured, because many workloads may begin and end.
        """
        self.path = path
        self._marks = marks
        self.records = 0
        self._file = path.open("wb")
        self._file.write(
            header_bytes(header.cpus, header.tick_ns, header.cycles_per_second, header.seed)
        )
        self._of_cpu = np.zeros(header.cpus, np.int64)
        """Number of records of each CPU."""
        self._ended = np.zeros(header.cpus, bool)
        self._latest = np.zeros(header.cpus, np.int64)
        self._earliest = 0
        self._groups: dict[int, int] = {}
        if opening:
            self._groups = dict(opening.groups)
            self._write(opening.records)
            self._earliest = opening.time_ns

    def add(self, records: Records) -> None:
        """Appends records."""
        records = records.copy()
        # CPUs read their clocks independently, so a record may have a slightly earlier time than the opening.
        np.maximum(records["time"], np.uint64(self._earliest), out=records["time"])
        if self._groups:
            records = self._with_groups(records)
        if not self._marks:
            _without_window(records)
        self._write(records)

    def copy(self, path: Path) -> None:
        """Copies the trace to another file that ends here."""
        self._file.flush()
        shutil.copyfile(self.path, path)
        with path.open("ab") as file:
            file.write(self._ends().tobytes())

    def reach(self, time_ns: int) -> None:
        """Advances the time (ns) of the trace's end, even without new records."""
        np.maximum(self._latest, time_ns, out=self._latest)

    def finish(self) -> None:
        """Ends the trace at the same time on all CPUs that have not ended. May be called again."""
        if not self._file.closed:
            self._file.write(self._ends().tobytes())
            self._file.close()

    def _ends(self) -> Records:
        cpus = np.flatnonzero(~self._ended)
        ends = np.zeros(len(cpus), RECORD)
        ends["time"] = self._latest.max()
        ends["kind"] = Kind.END
        ends["cpu"] = cpus
        ends["second"] = self._of_cpu[cpus] + 1
        ends["sequence"] = (self.records + np.arange(len(cpus))) & _SEQUENCE_MASK
        return ends

    def __enter__(self) -> TraceFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    def _write(self, records: Records) -> None:
        if len(records) == 0:
            return
        cpus = records["cpu"]
        numbers = np.arange(self.records, self.records + len(records), dtype=np.int64)
        records["sequence"] = numbers & _SEQUENCE_MASK
        self.records += len(records)
        self._of_cpu += np.bincount(cpus, minlength=len(self._of_cpu))
        self._latest[cpus] = records["time"]
        ends = np.flatnonzero(records["kind"] == Kind.END)
        # END is a CPU's last record and counts all its records.
        records["second"][ends] = self._of_cpu[cpus[ends]]
        self._ended[cpus[ends]] = True
        self._file.write(records.tobytes())

    def _with_groups(self, records: Records) -> Records:
        """Inserts the group labels of processes from the opening.

        A label is inserted when its process first runs, because only running processes can record
        marks.
        """
        known = np.fromiter(self._groups, np.int64, len(self._groups))
        enters = records["kind"] == Kind.SCHEDULER_EXIT
        if not enters.any():
            enters = records["kind"] == Kind.SWITCH
        rows = np.flatnonzero(enters & np.isin(records["process"], known))
        pids, first = np.unique(records["process"][rows], return_index=True)
        rows = rows[first]
        marks = records[rows]
        marks["kind"] = Kind.MARK
        marks["first"] = MarkKind.GROUP
        marks["second"] = [self._groups.pop(pid) for pid in pids.tolist()]
        mixed = np.concatenate([records, marks])
        # The mark follows the record of the process's entry to its CPU.
        order = np.argsort(np.concatenate([np.arange(len(records)), rows + 0.5]), kind="stable")
        ordered: Records = mixed[order]
        return ordered


_WINDOW = (MarkKind.BEGIN, MarkKind.END)


def _without_window(records: Records) -> None:
    """Turns marks that delimit the measurement into notes."""
    rows = np.flatnonzero(records["kind"] == Kind.MARK)
    rows = rows[np.isin(records["first"][rows], _WINDOW)]
    records["second"][rows] = records["first"][rows]
    records["first"][rows] = MarkKind.NOTE


def begin_of_work(records: Records, excluded_pids: Iterable[int]) -> int | None:
    """Returns the index of the first record of the users' work, or None.

    This work begins with the first fork by a process of `excluded_pids` or from outside. The index
    does not split a text.
    """
    ours = np.fromiter(excluded_pids, np.int64)
    forks = np.flatnonzero(records["kind"] == Kind.FORK)
    parents, children = records["process"][forks], records["first"][forks]
    # without PIDs, it may be the machine's first process
    from_outside = (parents == 0) & (len(ours) > 0)
    by_us = (np.isin(parents, ours) | from_outside) & ~np.isin(children, ours)
    if not by_us.any():
        return None
    at = int(forks[by_us][0])
    while _goes_on(records, at):
        at += 1
    return at


def _goes_on(records: Records, at: int) -> bool:
    """Returns whether a text continues across this index."""
    later = records[at:]
    texts = later["cpu"][later["kind"] == Kind.TEXT]
    return any(
        later["kind"][int((later["cpu"] == cpu).argmax())] == Kind.TEXT
        for cpu in set(texts.tolist())
    )


class Recent:
    """Buffers the last records of a trace; they can be read or written to a file at any time."""

    def __init__(self, header: Header, most: int = 1_000_000):
        """Keeps about `most` records."""
        self.header = header
        self.end = 0
        """Number of records so far."""
        self._most = most
        self._part = min(_PART, most // 8)
        self._before = TraceState(header.cpus)
        """State before the first kept record."""
        self._parts: deque[tuple[int, Records]] = deque()
        """Parts, with the number of their first record."""

    @property
    def begin(self) -> int:
        """Number of the first kept record."""
        return self._before.count

    def add(self, records: Records) -> None:
        """Appends records."""
        if len(records) == 0:
            return
        begin = self.end
        if self._parts and len(self._parts[-1][1]) + len(records) <= self._part:
            begin, before = self._parts.pop()
            records = np.concatenate([before, records])
        self._parts.append((begin, records))
        self.end = begin + len(records)
        while self.end - self.begin > self._most and len(self._parts) > 1:
            self._before.apply(self._parts.popleft()[1])

    def since(self, number: int, most: int) -> Records:
        """Returns at most `most` consecutive records starting with this number; none at the end.

        Raises ValueError if these records are no longer kept.
        """
        if number < self.begin:
            raise ValueError(f"record {number} is no longer stored: the first one is {self.begin}")
        pieces: list[Records] = []
        for begin, part in reversed(self._parts):
            pieces.append(part[max(number - begin, 0) :])
            if begin <= number:
                break
        return np.concatenate([*reversed(pieces), np.empty(0, RECORD)])[:most]

    def opening(self, excluded_pids: Iterable[int] = ()) -> Opening | None:
        """Returns the state before the first kept record, or None if all records are kept."""
        return self._before.opening(excluded_pids) if self.begin else None

    def write(
        self,
        path: Path,
        excluded_pids: frozenset[int],
        span_ns: int = _SPAN_NS,
        until_ns: int | None = None,
    ) -> None:
        """Writes a trace of the kept records of `span_ns` up to `until_ns` or now.

        `excluded_pids` is described at `Standing.opening`. Raises ValueError if no records of that
        time are kept.
        """
        parts = [part for _, part in self._parts]
        if until_ns is not None:
            parts = list(_until(until_ns, parts))
        if not parts:
            raise ValueError(f"no state is stored before {until_ns} ns")
        state = deepcopy(self._before)
        while len(parts) > 1 and parts[0]["time"][-1] + span_ns < parts[-1]["time"][-1]:
            state.apply(parts.pop(0))
        opening = state.opening(excluded_pids) if state.count else None
        with TraceFile(path, self.header, opening) as file:
            for part in parts:
                file.add(part)
            if until_ns is not None:
                file.reach(until_ns)


def _until(time_ns: int, parts: Iterable[Records]) -> Iterator[Records]:
    """Yields the records before the first one later than a time, without splitting a text."""
    for part in parts:
        later = part["time"] > time_ns
        at = int(later.argmax()) if later.any() else len(part)
        while _goes_on(part, at):
            at += 1
        if at:
            yield part[:at]
        if at < len(part):
            return

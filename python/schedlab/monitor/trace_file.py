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
_BATCH_RECORDS = 256
"""Smaller batches of records are merged up to this number of records."""
_EXPORT_SPAN_NS = 30_000_000_000


class TraceFile:
    """A trace file that is written while a system runs; `finish` (called by `with`) completes it.

    Records must arrive in sequence order, with complete texts. They get new sequence numbers.
    """

    def __init__(
        self, path: Path, header: Header, opening: Opening | None = None, marks: bool = True
    ) -> None:
        """`opening`: the state before the first record; None means the trace's beginning.

        `marks`: whether to keep marks that delimit the measured window. Without them, the whole
        trace is measured, because many workloads may begin and end. Such marks are then turned into
        notes.
        """
        self.path = path
        self._keeps_window_marks = marks
        self.records = 0
        self._file = path.open("wb")
        self._file.write(
            header_bytes(header.cpus, header.tick_ns, header.cycles_per_second, header.seed)
        )
        self._records_by_cpu = np.zeros(header.cpus, np.int64)
        """Number of records of each CPU."""
        self._ended = np.zeros(header.cpus, bool)
        self._latest = np.zeros(header.cpus, np.int64)
        self._earliest = 0
        self._groups: dict[int, int] = {}
        if opening:
            self._groups = dict(opening.group_by_pid)
            self._write_numbered(opening.records)
            self._earliest = opening.time_ns

    def add(self, records: Records) -> None:
        """Appends records."""
        records = records.copy()
        # CPUs read their clocks independently: a record may be slightly earlier than the opening.
        np.maximum(records["time"], np.uint64(self._earliest), out=records["time"])
        if self._groups:
            records = self._insert_group_labels(records)
        if not self._keeps_window_marks:
            _replace_window_marks(records)
        self._write_numbered(records)

    def copy(self, path: Path) -> None:
        """Copies the records so far to another file, as a complete trace."""
        self._file.flush()
        shutil.copyfile(self.path, path)
        with path.open("ab") as file:
            file.write(self._end_records().tobytes())

    def advance_end(self, time_ns: int) -> None:
        """Advances the time (ns) of the trace's end, even without new records."""
        np.maximum(self._latest, time_ns, out=self._latest)

    def finish(self) -> None:
        """Ends the trace at the same time on all CPUs that have not ended yet. May be called again."""
        if not self._file.closed:
            self._file.write(self._end_records().tobytes())
            self._file.close()

    def _end_records(self) -> Records:
        cpus = np.flatnonzero(~self._ended)
        ends = np.zeros(len(cpus), RECORD)
        ends["time"] = self._latest.max()
        ends["kind"] = Kind.END
        ends["cpu"] = cpus
        ends["second"] = self._records_by_cpu[cpus] + 1
        ends["sequence"] = (self.records + np.arange(len(cpus))) & _SEQUENCE_MASK
        return ends

    def __enter__(self) -> TraceFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    def _write_numbered(self, records: Records) -> None:
        if len(records) == 0:
            return
        cpus = records["cpu"]
        numbers = np.arange(self.records, self.records + len(records), dtype=np.int64)
        records["sequence"] = numbers & _SEQUENCE_MASK
        self.records += len(records)
        self._records_by_cpu += np.bincount(cpus, minlength=len(self._records_by_cpu))
        self._latest[cpus] = records["time"]
        ends = np.flatnonzero(records["kind"] == Kind.END)
        # END is a CPU's last record and counts all its records.
        records["second"][ends] = self._records_by_cpu[cpus[ends]]
        self._ended[cpus[ends]] = True
        self._file.write(records.tobytes())

    def _insert_group_labels(self, records: Records) -> Records:
        """Inserts group labels of processes that are known from the opening.

        A label is inserted when its process first runs, because only running processes can record
        marks.
        """
        known_pids = np.fromiter(self._groups, np.int64, len(self._groups))
        enters = records["kind"] == Kind.SCHEDULER_EXIT
        if not enters.any():
            enters = records["kind"] == Kind.SWITCH
        rows = np.flatnonzero(enters & np.isin(records["process"], known_pids))
        pids, first = np.unique(records["process"][rows], return_index=True)
        rows = rows[first]
        marks = records[rows]
        marks["kind"] = Kind.MARK
        marks["first"] = MarkKind.GROUP
        marks["second"] = [self._groups.pop(pid) for pid in pids.tolist()]
        combined = np.concatenate([records, marks])
        # The label must follow the record that the process is on its CPU.
        order = np.argsort(np.concatenate([np.arange(len(records)), rows + 0.5]), kind="stable")
        ordered: Records = combined[order]
        return ordered


_WINDOW_MARKS = (MarkKind.BEGIN, MarkKind.END)


def _replace_window_marks(records: Records) -> None:
    """Replaces marks that delimit the measured window by notes, in place."""
    rows = np.flatnonzero(records["kind"] == Kind.MARK)
    rows = rows[np.isin(records["first"][rows], _WINDOW_MARKS)]
    records["second"][rows] = records["first"][rows]
    records["first"][rows] = MarkKind.NOTE


def find_first_workload_record(records: Records, excluded_pids: Iterable[int]) -> int | None:
    """Returns the index of the first record that belongs to the users' workloads, or None.

    Workloads begin with the first fork by one of `excluded_pids` or by an unknown process. The
    index does not split a text.
    """
    excluded = np.fromiter(excluded_pids, np.int64)
    forks = np.flatnonzero(records["kind"] == Kind.FORK)
    parents, children = records["process"][forks], records["first"][forks]
    # a fork before any PID is excluded may be that of the machine's first process
    from_outside = (parents == 0) & (len(excluded) > 0)
    starts_workload = (np.isin(parents, excluded) | from_outside) & ~np.isin(children, excluded)
    if not starts_workload.any():
        return None
    index = int(forks[starts_workload][0])
    while _is_inside_text(records, index):
        index += 1
    return index


def _is_inside_text(records: Records, at: int) -> bool:
    """Returns whether the record at index `at` continues a text of an earlier record."""
    later = records[at:]
    texts = later["cpu"][later["kind"] == Kind.TEXT]
    return any(
        later["kind"][int((later["cpu"] == cpu).argmax())] == Kind.TEXT
        for cpu in set(texts.tolist())
    )


class RecentRecords:
    """Keeps the last records of a trace in memory, for readers and for export to a file."""

    def __init__(self, header: Header, records_max: int = 1_000_000):
        """Keeps about the last `records_max` records."""
        self.header = header
        self.end = 0
        """Number of records so far."""
        self._records_max = records_max
        self._part_records = min(_BATCH_RECORDS, records_max // 8)
        self._state_before = TraceState(header.cpus)
        """State before the first kept record."""
        self._parts: deque[tuple[int, Records]] = deque()
        """Parts, with the number of their first record."""

    @property
    def begin(self) -> int:
        """Index of the first kept record, counted from the beginning of the trace."""
        return self._state_before.count

    def add(self, records: Records) -> None:
        """Appends records."""
        if len(records) == 0:
            return
        begin = self.end
        if self._parts and len(self._parts[-1][1]) + len(records) <= self._part_records:
            begin, before = self._parts.pop()
            records = np.concatenate([before, records])
        self._parts.append((begin, records))
        self.end = begin + len(records)
        while self.end - self.begin > self._records_max and len(self._parts) > 1:
            self._state_before.apply(self._parts.popleft()[1])

    def since(self, number: int, count_max: int) -> Records:
        """Returns at most `count_max` consecutive records, from index `number` on; none at the end.

        Raises ValueError if the record with this index is no longer kept.
        """
        if number < self.begin:
            raise ValueError(f"record {number} is no longer stored: the first one is {self.begin}")
        pieces: list[Records] = []
        for begin, part in reversed(self._parts):
            pieces.append(part[max(number - begin, 0) :])
            if begin <= number:
                break
        return np.concatenate([*reversed(pieces), np.empty(0, RECORD)])[:count_max]

    def opening(self, excluded_pids: Iterable[int] = ()) -> Opening | None:
        """Returns the state before the first kept record, or None if all records are kept."""
        return self._state_before.opening(excluded_pids) if self.begin else None

    def write(
        self,
        path: Path,
        excluded_pids: frozenset[int],
        span_ns: int = _EXPORT_SPAN_NS,
        until_ns: int | None = None,
    ) -> None:
        """Writes the kept records as a trace: those of the last `span_ns` before `until_ns` (or
        now).

        `excluded_pids`: as in `TraceState.opening`. Raises ValueError if no records of that time
        are kept.
        """
        pieces = [piece for _, piece in self._parts]
        if until_ns is not None:
            pieces = list(_records_until(until_ns, pieces))
        if not pieces:
            raise ValueError(f"no state is stored before {until_ns} ns")
        state = deepcopy(self._state_before)
        while len(pieces) > 1 and pieces[0]["time"][-1] + span_ns < pieces[-1]["time"][-1]:
            state.apply(pieces.pop(0))
        opening = state.opening(excluded_pids) if state.count else None
        with TraceFile(path, self.header, opening) as file:
            for piece in pieces:
                file.add(piece)
            if until_ns is not None:
                file.advance_end(until_ns)


def _records_until(time_ns: int, parts: Iterable[Records]) -> Iterator[Records]:
    """Yields the records up to a time (ns). If a text of several records began before it, also yields its rest."""
    for part in parts:
        later = part["time"] > time_ns
        index = int(later.argmax()) if later.any() else len(part)
        while _is_inside_text(part, index):
            index += 1
        if index:
            yield part[:index]
        if index < len(part):
            return

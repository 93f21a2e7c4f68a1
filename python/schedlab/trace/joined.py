# SPDX-License-Identifier: MIT
"""Joins short traces into one, so that many runs are measured together.

The records of the traces follow each other. Each trace gets its own range of PIDs and of CPUs:
PID p of trace n becomes p + n × the length of a range. PID 0 remains 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from schedlab.trace.bounds import PROCESS_MAX
from schedlab.trace.cpu_records import Mask
from schedlab.trace.errors import TraceError
from schedlab.trace.format import HEADER, RECORD, Kind, MarkKind, is_kind
from schedlab.trace.model import CLOCK_SAMPLE, Columns, Header, Integers, clock_step
from schedlab.trace.outline import Outline, TraceFacts, make_outline
from schedlab.trace.reader import Records, parse_header
from schedlab.trace.record_checks import record_checks

JOINED_RECORDS_MAX = 1 << 17
"""Number of records that are joined, so that derived data stays in caches."""
_CPUS_MAX = 1 << 16
_NOT_JOINED = (Kind.LOST, Kind.FOUND, Kind.TASK_GROUP, Kind.AFFINITY)
"""Kinds of records of traces that are measured alone."""
_IN_JOINED_TRACES = (Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT)
"""Kinds of records that each joined trace has."""
_NO_PID = (Kind.POLICY, Kind.TUNABLE, Kind.TEXT)
"""Kinds of records whose `process` does not hold a PID."""
_OTHER_PID = (Kind.FORK, Kind.SWITCH, Kind.WAKEUP)
"""Kinds of records whose `first` is a PID."""

Values = TypeVar("Values", bound=npt.NDArray[np.generic])


@dataclass(frozen=True, eq=False)
class RunFacts:
    """What the runs of one or more joined traces differ in; arrays have one element per run."""

    headers: tuple[Header, ...]
    first_row: Integers
    end_row: Integers
    """Row after the last record."""
    begin_ns: Integers
    end_ns: Integers
    clock_step_ns: tuple[int, ...]
    truncated: bool = False
    """True if the trace of a single run is truncated; traces that are joined are complete."""
    lost: int = 0
    """Lost records of a single run."""
    pids: int = 0
    """Length of a range of PIDs; 0 for a single run."""

    def __len__(self) -> int:
        return len(self.headers)

    @property
    def cpus(self) -> int:
        """Number of CPUs of each run."""
        return self.headers[0].cpus

    @property
    def cycles_per_second(self) -> int:
        """Rate of the cycle counters of each run."""
        return self.headers[0].cycles_per_second

    def of_pids(self, pid: npt.NDArray[np.integer]) -> Integers:
        """Returns the run of each PID."""
        if not self.pids:
            return np.zeros(len(pid), np.int64)
        run: Integers = pid.astype(np.int64) // self.pids
        return run

    def of_cpus(self, cpu: npt.NDArray[np.integer]) -> Integers:
        """Returns the run of each CPU."""
        if len(self) == 1:
            return np.zeros(len(cpu), np.int64)
        run: Integers = cpu.astype(np.int64) // self.cpus
        return run

    def of_rows(self, row: Integers) -> Integers:
        """Returns the run of each row."""
        return np.searchsorted(self.end_row, row, side="right")

    def slices(self, run: Integers) -> list[slice]:
        """Returns, for each run, the slice of an ascending array of runs that has its elements."""
        bounds = np.searchsorted(run, np.arange(len(self) + 1)).tolist()
        return [slice(begin, end) for begin, end in pairwise(bounds)]


def facts_of_run(trace: TraceFacts) -> RunFacts:
    """Returns the facts of a trace that is measured alone."""
    return RunFacts(
        (trace.header,),
        np.zeros(1, np.int64),
        np.array([len(trace)]),
        np.array([trace.begin_ns]),
        np.array([trace.end_ns]),
        (trace.clock_step_ns,),
        trace.truncated,
        trace.lost,
    )


@dataclass(frozen=True, eq=False)
class ShortTrace:
    """A trace in memory, with its records in the order of the file."""

    path: Path
    header: Header
    records: Records


def read_short(path: Path) -> ShortTrace | None:
    """Reads a trace whose header and length allow to join it with others; None for
    other traces.

    Raises OSError if the file cannot be read.
    """
    data = path.read_bytes()
    if len(data) < HEADER.itemsize:
        return None
    try:
        header = parse_header(path, data[: HEADER.itemsize])
    except TraceError:
        return None
    record_bytes = len(data) - header.header_bytes
    count = record_bytes // RECORD.itemsize
    if record_bytes % RECORD.itemsize or not 0 < count <= CLOCK_SAMPLE:
        return None
    return ShortTrace(path, header, np.frombuffer(data, RECORD, offset=header.header_bytes))


@dataclass(frozen=True, eq=False)
class JoinedTrace:
    """Several traces as one; a Source of parts."""

    path: Path
    header: Header
    records: Records
    runs: RunFacts

    def __len__(self) -> int:
        return len(self.records)

    def piece(self, begin: int, end: int) -> Records:
        """Returns the records from row `begin` to before row `end`."""
        piece: Records = self.records[begin:end]
        return piece

    def sequence_at(self, row: int) -> int:
        """Returns a record's sequence number in its own trace."""
        return int(self.records["sequence"][row])

    def file_offset(self, row: int) -> int:
        """Returns the offset of a record in its own file."""
        run = int(self.runs.of_rows(np.array([row]))[0])
        return self.header.header_bytes + RECORD.itemsize * (row - int(self.runs.first_row[run]))

    @cached_property
    def outline(self) -> Outline:
        """The few records that name, mark, fork and end processes."""
        return make_outline(self)

    # Members that make_outline needs.
    missing = 0
    last_record_complete = True


def join_traces(traces: Sequence[ShortTrace]) -> tuple[list[int], JoinedTrace | None]:
    """Joins as many of the traces as possible; returns their indices, and the joined trace.

    All traces must have equally many CPUs. A trace that is unusual, or that has an invalid record,
    is not joined, and must be measured alone.
    """
    lengths = np.array([len(trace.records) for trace in traces])
    records = np.concatenate([trace.records.view(np.uint8) for trace in traces]).view(RECORD)
    plain = _are_plain(records, lengths, traces[0].header)
    chosen = np.flatnonzero(plain).tolist()
    if len(chosen) < len(traces):
        return (
            ([], None)
            if not chosen
            else _renumber(chosen, join_traces([traces[index] for index in chosen]))
        )
    breach = next(iter(record_checks(Columns.of(records), 0, traces[0].header.cpus)), None)
    runs = _facts_of_runs(traces, records, lengths)
    space = len(traces) * max(runs.pids, 1) <= PROCESS_MAX and len(traces) * runs.cpus < _CPUS_MAX
    if breach is not None or not space:
        return [], None
    return chosen, JoinedTrace(
        traces[0].path, _joined_header(traces), _shift(records, lengths, runs), runs
    )


def _renumber(
    chosen: list[int], joined: tuple[list[int], JoinedTrace | None]
) -> tuple[list[int], JoinedTrace | None]:
    """Returns `joined` with the traces' original indices instead of indices in `chosen`."""
    return [chosen[index] for index in joined[0]], joined[1]


def _joined_header(traces: Sequence[ShortTrace]) -> Header:
    header = traces[0].header
    return Header(
        cpus=header.cpus * len(traces),
        tick_ns=header.tick_ns,
        cycles_per_second=header.cycles_per_second,
        seed=header.seed,
        header_bytes=header.header_bytes,
    )


def _are_plain(records: Records, lengths: Integers, header: Header) -> Mask:
    """Returns which traces are complete, in order, and without unusual kinds of records."""
    first_rows = np.cumsum(lengths) - lengths
    kind = records["kind"].copy()
    cpu = records["cpu"]
    sequence = np.arange(len(records)) - np.repeat(first_rows, lengths)
    unusual = (records["sequence"] != sequence) | (cpu >= header.cpus)
    unusual |= is_kind(kind, *_NOT_JOINED)
    is_plain: Mask = ~np.logical_or.reduceat(unusual, first_rows)
    for needed in _IN_JOINED_TRACES:
        is_plain &= np.logical_or.reduceat(is_kind(kind, needed), first_rows)
    ends = np.flatnonzero(is_kind(kind, Kind.END))
    run = np.repeat(np.arange(len(lengths)), lengths)[ends]
    ended = np.unique(run * _CPUS_MAX + cpu[ends]) // _CPUS_MAX
    is_plain &= np.bincount(ended, minlength=len(lengths)) == header.cpus
    return is_plain


def _facts_of_runs(traces: Sequence[ShortTrace], records: Records, lengths: Integers) -> RunFacts:
    first_rows = np.cumsum(lengths) - lengths
    time = records["time"].copy().view(np.int64)
    largest_pid = int(records["process"].max())
    has_other_pid = is_kind(records["kind"], *_OTHER_PID)
    if has_other_pid.any():
        largest_pid = max(largest_pid, int(records["first"][has_other_pid].max()))
    return RunFacts(
        tuple(trace.header for trace in traces),
        first_rows,
        first_rows + lengths,
        np.minimum.reduceat(time, first_rows),
        np.maximum.reduceat(time, first_rows),
        tuple(
            clock_step(time[begin:end])
            for begin, end in zip(first_rows.tolist(), (first_rows + lengths).tolist(), strict=True)
        ),
        pids=largest_pid + 1 if len(traces) > 1 else 0,
    )


def _shift(records: Records, lengths: Integers, runs: RunFacts) -> Records:
    """Gives each run its ranges of PIDs and CPUs; changes the records in place."""
    if len(runs) == 1:
        return records
    run = np.repeat(np.arange(len(runs), dtype=np.uint32), lengths)
    offset = run * np.uint32(runs.pids)
    kind = records["kind"].copy()
    records["cpu"] += (run * np.uint32(runs.cpus)).astype(np.uint16)
    for field, has_pid in (
        ("process", ~is_kind(kind, *_NO_PID)),
        ("first", is_kind(kind, *_OTHER_PID)),
        ("second", is_kind(kind, Kind.MARK) & is_kind(records["first"], MarkKind.BEGIN)),
    ):
        column = records[field]
        records[field] = column + offset * (has_pid & (column != 0))
    return records


def group_traces(traces: Sequence[ShortTrace]) -> Iterator[list[int]]:
    """Yields the indices of traces that may be joined: of equal machines, and not too many."""
    groups: dict[tuple[int, int, int], list[int]] = {}
    records_left: dict[tuple[int, int, int], int] = {}
    for index, trace in enumerate(traces):
        header = trace.header
        key = (header.cpus, header.cycles_per_second, header.header_bytes)
        if key in groups and records_left[key] < len(trace.records):
            yield groups.pop(key)
        if key not in groups:
            groups[key], records_left[key] = [], JOINED_RECORDS_MAX
        groups[key].append(index)
        records_left[key] -= len(trace.records)
    yield from groups.values()

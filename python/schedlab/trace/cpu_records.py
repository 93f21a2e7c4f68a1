# SPDX-License-Identifier: MIT
"""Sorts the records of a trace by CPU, part by part."""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from schedlab.trace.format import RECORD, Kind, LossKind, ProcessState, is_kind
from schedlab.trace.model import Columns, Integers
from schedlab.trace.reader import Records, concatenate_records, select_records

Mask = npt.NDArray[np.bool_]
Value = TypeVar("Value", bound=np.generic)


@dataclass(frozen=True, eq=False)
class CpuRecords:
    """The records of a part of a trace, sorted by CPU and, on each CPU, in order.

    The part's meaning also depends on some earlier records of each CPU, such as the last switch.
    These precede the part's own. All arrays have the same length, unless noted otherwise.
    """

    begin: int
    """First row of the part; records with smaller rows come from earlier parts."""
    row: Integers
    """Row in the trace."""
    columns: Columns
    records_before: Integers
    """For each CPU of the machine: how many of its records precede the first one in `row`."""

    @cached_property
    def begins(self) -> Integers:
        """Index of the first record of each CPU that has records."""
        return np.flatnonzero(is_change(self.columns.cpu))

    @cached_property
    def ends(self) -> Integers:
        """Index after the last record of each CPU that has records."""
        return np.append(self.begins[1:], len(self.row))[: len(self.begins)]

    @cached_property
    def initially_running(self) -> Integers:
        """Indices of FOUND records of processes that were running when the trace began."""
        initial = np.flatnonzero(is_kind(self.columns.kind, Kind.FOUND))
        return initial[is_kind(self.columns.first[initial], ProcessState.RUNNING)]

    @cached_property
    def entries(self) -> Integers:
        """Indices of records where the CPU begins to run another process, or to idle."""
        at = np.flatnonzero(is_kind(self.columns.kind, Kind.START, Kind.SWITCH))
        lost = np.flatnonzero(is_kind(self.columns.kind, Kind.LOST))
        of_cpu = is_kind(self.columns.first[lost], LossKind.UNSEEN, LossKind.SEEN) & (
            self.columns.process[lost] == 0
        )
        if of_cpu.any():
            at = np.sort(np.concatenate((at, lost[of_cpu])))
        return self._with_initially_running(at)

    @cached_property
    def unseen(self) -> Mask:
        """For each of `entries`: true if what the CPU does afterwards is unknown."""
        at = self.entries
        unseen: Mask = is_kind(self.columns.kind[at], Kind.LOST)
        unseen &= self.columns.first[at] == LossKind.UNSEEN
        return unseen

    @cached_property
    def entered(self) -> npt.NDArray[np.uint32]:
        """For each of `entries`: PID of the process that the CPU then runs; 0: idle."""
        at = self.entries
        return np.where(
            is_kind(self.columns.kind[at], Kind.START), np.uint32(0), self.columns.process[at]
        )

    @cached_property
    def counted(self) -> Integers:
        """Indices of records that contain a cycle counter."""
        kinds = (Kind.START, Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT)
        return np.flatnonzero(is_kind(self.columns.kind, *kinds))

    @cached_property
    def visits(self) -> Integers:
        """Indices of records where the CPU enters or leaves its scheduler."""
        return self._with_initially_running(self.counted)

    def _with_initially_running(self, at: Integers) -> Integers:
        """Returns these indexes, and those of FOUND records of running processes."""
        return (
            np.sort(np.concatenate((at, self.initially_running)))
            if len(self.initially_running)
            else at
        )

    @cached_property
    def current(self) -> npt.NDArray[np.uint32]:
        """For each record: PID of the process that the CPU ran just before it; 0: idle."""
        return self.just_before(self.entries, self.entered)

    def just_before(self, at: Integers, value: npt.NDArray[Value]) -> npt.NDArray[Value]:
        """Returns, for each record, the last of `value` on its CPU before the record; 0 without
        one.

        `value[i]` applies on its CPU from the record after `at[i]` on.
        """
        starts_without_value = difference(self.begins, at)
        first = np.searchsorted(at, starts_without_value)
        at = np.insert(at, first, starts_without_value)
        value = np.insert(value, first, 0)
        before = np.zeros(len(self.row), value.dtype)
        before[1:] = np.repeat(value, np.diff(at, append=len(before)))[:-1]
        before[self.begins] = 0
        return before

    def following(self, at: Integers) -> Integers:
        """Returns, for each of the ascending indices, the next of them on the same CPU; −1 without one."""
        return np.where(equals_next(self.columns.cpu[at]), np.roll(at, -1), -1)

    def needed_later(self) -> Mask:
        """For each record: true if later parts depend on it (the last of each CPU among `entries` etc.)."""
        keep = np.zeros(len(self.row), bool)
        keep[self.ends - 1] = True
        for at in (
            self.entries,
            self.counted,
            *([self.visits] if len(self.initially_running) else []),
        ):
            keep[self._last_of_cpus(at)] = True
        is_not_text = ~is_kind(self.columns.kind, Kind.TEXT)
        if not is_not_text.all():
            last_not_text = self._last_of_cpus(np.flatnonzero(is_not_text))
            keep[last_not_text] = True
            keep[self._unfinished(last_not_text)] = True
        return keep

    def last_of_cpus(self, at: Integers) -> Integers:
        """Returns which of the ascending indices is the last on its CPU, for each CPU that has one."""
        beyond = np.searchsorted(at, self.ends)
        return beyond[is_change(beyond) & (beyond > 0)] - 1

    def _last_of_cpus(self, at: Integers) -> Integers:
        """Returns the last of the ascending indices on each CPU that has one."""
        return at[self.last_of_cpus(at)]

    def _unfinished(self, last_not_text: Integers) -> Integers:
        """Returns the indices of TEXT records at the end of a CPU's records: their text may continue."""
        last = np.full(len(self.records_before), -1)
        last[self.columns.cpu[last_not_text]] = last_not_text
        texts = np.flatnonzero(is_kind(self.columns.kind, Kind.TEXT))
        unfinished: Integers = texts[texts > last[self.columns.cpu[texts]]]
        return unfinished


class CpuSorter:
    """Sorts consecutive parts of a trace by CPU, and carries over what later parts depend on."""

    def __init__(self, cpus: int) -> None:
        self._open = np.empty(0, RECORD)
        self._row = np.empty(0, np.int64)
        self._runnable_counts = np.zeros(cpus, np.int64)
        """Number of records of each CPU that are no longer stored here."""

    def take(self, begin: int, records: Records) -> CpuRecords:
        """Returns the next part, sorted; row `begin` is its first. All CPUs must exist."""
        carried_count = len(self._row)
        order = np.argsort(np.concatenate((self._open["cpu"], records["cpu"])), kind="stable")
        records = select_records(concatenate_records(self._open, records), order)
        row = order + (begin - carried_count)
        carried_positions = np.flatnonzero(order < carried_count)
        row[carried_positions] = self._row[order[carried_positions]]
        cpu_records = CpuRecords(begin, row, Columns.of(records), self._runnable_counts)
        keep = np.flatnonzero(cpu_records.needed_later())
        self._open, self._row = select_records(records, keep), row[keep]
        last_values = np.zeros_like(self._runnable_counts)
        last_values[cpu_records.columns.cpu[cpu_records.begins]] = (
            cpu_records.ends - cpu_records.begins
        )
        self._runnable_counts = (
            self._runnable_counts
            + last_values
            - np.bincount(self._open["cpu"], minlength=len(last_values))
        )
        return cpu_records

    def rest(self) -> CpuRecords:
        """Returns, after the last part, the records whose effect lasts until the trace ends."""
        begin = int(self._row.max(initial=-1)) + 1
        return CpuRecords(begin, self._row, Columns.of(self._open), self._runnable_counts)


def stable_order(numbers: npt.NDArray[np.integer]) -> Integers:
    """Returns the indices that sort numbers of at most 32 bits, stably.

    It sorts by 16-bit digits: numpy counts those, which is several times faster than comparing.
    """
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    if numbers.max(initial=0) >> 16:
        high = (numbers[order] >> 16).astype(np.uint16)
        order = order[np.argsort(high, kind="stable")]
    return order


def difference(places: Integers, others: Integers) -> Integers:
    """Returns the elements of `places` that are not in `others`; both are ascending."""
    previous = np.take(np.append(others, -1), np.searchsorted(others, places))
    remaining: Integers = places[previous != places]
    return remaining


def equals_next(values: npt.NDArray[np.integer]) -> Mask:
    """Returns which values equal the next one; false for the last."""
    is_same = np.empty(len(values), bool)
    is_same[-1:] = False
    np.equal(values[1:], values[:-1], out=is_same[:-1])
    return is_same


def is_change(values: npt.NDArray[np.integer]) -> Mask:
    """Returns which values differ from the previous one; true for the first."""
    is_change = np.empty(len(values), bool)
    is_change[:1] = True
    np.not_equal(values[1:], values[:-1], out=is_change[1:])
    return is_change

# SPDX-License-Identifier: MIT
"""Extracts the actions of processes from a trace, and the reasons for their waits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum, auto

import numpy as np
import numpy.typing as npt
import polars as pl

from schedlab.metrics.lives import Lives
from schedlab.runs.replay.charged_costs import Charges
from schedlab.runs.replay.external_events import NOTHING, Outside, set_at_arrival
from schedlab.runs.replay.progress import Stays, life_of
from schedlab.trace import BlockReason, Kind, MarkKind, Step, Trace
from schedlab.trace.model import Integers

Flags = npt.NDArray[np.bool_]
_TICK_NEARNESS = 4
"""Maximum delay of a timer's recorded wake-up after its tick, in steps of a coarse clock."""
KILLED = 0xFFFF_FFFF
"""Exit status −1, of a process that was killed by another process or by the policy."""


class Deed(IntEnum):
    """Kinds of actions."""

    SLEEP = auto()  # for `number` ns
    SLEEP_TICKS = auto()  # until `number` ticks have passed
    SLEEP_UNTIL = auto()  # until the time `number`
    FOREVER = auto()  # sleeps until after the end of the trace
    TAKE = auto()  # waits until another process wakes this process
    WAIT = auto()  # for a child. `other`: the child that ended it; `number`: the most children
    YIELD = auto()
    FORK = auto()  # `other`
    GIVE = auto()  # wakes `other`
    MARK = auto()  # `detail`: kind of mark, `number`: value
    ATTRIBUTE = auto()  # `detail` of `other` becomes `number`
    SETGROUP = auto()  # `detail` of the task group `other` becomes `number`
    SWITCH = auto()  # to another policy or tunable. `row` has its text, `number` a tunable's value
    EXIT = auto()  # with status `number`


@dataclass(frozen=True, eq=False)
class Acts:
    """The actions of all processes, as arrays with one element per action.

    They are sorted by process number (schedlab.metrics.lives), then by order of execution.
    """

    life: Integers
    deed: Integers
    row: Integers
    time_ns: Integers
    computed_ns: Integers
    """The process's total computing time (ns) before the action."""
    other: Integers
    """The number of another process, or −1 for none. For SETGROUP, the number of a group."""
    detail: Integers
    number: npt.NDArray[np.uint64]
    joined: Flags
    """True if no CPU did anything between this action and the previous one."""

    def __len__(self) -> int:
        return len(self.life)


def acts(
    trace: Trace,
    life_table: Lives,
    on_cpu: Stays,
    charges: Charges,
    omitted: Integers,
    outside: Outside = NOTHING,
) -> Acts:
    """Returns the actions of all processes except those in `omitted`.

    If an omitted process wakes another process, the latter wakes up by a timer instead.
    """
    kind = trace.column("kind")
    row = _rows(trace)
    actor, other = _actor(trace, life_table, on_cpu, row), _other(trace, life_table, row)
    is_inherited = set_at_arrival(life_table, outside, other, row) & (kind[row] == Kind.ATTRIBUTE)
    actor[is_inherited] = other[is_inherited]
    actor[np.isin(actor, omitted)] = -1
    other[np.isin(other, omitted) & (kind[row] != Kind.TASK_GROUP)] = -1
    waits = _Waits(trace, life_table, charges, omitted, outside)
    kinds = kind[row]
    deed = np.select(
        [
            kinds == Kind.YIELD,
            kinds == Kind.FORK,
            kinds == Kind.WAKEUP,
            kinds == Kind.MARK,
            kinds == Kind.ATTRIBUTE,
            kinds == Kind.TASK_GROUP,
            (kinds == Kind.POLICY) | (kinds == Kind.TUNABLE),
            kinds == Kind.EXIT,
        ],
        [
            *(Deed.YIELD, Deed.FORK, Deed.GIVE, Deed.MARK, Deed.ATTRIBUTE),
            *(Deed.SETGROUP, Deed.SWITCH, Deed.EXIT),
        ],
        0,
    )
    number = trace.column("second")[row].astype(np.uint64)
    exits = kinds == Kind.EXIT
    number[exits] = trace.column("first")[row[exits]]
    detail = trace.column("first")[row].astype(np.int64)
    blocks = np.flatnonzero(kinds == Kind.BLOCK)
    deed[blocks], number[blocks], other[blocks] = waits.of(actor[blocks], row[blocks])

    valid = (actor >= 0) & ~(((deed == Deed.GIVE) | (deed == Deed.FORK)) & (other < 0))
    valid[valid] &= ~((deed[valid] == Deed.GIVE) & waits.for_child(row[valid]))
    row, actor, other, deed = row[valid], actor[valid], other[valid], deed[valid]
    ordered = _in_order(
        life_table,
        Acts(
            life=actor,
            deed=deed,
            row=row,
            time_ns=trace.column("time_ns")[row],
            computed_ns=on_cpu.computed(actor, row),
            other=other,
            detail=detail[valid],
            number=number[valid],
            joined=np.zeros(len(row), bool),
        ),
    )
    return replace(ordered, joined=_joined(trace, ordered.row, ordered.life))


def _rows(trace: Trace) -> Integers:
    """Returns the rows of records that may be actions."""
    kind, first = trace.column("kind"), trace.column("first")
    row = trace.rows(
        Kind.BLOCK,
        Kind.YIELD,
        Kind.FORK,
        Kind.EXIT,
        Kind.MARK,
        Kind.WAKEUP,
        Kind.ATTRIBUTE,
        Kind.TASK_GROUP,
        Kind.POLICY,
        Kind.TUNABLE,
    )
    kinds = kind[row]
    is_output = (kinds == Kind.MARK) & (first[row] > MarkKind.NOTE)
    by_interrupt = (kinds == Kind.WAKEUP) & (first[row] == 0)
    rows: Integers = row[~is_output & ~by_interrupt]
    return rows


def _actor(trace: Trace, life_table: Lives, on_cpu: Stays, row: Integers) -> Integers:
    kinds = trace.column("kind")[row]
    pid = trace.column("process")[row].astype(np.int64)
    woken = kinds == Kind.WAKEUP
    pid[woken] = trace.column("first")[row[woken]]
    life = life_of(life_table, pid, row)
    set_by = np.isin(kinds, (Kind.ATTRIBUTE, Kind.TASK_GROUP, Kind.POLICY, Kind.TUNABLE))
    cpu = trace.column("cpu")[row].astype(np.int64)
    life[set_by] = on_cpu.running(cpu[set_by], row[set_by])
    life[pid == 0] = np.where(set_by[pid == 0], life[pid == 0], -1)
    return life


def _other(trace: Trace, life_table: Lives, row: Integers) -> Integers:
    """Returns the process that is forked, woken or given an attribute; or the number of a group."""
    kinds = trace.column("kind")[row]
    pid = trace.column("process")[row].astype(np.int64)
    forked = kinds == Kind.FORK
    pid[forked] = trace.column("first")[row[forked]]
    is_known = np.isin(kinds, (Kind.FORK, Kind.WAKEUP, Kind.ATTRIBUTE))
    life = np.full(len(row), -1)
    life[is_known] = life_of(life_table, pid[is_known], row[is_known])
    groups = kinds == Kind.TASK_GROUP
    life[groups] = pid[groups]
    return life


class _Waits:
    """Finds the reason for each wait, and the process that ended the wait."""

    def __init__(
        self, trace: Trace, life_table: Lives, charges: Charges, omitted: Integers, outside: Outside
    ) -> None:
        self.trace, self.life_table, self.charges = trace, life_table, charges
        # Activity out of sight is unknown: the process sleeps until its next record.
        self.wake_row = np.sort(
            np.concatenate((trace.rows(Kind.WAKEUP), _reappearances(life_table)))
        )
        pid = trace.column("process")[self.wake_row].astype(np.int64)
        waker_pid = _waker_of(trace, self.wake_row)
        self.woken = life_of(life_table, pid, self.wake_row)
        self.waker = life_of(life_table, waker_pid, self.wake_row)
        self.waker[(waker_pid == 0) | np.isin(self.waker, omitted)] = -1
        self.order = np.lexsort((self.wake_row, self.woken))
        self.key = (self.woken[self.order] << 40) | self.wake_row[self.order]
        self.reason = self._reasons()
        given = [coming.row for coming in outside.comings if not coming.is_process]
        self.from_outside = np.isin(self.wake_row, given)

    def _reasons(self) -> Integers:
        """Returns the reason for blocking that precedes each wake-up."""
        block = self.trace.rows(Kind.BLOCK)
        pid = self.trace.column("process")[block].astype(np.int64)
        reason = np.zeros(len(self.wake_row), np.int64)
        at, has_reason = self._after(life_of(self.life_table, pid, block), block)
        reason[at[has_reason]] = self.trace.column("first")[block[has_reason]]
        return reason

    def _after(self, life: Integers, row: Integers) -> tuple[Integers, Flags]:
        """Returns the wake-up that ended each wait, and whether there is one.

        Waits are given by process and first row.
        """
        if len(self.order) == 0:
            return np.zeros(len(row), np.int64), np.zeros(len(row), bool)
        place = np.searchsorted(self.key, (life << 40) | row)
        has_next = place < len(self.order)
        at = self.order[np.minimum(place, len(self.order) - 1)]
        return at, has_next & (self.woken[at] == life) & (life >= 0)

    def _by_child(self, at: Integers) -> Flags:
        """True if a child's exit woke its parent."""
        waker = np.maximum(self.waker[at], 0)
        ended = self.life_table.exit_row[waker]
        by_child: Flags = (
            (self.reason[at] == BlockReason.CHILD)
            & (self.waker[at] >= 0)
            & (ended >= 0)
            & (ended <= self.wake_row[at])
        )
        return by_child

    def for_child(self, row: Integers) -> Flags:
        """Marks wake-up records that a child's exit caused. They are not actions of the child."""
        place = np.searchsorted(self.wake_row, row)
        inside = place < len(self.wake_row)
        at = np.minimum(place, max(len(self.wake_row) - 1, 0))
        if len(self.wake_row) == 0:
            return np.zeros(len(row), bool)
        is_for_child: Flags = inside & (self.wake_row[at] == row) & self._by_child(at)
        return is_for_child

    def of(
        self, life: Integers, row: Integers
    ) -> tuple[Integers, npt.NDArray[np.uint64], Integers]:
        """Returns the columns deed, number and other for waits that begin at these rows."""
        time = self.trace.column("time_ns")
        reason = self.trace.column("first")[row].astype(np.int64)
        at, has_next = self._after(life, row)
        begin = time[row]
        if len(self.wake_row) == 0:
            nothing = np.zeros(len(row), np.uint64)
            return np.full(len(row), Deed.FOREVER), nothing, np.full(len(row), -1)
        end = time[self.wake_row[at]]
        by_interrupt = has_next & (self.waker[at] < 0) & ~self.from_outside[at]
        cpu = self.trace.column("cpu")[self.wake_row[at]].astype(np.int64)
        ticks = self._ticks(begin, end, cpu, by_interrupt & (reason == BlockReason.SLEEP))
        deed = np.select(
            [~has_next, ticks > 0, by_interrupt, self._by_child(at)],
            [Deed.FOREVER, Deed.SLEEP_TICKS, Deed.SLEEP, Deed.WAIT],
            Deed.TAKE,
        )
        number = np.where(ticks > 0, ticks, np.maximum(end - begin, 1))
        number[deed >= Deed.FOREVER] = 0
        waker = np.where(deed == Deed.WAIT, self.waker[at], -1)
        return deed, number.astype(np.uint64), waker

    def _ticks(self, begin: Integers, end: Integers, cpu: Integers, asleep: Flags) -> Integers:
        """Returns the durations of sleeps in ticks, or 0 for sleeps that do not end with a tick of a CPU.

        If most sleeps of the machine end with a tick, all sleeps are counted in ticks.
        """
        tick, step = self.trace.header.tick_ns, self.trace.clock_step_ns
        nothing = np.zeros(len(begin), np.int64)
        if tick == 0 or not asleep.any():
            return nothing
        late: int | Integers = self.charges.latest
        if not is_exact(self.trace):
            late = max(late, _TICK_NEARNESS * step)
        late = np.minimum(late + cpu * self.charges.stagger, tick // 10)
        with_tick = asleep & (end % tick <= late)
        if 2 * np.count_nonzero(with_tick) <= np.count_nonzero(asleep):
            return nothing
        return np.where(with_tick, end // tick - begin // tick, 0)


def is_exact(trace: Trace) -> bool:
    """True if the clock gives different times to different events, as the simulator's cycle counter does."""
    rows = trace.rows(Kind.SCHEDULER_EXIT)
    same = trace.column("second")[rows] == trace.column("time_ns")[rows].astype(np.uint64)
    return trace.clock_step_ns <= 1 or bool(len(rows) and same.all())


def _joined(trace: Trace, row: Integers, actor: Integers) -> Flags:
    """Marks actions that immediately follow another action of the same process at the same time.

    Only context switches may be recorded between them. With a coarse clock, only records of the
    same CPU are considered.
    """
    kind, cpu, time = trace.column("kind"), trace.column("cpu"), trace.column("time_ns")
    counted = kind != Kind.MIGRATE
    if is_exact(trace):
        place = np.cumsum(counted)
    else:
        place = np.zeros(len(kind), np.int64)
        for number in range(trace.header.cpus):
            on_cpu = cpu == number
            place[on_cpu] = np.cumsum(counted[on_cpu])
    joined = np.zeros(len(row), bool)
    joined[1:] = (
        (actor[1:] == actor[:-1])
        & (cpu[row[1:]] == cpu[row[:-1]])
        & (time[row[1:]] == time[row[:-1]])
        & (place[row[1:]] == place[row[:-1]] + 1)
    )
    return joined


def _in_order(life_table: Lives, sorted_acts: Acts) -> Acts:
    """Returns the actions sorted. Actions after a process's exit record are moved before it."""
    ended = life_table.exit_row[sorted_acts.life]
    place = 2 * sorted_acts.row
    after = (ended >= 0) & (sorted_acts.row > ended)
    place[after] = 2 * ended[after] - 1
    order = np.lexsort((sorted_acts.row, place, sorted_acts.life))
    columns = {name: values[order] for name, values in vars(sorted_acts).items()}
    return Acts(**columns)


@dataclass(frozen=True)
class Start:
    """The first wait of a process that existed before the trace."""

    deed: Deed
    number: int


def first_waits(trace: Trace, life_table: Lives, omitted: Integers) -> dict[int, Start]:
    """Returns the first waits of processes that existed before the trace."""
    waits, at = _woken_at_first(life_table)
    row = life_table.steps.row[at]
    pid = _waker_of(trace, row)
    waker = life_of(life_table, pid, row)
    waker[(pid == 0) | np.isin(waker, omitted)] = -1
    time = trace.column("time_ns")[row].tolist()
    return {
        life: Start(Deed.TAKE, 0) if by >= 0 else Start(Deed.SLEEP_UNTIL, when)
        for life, by, when in zip(waits.tolist(), waker.tolist(), time, strict=True)
    }


def _woken_at_first(life_table: Lives) -> tuple[Integers, Integers]:
    """Returns processes from before the trace whose first event is a wake-up or reappearance, with its row."""
    steps = life_table.steps
    at = steps.first.copy()
    for step in (Step.FOUND, Step.UNSEEN):
        at[steps.step[np.minimum(at, len(steps.step) - 1)] == step] += 1
    exists = at < len(steps.life)
    exists[exists] = steps.life[at[exists]] == np.flatnonzero(exists)
    woken = np.flatnonzero(exists & (life_table.fork_row < 0))
    woken = woken[np.isin(steps.step[at[woken]], (Step.WOKEN, Step.FOUND))]
    return woken, at[woken]


def _reappearances(life_table: Lives) -> Integers:
    """Returns the rows where processes that were out of sight reappear."""
    steps = life_table.steps
    again = steps.step == Step.FOUND
    again[steps.first] = False
    rows: Integers = steps.row[again]
    return rows


def _waker_of(trace: Trace, row: Integers) -> Integers:
    """Returns the PID of the waker at each row; 0 if none is known."""
    woken = trace.column("kind")[row] == Kind.WAKEUP
    return np.where(woken, trace.column("first")[row], 0).astype(np.int64)


def texts(trace: Trace) -> dict[int, str]:
    """Returns the texts of POLICY and TUNABLE records, by row."""
    rows = trace.rows(Kind.POLICY, Kind.TUNABLE)
    selected = trace.texts.filter(pl.col("row").is_in(rows))
    return dict(zip(selected["row"].to_list(), selected["text"].to_list(), strict=True))

# SPDX-License-Identifier: MIT
"""Extracts from a trace what each process did, and what it waited for."""

from dataclasses import dataclass, replace
from enum import IntEnum, auto

import numpy as np
import numpy.typing as npt
import polars as pl

from schedlab.metrics.lives import Lives
from schedlab.runs.replay.charged_costs import Charges
from schedlab.runs.replay.external_events import NO_EXTERNAL_EVENTS, ExternalEvents, set_at_arrival
from schedlab.runs.replay.progress import CpuStays, find_life
from schedlab.trace import BlockReason, Kind, MarkKind, Step, Trace
from schedlab.trace.model import Integers

Flags = npt.NDArray[np.bool_]
_TICK_DELAY_STEPS = 4
"""A wake-up up to this many steps of a coarse clock after a tick counts as caused by the tick."""
KILLED_STATUS = 0xFFFF_FFFF
"""Exit status −1: the process was killed by another process or by the policy."""


class ActionKind(IntEnum):
    """Kinds of actions, and which columns of Actions have their parameters."""

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
class Actions:
    """The actions of all processes, as arrays with one element per action.

    Sorted by process (column `life`), then by order of execution.
    """

    life: Integers
    action_kind: Integers
    row: Integers
    time_ns: Integers
    computed_ns: Integers
    """CPU time (ns) that the process had used before the action, without the machine's costs."""
    other: Integers
    """Index of another process, or −1 for none. For SETGROUP, the number of a group."""
    detail: Integers
    number: npt.NDArray[np.uint64]
    joined: Flags
    """True if no CPU did anything between the previous action and this one."""

    def __len__(self) -> int:
        """Returns the number of actions."""
        return len(self.life)


def extract_actions(
    trace: Trace,
    life_table: Lives,
    on_cpu: CpuStays,
    charges: Charges,
    omitted: Integers,
    outside: ExternalEvents = NO_EXTERNAL_EVENTS,
) -> Actions:
    """Returns the actions of all processes except `omitted`.

    If an omitted process wakes another process, a timer wakes the latter in the replay.
    """
    kind = trace.column("kind")
    row = _action_rows(trace)
    actor, other = _actor(trace, life_table, on_cpu, row), _counterpart(trace, life_table, row)
    is_inherited = set_at_arrival(life_table, outside, other, row) & (kind[row] == Kind.ATTRIBUTE)
    actor[is_inherited] = other[is_inherited]
    actor[np.isin(actor, omitted)] = -1
    other[np.isin(other, omitted) & (kind[row] != Kind.TASK_GROUP)] = -1
    waits = _Waits(trace, life_table, charges, omitted, outside)
    kinds = kind[row]
    action_kind = np.select(
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
            *(
                ActionKind.YIELD,
                ActionKind.FORK,
                ActionKind.GIVE,
                ActionKind.MARK,
                ActionKind.ATTRIBUTE,
            ),
            *(ActionKind.SETGROUP, ActionKind.SWITCH, ActionKind.EXIT),
        ],
        0,
    )
    number = trace.column("second")[row].astype(np.uint64)
    exits = kinds == Kind.EXIT
    number[exits] = trace.column("first")[row[exits]]
    detail = trace.column("first")[row].astype(np.int64)
    blocks = np.flatnonzero(kinds == Kind.BLOCK)
    action_kind[blocks], number[blocks], other[blocks] = waits.of(actor[blocks], row[blocks])

    valid = (actor >= 0) & ~(
        ((action_kind == ActionKind.GIVE) | (action_kind == ActionKind.FORK)) & (other < 0)
    )
    valid[valid] &= ~((action_kind[valid] == ActionKind.GIVE) & waits.for_child(row[valid]))
    row, actor, other, action_kind = row[valid], actor[valid], other[valid], action_kind[valid]
    ordered = _sort_actions(
        life_table,
        Actions(
            life=actor,
            action_kind=action_kind,
            row=row,
            time_ns=trace.column("time_ns")[row],
            computed_ns=on_cpu.computed(actor, row),
            other=other,
            detail=detail[valid],
            number=number[valid],
            joined=np.zeros(len(row), bool),
        ),
    )
    return replace(ordered, joined=_continues_previous(trace, ordered.row, ordered.life))


def _action_rows(trace: Trace) -> Integers:
    """Returns the rows of all records that are or might be actions."""
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


def _actor(trace: Trace, life_table: Lives, on_cpu: CpuStays, row: Integers) -> Integers:
    """Returns the life of the process that performs each action."""
    kinds = trace.column("kind")[row]
    pid = trace.column("process")[row].astype(np.int64)
    woken = kinds == Kind.WAKEUP
    pid[woken] = trace.column("first")[row[woken]]
    life = find_life(life_table, pid, row)
    set_by = np.isin(kinds, (Kind.ATTRIBUTE, Kind.TASK_GROUP, Kind.POLICY, Kind.TUNABLE))
    cpu = trace.column("cpu")[row].astype(np.int64)
    life[set_by] = on_cpu.running(cpu[set_by], row[set_by])
    life[pid == 0] = np.where(set_by[pid == 0], life[pid == 0], -1)
    return life


def _counterpart(trace: Trace, life_table: Lives, row: Integers) -> Integers:
    """Returns the index of the process that each record forks, wakes or changes; or a group's number."""
    kinds = trace.column("kind")[row]
    pid = trace.column("process")[row].astype(np.int64)
    forked = kinds == Kind.FORK
    pid[forked] = trace.column("first")[row[forked]]
    is_known = np.isin(kinds, (Kind.FORK, Kind.WAKEUP, Kind.ATTRIBUTE))
    life = np.full(len(row), -1)
    life[is_known] = find_life(life_table, pid[is_known], row[is_known])
    groups = kinds == Kind.TASK_GROUP
    life[groups] = pid[groups]
    return life


class _Waits:
    """Determines why each process waited, and which process ended the wait."""

    def __init__(
        self,
        trace: Trace,
        life_table: Lives,
        charges: Charges,
        omitted: Integers,
        outside: ExternalEvents,
    ) -> None:
        self.trace, self.life_table, self.charges = trace, life_table, charges
        # A process that was out of sight is treated as sleeping until its next record.
        self.wake_row = np.sort(
            np.concatenate((trace.rows(Kind.WAKEUP), _reappearances(life_table)))
        )
        pid = trace.column("process")[self.wake_row].astype(np.int64)
        waker_pid = _waker_of(trace, self.wake_row)
        self.woken = find_life(life_table, pid, self.wake_row)
        self.waker = find_life(life_table, waker_pid, self.wake_row)
        self.waker[(waker_pid == 0) | np.isin(self.waker, omitted)] = -1
        self.order = np.lexsort((self.wake_row, self.woken))
        self.key = (self.woken[self.order] << 40) | self.wake_row[self.order]
        self.reason = self._reasons()
        input_rows = [arrival.row for arrival in outside.arrivals if not arrival.is_process]
        self.from_outside = np.isin(self.wake_row, input_rows)

    def _reasons(self) -> Integers:
        """Returns, for each wake-up, the reason for the process's preceding block."""
        blocks = self.trace.rows(Kind.BLOCK)
        pid = self.trace.column("process")[blocks].astype(np.int64)
        reasons = np.zeros(len(self.wake_row), np.int64)
        wakeups, has_reason = self._after(find_life(self.life_table, pid, blocks), blocks)
        reasons[wakeups[has_reason]] = self.trace.column("first")[blocks[has_reason]]
        return reasons

    def _after(self, life: Integers, row: Integers) -> tuple[Integers, Flags]:
        """Returns the index of the wake-up that ended each wait, and whether there is one.

        `life`, `row`: the waiting process, and the first row of the wait.
        """
        if len(self.order) == 0:
            return np.zeros(len(row), np.int64), np.zeros(len(row), bool)
        index = np.searchsorted(self.key, (life << 40) | row)
        has_next = index < len(self.order)
        wakeups = self.order[np.minimum(index, len(self.order) - 1)]
        return wakeups, has_next & (self.woken[wakeups] == life) & (life >= 0)

    def _by_child(self, wakeups: Integers) -> Flags:
        """Returns which of these wake-ups were caused by the exit of a child."""
        waker = np.maximum(self.waker[wakeups], 0)
        exit_row = self.life_table.exit_row[waker]
        by_child: Flags = (
            (self.reason[wakeups] == BlockReason.CHILD)
            & (self.waker[wakeups] >= 0)
            & (exit_row >= 0)
            & (exit_row <= self.wake_row[wakeups])
        )
        return by_child

    def for_child(self, row: Integers) -> Flags:
        """Returns which wake-up records were caused by an exit, and thus are no actions of the child."""
        index = np.searchsorted(self.wake_row, row)
        inside = index < len(self.wake_row)
        wakeups = np.minimum(index, max(len(self.wake_row) - 1, 0))
        if len(self.wake_row) == 0:
            return np.zeros(len(row), bool)
        is_for_child: Flags = inside & (self.wake_row[wakeups] == row) & self._by_child(wakeups)
        return is_for_child

    def of(
        self, life: Integers, row: Integers
    ) -> tuple[Integers, npt.NDArray[np.uint64], Integers]:
        """Returns the columns `action_kind`, `number` and `other` of Actions, for waits from these rows on."""
        time = self.trace.column("time_ns")
        reason = self.trace.column("first")[row].astype(np.int64)
        wakeups, has_next = self._after(life, row)
        begin = time[row]
        if len(self.wake_row) == 0:
            zeros = np.zeros(len(row), np.uint64)
            return np.full(len(row), ActionKind.FOREVER), zeros, np.full(len(row), -1)
        end = time[self.wake_row[wakeups]]
        by_interrupt = has_next & (self.waker[wakeups] < 0) & ~self.from_outside[wakeups]
        cpu = self.trace.column("cpu")[self.wake_row[wakeups]].astype(np.int64)
        ticks = self._ticks(begin, end, cpu, by_interrupt & (reason == BlockReason.SLEEP))
        action_kind = np.select(
            [~has_next, ticks > 0, by_interrupt, self._by_child(wakeups)],
            [ActionKind.FOREVER, ActionKind.SLEEP_TICKS, ActionKind.SLEEP, ActionKind.WAIT],
            ActionKind.TAKE,
        )
        number = np.where(ticks > 0, ticks, np.maximum(end - begin, 1))
        number[action_kind >= ActionKind.FOREVER] = 0
        waker = np.where(action_kind == ActionKind.WAIT, self.waker[wakeups], -1)
        return action_kind, number.astype(np.uint64), waker

    def _ticks(self, begin: Integers, end: Integers, cpu: Integers, asleep: Flags) -> Integers:
        """Returns the lengths of sleeps in ticks; 0 for a sleep that did not end with a tick.

        If most sleeps of the machine end with a tick, all sleeps are counted in ticks.
        """
        tick, step = self.trace.header.tick_ns, self.trace.clock_step_ns
        zeros = np.zeros(len(begin), np.int64)
        if tick == 0 or not asleep.any():
            return zeros
        latest_delay: int | Integers = self.charges.latest
        if not has_exact_clock(self.trace):
            latest_delay = max(latest_delay, _TICK_DELAY_STEPS * step)
        latest_delay = np.minimum(latest_delay + cpu * self.charges.stagger, tick // 10)
        with_tick = asleep & (end % tick <= latest_delay)
        if 2 * np.count_nonzero(with_tick) <= np.count_nonzero(asleep):
            return zeros
        return np.where(with_tick, end // tick - begin // tick, 0)


def has_exact_clock(trace: Trace) -> bool:
    """Returns whether the clock distinguishes all events, as the simulator's cycle counter does."""
    rows = trace.rows(Kind.SCHEDULER_EXIT)
    is_same = trace.column("second")[rows] == trace.column("time_ns")[rows].astype(np.uint64)
    return trace.clock_step_ns <= 1 or bool(len(rows) and is_same.all())


def _continues_previous(trace: Trace, row: Integers, actor: Integers) -> Flags:
    """Returns for each action whether it continues the process's previous action.

    It does if both have the same time, and at most context switches were recorded between them.
    With a coarse clock, only records of the same CPU are considered.

    """
    kind, cpu, time = trace.column("kind"), trace.column("cpu"), trace.column("time_ns")
    counted = kind != Kind.MIGRATE
    if has_exact_clock(trace):
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


def _sort_actions(life_table: Lives, unsorted: Actions) -> Actions:
    """Returns the actions sorted; actions recorded after the process's exit are moved before it."""
    ended = life_table.exit_row[unsorted.life]
    sort_key = 2 * unsorted.row
    after = (ended >= 0) & (unsorted.row > ended)
    sort_key[after] = 2 * ended[after] - 1
    order = np.lexsort((unsorted.row, sort_key, unsorted.life))
    columns = {name: values[order] for name, values in vars(unsorted).items()}
    return Actions(**columns)


@dataclass(frozen=True)
class FirstWait:
    """The first wait of a process that existed before the trace began: an action and its number."""

    action_kind: ActionKind
    number: int


def first_waits(trace: Trace, life_table: Lives, omitted: Integers) -> dict[int, FirstWait]:
    """Returns the first waits of processes that existed before the trace, by index of the process."""
    waits, at = _find_first_wakeups(life_table)
    row = life_table.steps.row[at]
    pid = _waker_of(trace, row)
    waker = find_life(life_table, pid, row)
    waker[(pid == 0) | np.isin(waker, omitted)] = -1
    time = trace.column("time_ns")[row].tolist()
    return {
        life: FirstWait(ActionKind.TAKE, 0) if by >= 0 else FirstWait(ActionKind.SLEEP_UNTIL, when)
        for life, by, when in zip(waits.tolist(), waker.tolist(), time, strict=True)
    }


def _find_first_wakeups(life_table: Lives) -> tuple[Integers, Integers]:
    """Returns processes from before the trace that first wake up or reappear, and the rows of that.

    A process reappears if it was out of sight: outside of what the recorder observed.
    """
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
    """Returns the rows where a process reappears that was out of sight."""
    steps = life_table.steps
    is_reappearance = steps.step == Step.FOUND
    is_reappearance[steps.first] = False
    rows: Integers = steps.row[is_reappearance]
    return rows


def _waker_of(trace: Trace, row: Integers) -> Integers:
    """Returns the PID of the process that caused the wake-up at each row; 0 if unknown."""
    woken = trace.column("kind")[row] == Kind.WAKEUP
    return np.where(woken, trace.column("first")[row], 0).astype(np.int64)


def switch_texts(trace: Trace) -> dict[int, str]:
    """Returns the texts of POLICY and TUNABLE records, by row."""
    rows = trace.rows(Kind.POLICY, Kind.TUNABLE)
    selected = trace.texts.filter(pl.col("row").is_in(rows))
    return dict(zip(selected["row"].to_list(), selected["text"].to_list(), strict=True))

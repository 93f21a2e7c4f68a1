# SPDX-License-Identifier: MIT
"""Sums up the times and events of each process in the window, while a trace is read part by part."""

import numpy as np
import numpy.typing as npt
import polars as pl

from schedlab.metrics.intervals import state_changes
from schedlab.metrics.lives import LifeTable, forks
from schedlab.metrics.window import Windows
from schedlab.trace import Kind, ProcessState, Step, TraceFacts
from schedlab.trace.cpu_records import is_change
from schedlab.trace.format import is_kind
from schedlab.trace.joined import RunFacts
from schedlab.trace.model import Columns, Integers
from schedlab.trace.parts import TracePart
from schedlab.trace.steps import Steps
from schedlab.trace.timeline import OUT_OF_SIGHT, life_at, sort_key

COUNTS = {
    "selections": Kind.SCHEDULER_EXIT,
    "wakeups": Kind.WAKEUP,
    "blocks": Kind.BLOCK,
    "yields": Kind.YIELD,
    "preemptions": Kind.PREEMPT,
    "migrations": Kind.MIGRATE,
}
"""Columns that count a process's records of one kind."""
TIMES = {
    "running_ns": ProcessState.RUNNING,
    "waiting_ns": ProcessState.RUNNABLE,
    "blocked_ns": ProcessState.BLOCKED,
    "unknown_ns": OUT_OF_SIGHT,
}
"""Columns that sum the time that a process spent in one state, within the window."""

LONGEST_WAIT = "longest_wait_ns"
"""Column with the longest time without interruption that a process was ready but did not run."""

_LIFE_COLUMNS = (
    "unseen_row",
    "pid",
    "begin_row",
    "forked",
    "first_run_row",
    "first_run_ns",
    "exit_row",
)


class Accounts:
    """Sums for each life (see schedlab.metrics.lives), indexed by Steps.life."""

    def __init__(self, trace: TraceFacts, runs: RunFacts, windows: Windows) -> None:
        self._trace = trace
        self._runs = runs
        self._windows = windows
        self._lives = 0
        self._life = {name: np.empty(0, np.int64) for name in _LIFE_COLUMNS}
        self._sums = {name: np.empty(0, np.int64) for name in (*TIMES, LONGEST_WAIT, *COUNTS)}
        self._latencies: list[tuple[Integers, Integers]] = []
        """Pairs of arrays: lives, and their wake-up latencies in nanoseconds."""
        self._open: list[Steps] = []
        """Steps that begin a state still in progress when the trace ends."""
        # Without scheduler records, only the switch shows that a process was picked.
        picks = Kind.SCHEDULER_EXIT if trace.has(Kind.SCHEDULER_EXIT) else Kind.SWITCH
        self._kinds = {**COUNTS, "selections": picks}

    def take(self, part: TracePart) -> None:
        """Adds the sums of the next part of the trace."""
        steps = part.steps
        starts = np.flatnonzero(is_change(steps.life))
        self._begin(steps, starts)
        self._note_first("first_run_row", steps, Step.IN)
        self._note_first("exit_row", steps, Step.ENDED)
        self._note_first("unseen_row", steps, Step.UNSEEN)
        self._add_times(steps)
        self._add_counts(steps, starts, part.columns)

    def end(self, rest: Steps, cpu_end_ns: Integers) -> None:
        """Adds the states that last until the trace ends.

        `rest`: the last step of each process. `cpu_end_ns`: the time of each CPU's last record.
        """
        self._open.append(state_changes(rest)[0])
        for last_steps in self._open:
            runs = is_kind(last_steps.after, ProcessState.RUNNING)
            trace_end_ns = self._runs.end_ns[self._runs.of_pids(last_steps.pid)]
            end_ns = np.where(runs, cpu_end_ns[last_steps.cpu], trace_end_ns)
            end_ns = np.maximum(end_ns, last_steps.time)
            spent = self._windows.of_processes(last_steps.pid, last_steps.time, end_ns)
            for name, state in TIMES.items():
                is_in_state = is_kind(last_steps.after, state)
                np.add.at(self._sums[name], last_steps.life[is_in_state], spent[is_in_state])
            waits = is_kind(last_steps.after, ProcessState.RUNNABLE)
            np.maximum.at(self._sums[LONGEST_WAIT], last_steps.life[waits], spent[waits])

    def results(self) -> tuple[LifeTable, dict[str, Integers], pl.DataFrame]:
        """Returns the lives, their sums, and the wake-up latencies.

        The sums are those of TIMES, LONGEST_WAIT and COUNTS. Latencies have the columns life and
        latency_ns, with a row for each wake-up in the window that led to a run in the window.
        """
        pid, begin_row = (self._life[name][: self._lives] for name in ("pid", "begin_row"))
        order = np.argsort(sort_key(pid, begin_row))
        life = {name: values[: self._lives][order] for name, values in self._life.items()}
        # A process that was out of sight before its first recorded run may have run earlier.
        unseen = life.pop("unseen_row")
        life["first_run_row"][(unseen >= 0) & (unseen < life["first_run_row"])] = -1
        fork_row, parent = forks(
            self._trace,
            life["pid"],
            life["begin_row"],
            life.pop("forked").astype(bool),
            self._runs.of_pids(life["pid"]),
        )
        life_table = LifeTable(fork_row=fork_row, parent=parent, **life)
        sums = {name: values[: self._lives][order] for name, values in self._sums.items()}
        index_by_life = np.empty(self._lives, np.int64)
        index_by_life[order] = np.arange(self._lives)
        latencies = [np.concatenate(pieces) for pieces in zip(*self._latencies, strict=True)]
        life_of, latency = latencies if latencies else (index_by_life[:0], index_by_life[:0])
        waits = pl.DataFrame({"life": index_by_life[life_of], "latency_ns": latency})
        return life_table, sums, waits

    def _begin(self, steps: Steps, starts: Integers) -> None:
        new_starts = starts[steps.life[starts] >= self._lives]
        life = steps.life[new_starts]
        self._lives += len(new_starts)
        for accounts in (self._life, self._sums):
            for name, values in accounts.items():
                accounts[name] = _with_capacity(
                    values, self._lives, -1 if name.endswith("_row") else 0
                )
        for name, column in (
            ("pid", steps.pid),
            ("begin_row", steps.row),
            ("forked", is_kind(steps.step, Step.BORN)),
        ):
            self._life[name][life] = column[new_starts]

    def _note_first(self, name: str, steps: Steps, step: Step) -> None:
        """Stores the row where each life takes this step for the first time."""
        first_steps = np.flatnonzero(is_kind(steps.step, step) & (steps.row >= steps.begin))
        first_steps = first_steps[is_change(steps.life[first_steps])]
        first_steps = first_steps[self._life[name][steps.life[first_steps]] < 0]
        life = steps.life[first_steps]
        self._life[name][life] = steps.row[first_steps]
        if step == Step.IN:
            self._life["first_run_ns"][life] = steps.time[first_steps]

    def _add_times(self, steps: Steps) -> None:
        """Adds the times in each state that ends in the part, and the wake-up latencies."""
        steps, goes_on = state_changes(steps)
        ends = np.flatnonzero(~goes_on)
        # If records are missing, a life may begin although the PID's previous life has not ended.
        followed = ends[:-1][steps.pid[ends[:-1]] == steps.pid[ends[:-1] + 1]]
        if len(followed):
            self._open.append(steps.of(followed))
        end_ns = steps.time.copy()
        np.maximum(steps.time[1:], steps.time[:-1], out=end_ns[:-1])
        spent = self._windows.of_processes(steps.pid, steps.time, end_ns)
        spent[ends] = 0
        for name, state in TIMES.items():
            add(self._sums[name], steps.life[ends], ends, spent * is_kind(steps.after, state))
        waits = is_kind(steps.after, ProcessState.RUNNABLE)
        np.maximum.at(self._sums[LONGEST_WAIT], steps.life[waits], spent[waits])
        woken = np.flatnonzero(is_kind(steps.step, Step.WOKEN) & goes_on)
        in_window = self._windows.holds(steps.row[woken])
        in_window &= self._windows.holds(steps.row[woken + 1])
        in_window &= ~is_kind(steps.step[woken + 1], Step.UNSEEN)
        woken = woken[in_window]
        self._latencies.append((steps.life[woken], end_ns[woken] - steps.time[woken]))

    def _add_counts(self, steps: Steps, starts: Integers, columns: Columns) -> None:
        """Counts records of a PID for the life that the PID had at the record."""
        kinds = list(self._kinds.values())
        rows = np.flatnonzero(is_kind(columns.kind, *kinds)) + steps.begin
        rows = rows[self._windows.part(rows)]
        index = rows - steps.begin
        of_life = life_at(steps.pid[starts], steps.row[starts], columns.process[index], rows)
        kind_index = np.zeros(max(kinds) + 1, np.int64)
        kind_index[kinds] = np.arange(len(kinds))
        # Each pair of life and kind gets a number. The first numbers are of records without a life.
        pair_numbers = (of_life + 1) * len(kinds) + kind_index[columns.kind[index]]
        pair_counts = np.bincount(pair_numbers, minlength=(len(starts) + 1) * len(kinds))
        for name, counts in zip(
            self._kinds, pair_counts.reshape(-1, len(kinds))[1:].T, strict=True
        ):
            self._sums[name][steps.life[starts]] += counts


def add(
    sums: Integers, life_indices: npt.NDArray[np.integer], ends: Integers, values: Integers
) -> None:
    """Adds values to the sums of their lives, which must be in ascending order.

    `life_indices`: indices in `sums`; `ends`: for each of them, the index of its last value.
    """
    if len(life_indices):
        sums[life_indices] += np.add.reduceat(values, np.append(0, ends[:-1] + 1))


def _with_capacity(values: Integers, count: int, default: int) -> Integers:
    """Returns the array, enlarged if it has fewer than `count` elements.

    The size at least doubles, so that appending is cheap.
    """
    if count <= len(values):
        return values
    return np.concatenate((values, np.full(max(count, 2 * len(values)) - len(values), default)))

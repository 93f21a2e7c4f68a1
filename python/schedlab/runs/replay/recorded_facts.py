# SPDX-License-Identifier: MIT
"""Collects facts about the processes in a recorded trace that a replay needs beside their actions."""

import numpy as np

from schedlab.metrics.lives import Lives, descendants, labels, lives, names
from schedlab.metrics.unknown import has_unknown_activity, wakeups_unknown
from schedlab.metrics.window import measured_window
from schedlab.runs.replay import actions
from schedlab.runs.replay.actions import ActionKind, Actions
from schedlab.runs.replay.charged_costs import Charges
from schedlab.runs.replay.external_events import (
    ExternalEvents,
    adopt_arrivals,
    find_external_events,
    set_at_arrival,
)
from schedlab.runs.replay.progress import CpuStays, find_cpu_stays, find_life
from schedlab.trace import Kind, MarkKind, ProcessState, Trace

INIT_PID = 1
"""PID of the simulator's own first process."""
READY_STATES = (ProcessState.RUNNABLE, ProcessState.RUNNING)
_GROUPS_MAX = 20_000
"""Maximum number of groups of processes that are woken together.

Each group needs a separate channel, which the simulator finds by linear search.
"""


class RecordedFacts:
    """A trace, the actions of its processes, and further facts about them."""

    def __init__(self, trace: Trace, charges: Charges, keep_switches: bool) -> None:
        self.trace, self.charges, self.keep_switches = trace, charges, keep_switches
        self.life_table: Lives = lives(trace)
        self.on_cpu: CpuStays = find_cpu_stays(trace, self.life_table, charges)
        self.init = self._init()
        self.omitted = np.array([self.init] if self.init >= 0 else [], np.int64)
        self.outside: ExternalEvents = find_external_events(trace, self.life_table, self.omitted)
        if self.outside.creator >= 0:
            self.life_table = adopt_arrivals(self.life_table, self.outside)
        self.acts: Actions = actions.extract_actions(
            trace, self.life_table, self.on_cpu, charges, self.omitted, self.outside
        )
        self.set_at_arrival = self._find_inherited()
        self.first_act = np.searchsorted(self.acts.life, np.arange(len(self.life_table) + 1))
        self.new_slots = self._new_slots()
        self.started = self._find_started()
        self.first_wait = actions.first_waits(trace, self.life_table, self.omitted)
        self.texts = actions.switch_texts(trace)
        self.name = names(trace, self.life_table)
        self.label = labels(trace, self.life_table)
        self.notes = self._notes()
        self.window = measured_window(trace)
        self.at_end = self._at_windows_end()
        self.groups = self._woken_together()
        self.forked_by = self._children()
        self.left_children = self._left_children()

    def _notes(self) -> list[str]:
        """Returns notes about what is not replayed."""
        notes = []
        if wakeups_unknown(self.trace):
            notes.append(
                "the recording has no wake-ups: that they waited for a CPU after that counts as"
                " sleep, and no process waits for another one"
            )
        if has_unknown_activity(self.trace):
            notes.append(
                "what processes did while they were out of sight is unknown: they sleep instead, or go on at once if"
                " they were to run next"
            )
        if self.trace.truncated or self.trace.lost:
            notes.append(
                "the trace is incomplete: processes follow it to its end, and then continue in the same way"
            )
        rows = self.trace.rows(Kind.ATTRIBUTE)
        cpu = self.trace.column("cpu")[rows].astype(np.int64)
        life = find_life(self.life_table, self.trace.column("process")[rows].astype(np.int64), rows)
        kept = set_at_arrival(self.life_table, self.outside, life, rows)
        lost = int(np.count_nonzero((self.on_cpu.running(cpu, rows) < 0) & ~kept))
        if lost:
            notes.append(f"left out: {lost} attributes that no process on a CPU set")
        return notes

    def _find_inherited(self) -> frozenset[int]:
        """Returns the rows of attribute records that only repeat what processes arrived with."""
        acts = self.acts
        is_attribute = acts.action_kind == actions.ActionKind.ATTRIBUTE
        is_inherited = set_at_arrival(self.life_table, self.outside, acts.other, acts.row) & (
            acts.other == acts.life
        )
        return frozenset(acts.row[is_attribute & is_inherited].tolist())

    def _new_slots(self) -> frozenset[int]:
        """Returns the rows of forks that led to a new maximum of live processes, which cost more."""
        rows = self.trace.rows(Kind.FORK, Kind.EXIT)
        change = np.where(self.trace.column("kind")[rows] == Kind.FORK, 1, -1)
        largest_counts = np.maximum.accumulate(np.append(0, np.cumsum(change)))
        return frozenset(rows[largest_counts[1:] > largest_counts[:-1]].tolist())

    def _find_started(self) -> frozenset[int]:
        """Returns the indices of the processes that were forked in the trace and ran."""
        lives_that_ran = np.unique(self.on_cpu.life[self.on_cpu.life >= 0])
        return frozenset(lives_that_ran[self.life_table.fork_row[lives_that_ran] >= 0].tolist())

    def _init(self) -> int:
        """Returns the index of the recorded init, which the simulator's own init replaces; −1 if none."""
        inits = np.flatnonzero(
            (self.life_table.pid == INIT_PID)
            & (self.life_table.fork_row >= 0)
            & (self.life_table.parent < 0)
        )
        return int(inits[0]) if len(inits) else -1

    def _children(self) -> dict[int, list[tuple[int, int]]]:
        """Returns each process's children, sorted by exit, as pairs: row of the exit, index of the child."""
        children: dict[int, list[tuple[int, int]]] = {}
        for child in np.argsort(self.life_table.exit_row, kind="stable").tolist():
            parent, row = int(self.life_table.parent[child]), int(self.life_table.exit_row[child])
            if parent >= 0 and row >= 0:
                children.setdefault(parent, []).append((row, child))
        return children

    def _left_children(self) -> frozenset[int]:
        """Returns the processes that ended before their children; exits of these children wake init."""
        if self.init < 0:
            return frozenset()
        rows = self.trace.rows(Kind.WAKEUP)
        rows = rows[self.trace.column("process")[rows] == self.life_table.pid[self.init]]
        waker = find_life(self.life_table, self.trace.column("first")[rows].astype(np.int64), rows)
        is_known_waker = waker >= 0
        rows, waker = rows[is_known_waker], waker[is_known_waker]
        ended = (self.life_table.exit_row[waker] >= 0) & (self.life_table.exit_row[waker] < rows)
        return frozenset(waker[ended & (self.life_table.parent[waker] != self.init)].tolist())

    def _at_windows_end(self) -> dict[int, int]:
        """Returns the used CPU time (ns) of each workload process that is running or ready at the
        window's end.
        """
        marks = self.trace.rows(Kind.MARK)
        ends = self.trace.column("first")[marks] == MarkKind.END
        if not bool((marks[ends] == self.window.end_row).any()):
            return {}
        root_pid = np.array([self.window.root_pid or 0], np.int64)
        root = int(find_life(self.life_table, root_pid, np.array([self.window.begin_row]))[0])
        steps = self.life_table.steps
        keys = (steps.life << 40) | steps.row
        all_lives = np.arange(len(self.life_table))
        last = np.searchsorted(keys, (all_lives << 40) | self.window.end_row) - 1
        computes = (
            (last >= 0) & (steps.life[last] == all_lives) & np.isin(steps.after[last], READY_STATES)
        )
        lives = np.flatnonzero(computes & descendants(self.life_table, root))
        computed = self.on_cpu.computed(lives, np.full(len(lives), self.window.end_row))
        return dict(zip(lives.tolist(), computed.tolist(), strict=True))

    def _woken_together(self) -> dict[int, tuple[str, int]]:
        """Returns the groups of processes that one process wakes in a single step.

        Maps the index of the group's first action to the group's channel and number of processes.
        Also fills `channel_of`: the channel that a process waits on, by process and row of the
        wake-up.
        """
        gives = self.acts.action_kind == ActionKind.GIVE
        follows = gives & self.acts.joined & np.append(False, gives[:-1])
        groups: dict[int, tuple[str, int]] = {}
        self.channel_of: dict[tuple[int, int], str] = {}
        starts = np.flatnonzero(gives & ~follows & np.append(follows[1:], False))
        if len(starts) > _GROUPS_MAX:
            self.notes.append("processes that were woken at once are woken one after another")
            return groups
        for number, start in enumerate(starts.tolist()):
            end = start + 1
            while end < len(follows) and follows[end]:
                end += 1
            groups[start] = (f"together.{number}", end - start)
            for act in range(start, end):
                key = (int(self.acts.other[act]), int(self.acts.row[act]))
                self.channel_of[key] = f"together.{number}"
        return groups

    def begin_ns(self, life: int) -> int:
        """Returns the time (ns) of the process's fork, or the trace's begin if the process is older."""
        row = int(self.life_table.fork_row[life])
        return int(self.trace.column("time_ns")[row]) if row >= 0 else self.trace.begin_ns

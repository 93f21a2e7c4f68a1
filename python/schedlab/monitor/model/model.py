# SPDX-License-Identifier: MIT
"""What is known of a running system, by its trace alone."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from schedlab.monitor.frames import (
    Cost,
    CpuFrame,
    Decision,
    Explanation,
    Mark,
    ModelFrame,
    Past,
    ProcessColumns,
)
from schedlab.monitor.model.drawing import Drawing
from schedlab.monitor.model.idle import IdleWhileQueued
from schedlab.monitor.model.measures import (
    Happened,
    Shares,
    add_what_goes_on,
    metrics_of,
    shares_of,
)
from schedlab.monitor.model.policy import SHARES_NUMBER, PolicyNow
from schedlab.monitor.model.processes import BLOCKED, RUNNABLE, RUNNING, Process
from schedlab.monitor.model.sliding import Recent
from schedlab.monitor.model.spells import COLUMNS, RUN, WAIT, SpellLog, Spells, Sums
from schedlab.monitor.model.story import Story
from schedlab.monitor.model.visits import Visits
from schedlab.monitor.model.waits import Scene, explain
from schedlab.monitor.system import Records, Status
from schedlab.toolchain.policies import Catalogue
from schedlab.trace.format import AttributeKind, ProcessState
from schedlab.trace.model import Header, Integers

WINDOW_NS = 10_000_000_000
PROCESSES_SHOWN = 65_536
DECISIONS_SHOWN = 100
MARKS_SHOWN = 200
"""At most this many of each kind are new in one frame: the last ones."""
_AT_ONCE = 65_536
"""So many records are taken before what they say is put away."""

_STATES = {
    RUNNABLE: ProcessState.RUNNABLE,
    RUNNING: ProcessState.RUNNING,
    BLOCKED: ProcessState.BLOCKED,
}


@dataclass(frozen=True)
class Alive:
    """A living process, as a FOUND record and those after it tell of it."""

    pid: int
    parent: int
    """0: none that the trace knows. It may have ended."""
    thread_of: int
    """The process of which it is a thread; 0: itself."""
    name: str
    group: str
    """The label that it gave itself or inherited; "": none."""
    state: ProcessState
    """RUNNABLE, RUNNING or BLOCKED."""
    reason: int
    """Why it is blocked: BlockReason; 0: it is not."""
    cpu: int
    """The CPU that runs or queues it, or that ran it last; -1: none yet."""
    level: int
    attributes: Mapping[AttributeKind, int] = field(default_factory=dict)
    """Attributes that were set for it, or for the process that forked it."""


@dataclass(frozen=True)
class InForce:
    """All that holds now, so that a trace can begin here."""

    now_ns: int
    policy: str
    """name or name:preset."""
    shares_by: int
    """The same number as `process` of POLICY: 2 tickets, 3 weight, 0 no attribute."""
    tunables: Mapping[str, int]
    """Those that were set since the policy came into force."""
    processes: tuple[Alive, ...]
    """The processes, in the order of their PIDs."""
    queues: tuple[tuple[int, ...], ...]
    """PIDs waiting at each CPU, in the order in which they came."""
    running: tuple[int, ...]
    """PID on each CPU; 0: idle."""


class Model:
    """Takes records in, and says at any time what is the case and what has happened.

    `policy` (name or name:preset) and `shares_by` (tickets, weight or equal) are as the system was
    started; the trace's POLICY and TUNABLE records rule afterwards. `catalogue`: what the policies'
    sources say of their tunables; without it, texts of decisions say less. One loop owns a model: it
    is not for several threads.
    """

    def __init__(
        self,
        header: Header,
        policy: str,
        shares_by: str,
        window_ns: int = WINDOW_NS,
        catalogue: Catalogue | None = None,
    ) -> None:
        self.header = header
        self.own_pids: set[int] = set()
        """Processes that are there for the monitor's sake. Set it as it changes."""
        self.record_cost_ns = 0.0
        """What a record takes of a CPU's time."""
        self.events = 0
        """Records so far."""
        self._policy = PolicyNow(policy, shares_by, catalogue or {}, header.tick_ns)
        self._story = Story(header.cpus, self._policy)
        self._log = SpellLog(header.cpus, self._story.slots.capacity)
        self._happened = Happened(
            turnarounds=Recent(3),
            responses=Recent(3),
            latencies=Recent(3),
            wakeups=Recent(2),
            migrations=Recent(2),
            switches=Recent(1),
            visits=Recent(2),
            idle_while_queued=Recent(3),
        )
        self._visits = Visits()
        self._idle = IdleWhileQueued()
        self._drawing = Drawing()
        self._window_ns = window_ns
        self._begin: int | None = None
        """The window's beginning; None: nothing has come yet. It never goes back."""
        self._now = 0
        self._counts: deque[tuple[int, int]] = deque()
        """Times and numbers of the records that came at once."""
        self._marks_shown = 0
        self._decisions_shown = 0

    @property
    def now_ns(self) -> int:
        """The latest time that is known."""
        return self._now

    def feed(self, records: Records) -> None:
        """The next records, in the order of their sequence. Texts may go on in the next call."""
        for begin in range(0, len(records), _AT_ONCE):
            self._take(records[begin : begin + _AT_ONCE])

    def reach(self, time_ns: int) -> None:
        """It is at least so late, though nothing may have happened since."""
        if self._begin is not None:
            self._now = max(self._now, time_ns)
            self._story.reach(self._now)

    def apply_status(self, status: Status) -> None:
        """What sched_status says of slices, priorities and tickets. What the trace says later holds."""
        by_weight = self._policy.shares_by == "weight"
        for row in status.rows:
            process = self._story.by_pid.get(row.pid)
            if process is None:
                continue
            process.slice_ns = -1 if row.slice_ns is None else row.slice_ns
            process.tickets = row.tickets
            if by_weight:
                process.weight = row.priority
            else:
                process.priority = row.priority

    def set_window(self, window_ns: int) -> None:
        """Sets how much of the past the metrics cover. A longer window fills as time goes on."""
        self._window_ns = window_ns

    def frame(self, max_runs: int = 2000) -> ModelFrame:
        """What is the case, and what is new since the last call."""
        self._settle()
        story, begin = self._story, self._begin or 0
        living = [story.by_pid[pid] for pid in sorted(story.by_pid)]
        sums = self._sums(living)
        shares = self._shares(sums)
        levels = self._levels_now(living)
        past: Past = {
            "timeline": self._drawing.take(max_runs, self._going_on(), self._policy.levels),
            "marks": self._new_marks(),
            "decisions": self._new_decisions(),
        }
        return {
            **past,
            "now_ns": self._now,
            "policy": self._policy.text,
            "shares_by": self._policy.shares_by,
            "levels": self._policy.levels,
            "levels_rise": self._policy.levels_rise,
            "shared_queue": self._policy.shared_queue,
            "cpus": self._cpus(sums, levels),
            "processes": self._columns(living[:PROCESSES_SHOWN], shares, levels),
            "metrics": metrics_of(
                self._happened, shares, sums, self.header.cpus, self.header.cycles_per_second,
                story.tells_visits, begin, self._now,
            ),
            "cost": self._cost(sums),
            "events": self.events,
            "lost": story.lost,
        }  # fmt: skip

    def history(self) -> Past:
        """All that is kept of the past: the last 60 s of what frames had of runs, more coarsely if
        there were many; 1,000 marks; 500 decisions."""
        marks = sorted([*self._story.marks, *self._story.life_marks], key=lambda mark: mark[0])
        return {
            "timeline": self._drawing.past(self._going_on(), self._policy.levels),
            "marks": [mark for _, mark in marks],
            "decisions": list(self._story.decisions),
        }

    def explain(self, pid: int) -> Explanation:
        """Why a process had to wait, in the window. KeyError: no such process lives, or did in the
        window."""
        self._settle()
        story, slots = self._story, self._story.slots
        process = story.by_pid.get(pid)
        lives = np.flatnonzero(slots.used & (slots.pid == pid))
        if process is None and len(lives) == 0:
            raise KeyError(pid)
        slot = process.slot if process else int(lives[slots.born_at[lives].argmax()])
        name = process.name if process else slots.names[slot]
        return explain(pid, name, self._waits_of(slot, process), self._scene())

    def alive(self) -> InForce:
        """The processes that live and the state that holds, so that a recording can begin here."""
        story = self._story
        return InForce(
            now_ns=self._now,
            policy=self._policy.text,
            shares_by=SHARES_NUMBER[self._policy.shares_by],
            tunables=dict(self._policy.tunables),
            processes=tuple(_alive(story.by_pid[pid]) for pid in sorted(story.by_pid)),
            queues=tuple(tuple(queue) for queue in story.queues),
            running=tuple(process.pid if process else 0 for process in story.running),
        )

    def is_sure_of_queue(self, pid: int) -> bool:
        """Has the trace said in whose queue a living process is? Else it is a guess: where it was
        forked, until it runs. KeyError: no such process lives."""
        return self._story.by_pid[pid].sure

    # --- taking in

    def _take(self, records: Records) -> None:
        times = records["time"]
        latest = int(times.max())
        if self._begin is None:
            self._begin = int(times.min())
        self._story.take(records)
        self._happened.visits.add(self._visits.take(records))
        self._now = max(self._now, latest)
        self._story.reach(self._now)
        self.events += len(records)
        self._counts.append((latest, len(records)))
        if len(self._story.spells) > COLUMNS * _AT_ONCE:
            self._settle()

    def _settle(self) -> None:
        """Puts away what the story has written down, and lets go of what the window has left."""
        story = self._story
        if self._begin is None:
            return
        spells = Spells.of(_emptied(story, "spells"))
        idle = self._idle.find(
            _emptied(story, "occupancy"),
            _emptied(story, "idle_spells"),
            story.idle_since,
            self._now,
        )
        self._drawing.add(spells, story.slots.pid, idle)
        if len(spells):
            self._log.add(spells, story.slots.capacity)
        happened = self._happened
        happened.idle_while_queued.add(array("q", idle.tobytes()))
        for name in ("turnarounds", "responses", "latencies", "wakeups", "migrations", "switches"):
            getattr(happened, name).add(_emptied(story, name))
        self._expire()

    def _expire(self) -> None:
        assert self._begin is not None
        begin = max(self._begin, self._now - self._window_ns, self._log.forgotten_until)
        self._begin = begin
        self._log.expire(begin)
        self._happened.expire(begin)
        self._story.slots.expire(begin)
        while self._counts and self._counts[0][0] < begin:
            self._counts.popleft()

    # --- telling

    def _sums(self, living: list[Process]) -> Sums:
        begin = self._begin or 0
        sums = self._log.over(begin, self._story.slots.capacity)
        add_what_goes_on(sums, living, self._now, begin, self._story.ended_at)
        return sums

    def _shares(self, sums: Sums) -> Shares:
        slots = self._story.slots
        used = self._story.attributes_used
        by = self._policy.shares_by
        if by == "equal" and AttributeKind.WEIGHT in used:
            by = "weight"
        elif by == "equal" and AttributeKind.TICKETS in used:
            by = "tickets"
        weights = {"weight": slots.weight, "tickets": slots.tickets}.get(by)
        return shares_of(
            sums, slots, weights, self.own_pids, self.header.cpus, self._begin or 0, self._now
        )

    def _cpus(self, sums: Sums, levels: dict[int, int]) -> list[CpuFrame]:
        story = self._story
        elapsed = max(self._now - (self._begin or 0), 1)
        return [
            {
                "running": process.pid if process else 0,
                "since_ns": story.since[cpu],
                "level": levels.get(process.pid, -1) if process else -1,
                "queue": [
                    (waiting.pid, levels.get(waiting.pid, -1), waiting.since)
                    for waiting in story.queues[cpu].values()
                ],
                "busy": int(sums.busy[cpu]) / elapsed,
            }
            for cpu, process in enumerate(story.running)
        ]

    def _levels_now(self, living: list[Process]) -> dict[int, int]:
        """The level at which each is served by now, by PID. Empty under a policy without levels."""
        if not self._policy.levels:
            return {}
        waiting = [process for process in living if process.state == RUNNABLE]
        standing = self._policy.standing(waiting, self._now)
        return {
            **{process.pid: process.level for process in living},
            **{process.pid: now.level for process, now in zip(waiting, standing, strict=True)},
        }

    def _columns(
        self, living: list[Process], shares: Shares, levels: dict[int, int]
    ) -> ProcessColumns:
        now = self._now
        visits = self._story.tells_visits
        slot = np.array([process.slot for process in living], np.int64)
        state = np.array([process.state for process in living], np.int8)
        waits = state == RUNNABLE
        since = np.array([process.since for process in living], np.int64)
        cpu = np.array([process.cpu for process in living], np.int64)
        ends = np.array(self._story.ended_at)[cpu]
        going_on = np.maximum(np.minimum(now, ends) - since, 0)
        run = np.array([process.run_ns for process in living], np.int64)
        waiting = np.array([process.waiting_ns for process in living], np.int64)
        wait_since = np.array([process.wait_since for process in living], np.int64)
        wait_now = np.where(waits, np.maximum(now - wait_since, 0), 0)
        return {
            "pid": [process.pid for process in living],
            "parent": [process.parent for process in living],
            "name": [process.name for process in living],
            "state": state,
            "reason": [
                process.blocked_for if process.state == BLOCKED else 0 for process in living
            ],
            "cpu": [_place(process) for process in living],
            "group": [process.label or process.name for process in living],
            "own": [process.pid in self.own_pids for process in living],
            "priority": [process.priority for process in living],
            "tickets": [process.tickets for process in living],
            "weight": [process.weight for process in living],
            "level": [levels.get(process.pid, -1) for process in living],
            "slice_left_ns": [_slice_left(process, now) for process in living],
            "run_ns": run + np.where(state == RUNNING, going_on, 0),
            "waiting_ns": waiting + wait_now,
            "wait_now_ns": wait_now,
            "selections": [process.selections if visits else process.picks for process in living],
            "share": shares.share[slot],
            "ideal": shares.ideal[slot],
        }

    def _cost(self, sums: Sums) -> Cost:
        slots = self._story.slots
        capacity_ns = max(self._now - (self._begin or 0), 1) * self.header.cpus
        own = slots.used & np.isin(slots.pid, list(self.own_pids))
        steering = int(sums.run[own].sum()) / capacity_ns
        records = sum(count for _, count in self._counts)
        tracing = records * self.record_cost_ns / capacity_ns
        return {"steering": steering, "tracing": tracing, "total": steering + tracing}

    def _going_on(self) -> Integers:
        """Rows of Timeline.runs: those that are not over."""
        story = self._story
        rows = [
            (cpu, process.pid, process.since, min(self._now, story.ended_at[cpu]), process.level, 0)
            for cpu, process in enumerate(story.running)
            if process is not None
        ]
        return np.array(rows, np.int64).reshape(-1, 6)

    def _new_marks(self) -> list[Mark]:
        """What happened to the system before what happened to processes, if it is too much."""
        story = self._story
        new = [mark for mark in story.marks if mark[0] > self._marks_shown]
        lives = [mark for mark in story.life_marks if mark[0] > self._marks_shown]
        self._marks_shown = story.mark_count
        new = new[-MARKS_SHOWN:]
        room = MARKS_SHOWN - len(new)
        new += lives[-room:] if room else []
        return [mark for _, mark in sorted(new, key=lambda mark: mark[0])]

    def _new_decisions(self) -> list[Decision]:
        story = self._story
        new = [one for one in story.decisions if one["number"] > self._decisions_shown]
        self._decisions_shown = story.decision_count
        return new[-DECISIONS_SHOWN:]

    # --- explaining

    def _waits_of(self, slot: int, process: Process | None) -> Integers:
        """Rows of CPU, why, begin, end."""
        parts = [np.empty((0, 4), np.int64)]
        for block in self._log:
            waits = block.where((block.slot == slot) & (block.kind == WAIT))
            parts.append(np.column_stack((waits.cpu, waits.detail, waits.begin, waits.end)))
        if process is not None and process.state == RUNNABLE:
            now = max(self._now, process.since)
            parts.append(np.array([[process.queue, process.why, process.since, now]], np.int64))
        return np.concatenate(parts)

    def _scene(self) -> Scene:
        story = self._story
        parts: list[list[Integers]] = [[np.empty((0, 3), np.int64)] for _ in story.running]
        for block in self._log:
            runs = block.where(block.kind == RUN)
            table = np.column_stack((runs.slot, runs.begin, runs.end)).astype(np.int64)
            for cpu in np.unique(runs.cpu).tolist():
                parts[cpu].append(table[runs.cpu == cpu])
        for cpu, process in enumerate(story.running):
            if process is not None:
                until = max(min(self._now, story.ended_at[cpu]), process.since)
                parts[cpu].append(np.array([[process.slot, process.since, until]], np.int64))
        living = {process.slot: process for process in story.by_pid.values()}

        def slot_name(slot: int) -> tuple[int, str]:
            process = living.get(slot)
            name = process.name if process else story.slots.names.get(slot, "")
            return int(story.slots.pid[slot]), name

        return Scene(
            begin=self._begin or 0,
            now=self._now,
            shared=self._policy.shared_queue,
            runs=[np.concatenate(tables) for tables in parts],
            there_since=story.started_at,
            there_until=story.ended_at,
            slot_name=slot_name,
        )


def _emptied(story: Story, name: str) -> array[int]:
    """Takes over one of the story's arrays; the story goes on with a new one."""
    rows: array[int] = getattr(story, name)
    setattr(story, name, array("q"))
    return rows


def _place(process: Process) -> int:
    return process.queue if process.state == RUNNABLE else process.cpu


def _slice_left(process: Process, now: int) -> int:
    if process.slice_ns < 0 or process.state != RUNNING:
        return process.slice_ns
    return max(process.slice_ns - (now - process.picked_at), 0)


def _alive(process: Process) -> Alive:
    return Alive(
        pid=process.pid,
        parent=process.parent,
        thread_of=process.thread_of,
        name=process.name,
        group=process.label,
        state=_STATES[process.state],
        reason=process.blocked_for if process.state == BLOCKED else 0,
        cpu=_place(process),
        level=process.level,
        attributes={AttributeKind(kind): value for kind, value in process.attributes.items()},
    )

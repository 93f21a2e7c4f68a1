# SPDX-License-Identifier: MIT
"""What is shown: frames, some times a second, as the terminal gets them.

A frame has what is the case now (processes, CPUs, metrics), whole, and what has happened since the
last frame (runs on CPUs, marks, decisions, the log). Times are nanoseconds of the system's own clock; a
PID of 0 is idle, or none. Those of a page have in place of `skipped_frames`: `back_ns`, how far before the
present they are; `whole`, true if what has happened is all that is kept up to now; and `anew`, true if the
system was begun anew (page/session/system.js). docs/monitor.md has the messages around them.
"""

from __future__ import annotations

from typing import Any, TypedDict

Column = Any
"""A numpy array or a list, of one value a process."""


class CpuFrame(TypedDict):
    """One CPU."""

    running: int
    """PID."""
    since_ns: int
    level: int
    """The level at which the policy runs it, by the policy's last word; -1: it has no levels."""
    queue: list[tuple[int, int, int]]
    """The processes that wait here: PID, level (-1: none), and since when; in the order in which they came. With a
    policy that has one queue for all CPUs, all are at CPU 0, and `shared_queue` is true."""
    busy: float
    """Part of the window in which it ran a process."""


class ProcessColumns(TypedDict):
    """All that live, one entry each, in the order of PIDs. At most 65,536."""

    pid: Column
    parent: Column
    name: Column
    state: Column
    """0 runnable, 1 running, 2 blocked."""
    reason: Column
    """Why it is blocked: BlockReason; 0: it is not."""
    cpu: Column
    """The CPU that runs or queues it, or that ran it last; -1: none yet."""
    group: Column
    own: Column
    """True: it is there for the monitor's sake."""
    priority: Column
    tickets: Column
    weight: Column
    nice: Column
    level: Column
    slice_left_ns: Column
    """-1: no limit, or not known."""
    run_ns: Column
    """Running time since its fork."""
    waiting_ns: Column
    """Time spent runnable and not running, since its fork."""
    wait_now_ns: Column
    """How long it has waited now; 0: it does not."""
    selections: Column
    share: Column
    """Its part of all CPU time that the workload's processes got in the window; 0 to 1. A process
    outside the workload, such as one of the monitor's own, has a share that is no part of that sum.
    """
    ideal: Column
    """The weighted max-min allocation in the window (docs/metrics.md); -1: not defined."""


class Metrics(TypedDict):
    """Metrics over the window, by the definitions of docs/metrics.md. None: there is nothing to
    compute one from."""

    window_ns: int
    turnaround_ns: float | None
    """Mean of processes that ended in the window."""
    response_ns: float | None
    """Mean of processes that ran for the first time in it."""
    waiting_ns: float | None
    """The mean waiting time in the window, of all processes that lived in it."""
    wakeup_median_ns: float | None
    wakeup_p99_ns: float | None
    wakeup_maximum_ns: float | None
    wakeups: int
    finished: int
    throughput_per_s: float
    fairness: float | None
    """Jain's index over share ÷ ideal share."""
    fairness_turnaround: float | None
    overhead: float | None
    """Scheduler's time ÷ (CPUs × window), idle time apart."""
    utilisation: float
    switches_per_s: float
    migrations_per_s: float
    idle_while_queued_ns: int
    """CPU time spent idle while a process waited at another CPU."""


class Cost(TypedDict):
    """What watching takes of the system's CPU time in the window: 0 to 1."""

    steering: float
    """Time that the monitor's own processes ran."""
    tracing: float
    """Records × what one takes."""
    total: float


class Timeline(TypedDict):
    """What happened on CPUs since the last frame."""

    runs: list[tuple[int, int, int, int, int, int, int]]
    """CPU, PID, begin, end, level (-1: none), how it ended: 0 goes on, 1 blocked, 2 preempted,
    3 yielded, 4 ended; and how long the process had been runnable when it began (0: not at all, or
    it goes on at another level). Runs of idle are left out; a run that goes on comes again, longer,
    with the same begin."""
    idle_while_queued: list[tuple[int, int, int]]
    """CPU, begin, end: it idled while a process waited at another CPU."""
    thinned: int
    """Runs that were put together with neighbours, since there were too many to draw. Nothing that is
    counted or measured goes by them."""


class Mark(TypedDict):
    """Something to see on every time line."""

    time_ns: int
    kind: str
    """policy, tunable, attribute, begin, end, started, ended, killed, note, lost."""
    text: str
    pid: int


class Decision(TypedDict):
    """A choice of the policy."""

    number: int
    """Its number among all decisions of this trace; there are gaps, as not all are shown."""
    time_ns: int
    cpu: int
    pid: int
    name: str
    waited: int
    """How many others were in the queue."""
    remark: int
    """Why, in the policy's own terms; `text` says it in words."""
    text: str
    candidates: list[tuple[int, int]]
    """Up to 16 of those that waited with it: PID, level or tickets."""


class Past(TypedDict):
    """What has happened."""

    timeline: Timeline
    marks: list[Mark]
    decisions: list[Decision]


class ModelFrame(Past):
    """Those parts of a Frame that the trace decides. timeline, marks and decisions: what is new
    since the frame before."""

    now_ns: int
    policy: str
    shares_by: str
    """tickets, weight, nice, groups or equal."""
    levels: bool
    """Does the policy have levels?"""
    levels_rise: bool
    """Is a higher number served first, as under mlfq? Else a lower one is."""
    shared_queue: bool
    cpus: list[CpuFrame]
    processes: ProcessColumns
    metrics: Metrics
    cost: Cost
    events: int
    """Records so far."""
    lost: int


class State(TypedDict):
    """How a system is, apart from what its trace tells."""

    system: str
    """"a", "b" …"""
    life: str
    message: str
    paused: bool
    speed: float
    """The speed of its time compared with ours, measured over the last second."""
    pace: float
    """The pace that was asked for; 0: as fast as it goes; -1: its clock is its own."""
    events_per_s: float
    """Events for each second of our time."""
    recording: str
    """The folder that is recorded into; "": nothing is recorded."""


class Frame(ModelFrame, State):
    """All of one system at one time."""

    number: int
    log: list[str]
    skipped_frames: int
    """Frames that were not drawn because there was too much to do."""


class WaitPart(TypedDict):
    """What the CPU at which a process waited did meanwhile."""

    pid: int
    """The process that ran; 0: none did."""
    name: str
    """The process's; else "(idle)", "(scheduler)" or "(unknown)"."""
    cpu: int
    duration_ns: int
    times: int


class Wait(TypedDict):
    """A wait, from the fork, the wake-up or the turn's end to the next run."""

    begin_ns: int
    """The window's, if it began before that."""
    end_ns: int
    """The end so far, if it goes on."""
    cpu: int
    """The CPU at which the process waited last."""
    why: str
    """forked, woken, preempted, slice over, yielded; found: it waited before the trace."""
    parts: list[WaitPart]


class Explanation(TypedDict):
    """Why a process had to wait for a CPU, in the window, by the rules of docs/explain.md."""

    pid: int
    name: str
    waits: list[Wait]
    """The last 50."""
    total_ns: int
    parts: list[WaitPart]
    """The parts of all waits together, the longest first. They add up to total_ns."""
    beside_idle_ns: int
    """The part of total_ns in which a CPU idled."""

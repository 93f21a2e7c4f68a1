# SPDX-License-Identifier: MIT
"""Types of frames: the state of a system as the terminal shows it, several times a second.

A frame has the complete current state (processes, CPUs, metrics) and the events since the previous
frame (runs on CPUs, marks, decisions, the log). Times are nanoseconds of the system's clock. PID 0
means idle or no process.

Frames of pages are made by page/session/system.js, from the same model. They lack `skipped_frames`.
They add `back_ns` (the frame's age), `whole` (true if the frame has all kept events) and `anew`
(true after a restart). docs/monitor.md describes the messages.
"""

from typing import Any, TypedDict

Column = Any
"""A numpy array or a list with one value per process."""


class CpuFrame(TypedDict):
    """The state of one CPU."""

    running: int
    """PID of the running process."""
    since_ns: int  # when this state began
    level: int
    """Level of the running process, from its latest level record; -1 without levels."""
    queue: list[tuple[int, int, int]]
    """Waiting processes in order of arrival: PID, level (-1: none), start of the wait (ns).

    If the policy has one queue for all CPUs, all entries are at CPU 0 and `shared_queue` is true.
    """
    busy: float
    """Fraction of the window during which the CPU ran a process."""


class ProcessColumns(TypedDict):
    """All live processes in the order of PIDs, at most 65,536."""

    pid: Column
    parent: Column
    name: Column
    state: Column
    """0 runnable, 1 running, 2 blocked."""
    reason: Column
    """Why the process is blocked (BlockReason); 0 if the process is not blocked."""
    cpu: Column
    """The CPU where the process runs, is queued, or last ran; -1 before its first run."""
    group: Column
    own: Column
    """True for processes that belong to the monitor, not to a workload."""
    priority: Column
    tickets: Column
    weight: Column
    nice: Column
    level: Column
    slice_left_ns: Column
    """-1 if unlimited or unknown."""
    run_ns: Column
    """Running time since the fork."""
    waiting_ns: Column
    """Time spent runnable but not running since the fork."""
    wait_now_ns: Column
    """Length of the current wait; 0 if the process does not wait."""
    selections: Column
    share: Column
    """Fraction (0 to 1) of all workload processes' CPU time in the window that this process used.

    Processes outside the workload have a share, too, but only the workload's shares add up to 1.
    """
    ideal: Column
    """Fair share (0 to 1) in the window: weighted max-min allocation (docs/metrics.md); -1 if undefined."""


class Metrics(TypedDict):
    """Metrics over the window, as docs/metrics.md defines them; None if there is no data."""

    window_ns: int
    turnaround_ns: float | None
    """Mean of the processes that ended in the window."""
    response_ns: float | None
    """Mean of the processes whose first run was in the window."""
    waiting_ns: float | None
    """Mean waiting time in the window, over all processes that existed in the window."""
    wakeup_median_ns: float | None
    wakeup_p99_ns: float | None
    wakeup_maximum_ns: float | None
    wakeups: int
    finished: int
    throughput_per_s: float
    fairness: float | None
    """Jain's index of share ÷ ideal share."""
    fairness_turnaround: float | None
    overhead: float | None
    """Scheduler time ÷ (CPUs × window); idle time is excluded."""
    utilisation: float
    switches_per_s: float
    migrations_per_s: float
    idle_while_queued_ns: int
    """CPU time spent idle while a process waited on another CPU."""


class Cost(TypedDict):
    """CPU time that monitoring uses, as fractions (0 to 1) of the window's CPU time."""

    steering: float
    """CPU time of the monitor's own processes in the system."""
    tracing: float
    """CPU time of writing trace records: their number × the cost of one."""
    total: float


class Timeline(TypedDict):
    """Activity of the CPUs since the last frame."""

    runs: list[tuple[int, int, int, int, int, int, int]]
    """Runs: CPU, PID, begin, end, level (-1: none), outcome, wait before the run (ns).

    Outcomes: 0 still running, 1 blocked, 2 preempted, 3 yielded, 4 ended. The wait is 0 if there
    was none, or if only the level changed. Idle runs are omitted. A run in progress appears again
    in later frames with the same begin and a later end.
    """
    idle_while_queued: list[tuple[int, int, int]]
    """Idle intervals while a process waited at another CPU: CPU, begin, end (ns)."""
    thinned: int
    """Number of runs that were merged with their neighbours, to limit the number of runs to draw.

    The metrics are computed from all runs.
    """


class Mark(TypedDict):
    """An event shown on every timeline."""

    time_ns: int
    kind: str
    """policy, tunable, attribute, begin, end, started, ended, killed, note, lost."""
    text: str
    pid: int


class Decision(TypedDict):
    """One decision of the policy: which process a CPU runs next."""

    number: int
    """Position among all decisions of the trace; only some are shown."""
    time_ns: int
    cpu: int
    pid: int
    name: str
    waited: int
    """Number of other processes in the queue when the policy decided."""
    remark: int
    """Code of the policy's annotation; `text` has its words."""
    text: str
    candidates: list[tuple[int, int]]
    """PID and level or tickets of up to 16 waiting processes."""


class Past(TypedDict):
    """Events in a span of the trace, for timelines and lists."""

    timeline: Timeline
    marks: list[Mark]
    decisions: list[Decision]


class ModelFrame(Past):
    """The part of a Frame that is computed from the trace alone.

    `timeline`, `marks` and `decisions` hold events since the previous frame.
    """

    now_ns: int
    policy: str
    shares_by: str
    """What determines fair shares: tickets, weight, nice, groups or equal."""
    levels: bool
    """True if the policy has levels."""
    levels_rise: bool
    """True if higher levels run first, as under mlfq."""
    shared_queue: bool
    cpus: list[CpuFrame]
    processes: ProcessColumns
    metrics: Metrics
    cost: Cost
    events: int
    """Number of trace records so far."""
    lost: int


class State(TypedDict):
    """The part of a Frame that is not computed from the trace."""

    system: str
    """"a", "b" …"""
    life: str
    message: str
    paused: bool
    speed: float
    """System seconds per second of the host, measured over the last second."""
    pace: float
    """Requested speed (system seconds per host second). 0: as fast as possible; -1: cannot be set."""
    events_per_s: float
    """Events per second of the host."""
    recording: str
    """Folder of the recording; empty if nothing is being recorded."""


class Frame(ModelFrame, State):
    """The complete state of one system at one time."""

    number: int
    log: list[str]
    skipped_frames: int
    """Frames dropped because drawing was too slow."""


class WaitPart(TypedDict):
    """What a process's CPU did during a part of the process's wait."""

    pid: int
    """The process that ran; 0 if none did."""
    name: str
    """The process's name, or "(idle)", "(scheduler)" or "(unknown)"."""
    cpu: int
    duration_ns: int
    times: int
    """Number of times that it did so."""


class Wait(TypedDict):
    """One wait for a CPU: from a fork, wake-up or end of a run, to the process's next run."""

    begin_ns: int
    """Not earlier than the window's begin."""
    end_ns: int
    """The current time if the wait is still in progress."""
    cpu: int
    """The CPU where the process waited last."""
    why: str
    """How the wait began: forked, woken, preempted, slice over, yielded.

    found: the process was already waiting when the trace began.
    """
    parts: list[WaitPart]


class Explanation(TypedDict):
    """Why a process waited for a CPU in the window (docs/explain.md has the rules)."""

    pid: int
    name: str
    waits: list[Wait]
    """The last 50 waits."""
    total_ns: int
    parts: list[WaitPart]
    """The parts of all waits combined, the longest first; they add up to total_ns."""
    beside_idle_ns: int
    """Part of total_ns during which another CPU was idle."""

# SPDX-License-Identifier: MIT
"""Why a process had to wait: who had the CPU in whose queue it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from schedlab.monitor.frames import Explanation, Wait, WaitPart
from schedlab.monitor.model.processes import WHY
from schedlab.trace.model import Integers

WAITS_TOLD = 50

WAIT_CPU, WAIT_WHY, WAIT_BEGIN, WAIT_END = range(4)
"""Columns of a table of one process's waits, in their order."""
RUN_SLOT, RUN_BEGIN, RUN_END = range(3)
"""Columns of a table of one CPU's runs, in their order."""


@dataclass(frozen=True)
class Scene:
    """What happened in the window, as far as an explanation needs it."""

    begin: int
    now: int
    shared: bool
    """There is one queue for all CPUs: a process that waits, waits for each of them."""
    runs: list[Integers]
    """A table for each CPU."""
    there_since: list[int]
    """The time when each CPU's story begins: before that it does not idle, but is not known."""
    there_until: list[int]
    slot_name: Callable[[int], tuple[int, str]]
    """PID and name of a slot."""


def explain(pid: int, name: str, waits: Integers, scene: Scene) -> Explanation:
    """Explains waits by the processes that ran meanwhile. All times are cut to the window."""
    waits = waits.copy()
    waits[:, WAIT_BEGIN] = np.maximum(waits[:, WAIT_BEGIN], scene.begin)
    waits = waits[waits[:, WAIT_END] > waits[:, WAIT_BEGIN]]
    idle = [_idle(scene, cpu) for cpu in range(len(scene.runs))]
    return {
        "pid": pid,
        "name": name,
        "waits": [_told(wait, scene, idle) for wait in waits[-WAITS_TOLD:]],
        "total_ns": int((waits[:, WAIT_END] - waits[:, WAIT_BEGIN]).sum()),
        "parts": _parts(waits, scene, idle),
        "idle_elsewhere_ns": _idle_elsewhere(waits, scene, idle),
    }


def _told(wait: Integers, scene: Scene, idle: list[Integers]) -> Wait:
    return {
        "begin_ns": int(wait[WAIT_BEGIN]),
        "end_ns": int(wait[WAIT_END]),
        "cpu": int(wait[WAIT_CPU]),
        "why": WHY[wait[WAIT_WHY]],
        "parts": _parts(wait[np.newaxis], scene, idle),
    }


def _parts(waits: Integers, scene: Scene, idle: list[Integers]) -> list[WaitPart]:
    """The processes that had the CPUs for which it waited, the longest first."""
    parts: list[WaitPart] = []
    for cpu, runs in enumerate(scene.runs):
        here = waits if scene.shared else waits[waits[:, WAIT_CPU] == cpu]
        if len(here) == 0:
            continue
        parts += _runners(here, runs, cpu, scene)
        nobody = _overlap(here, idle[cpu][:, 0], idle[cpu][:, 1])
        if nobody.any():
            parts.append(_part(0, "", cpu, int(nobody.sum()), int((nobody > 0).sum())))
    return sorted(parts, key=lambda part: -part["ran_ns"])


def _runners(waits: Integers, runs: Integers, cpu: int, scene: Scene) -> Iterable[WaitPart]:
    shared = _overlap(waits, runs[:, RUN_BEGIN], runs[:, RUN_END])
    slots, which = np.unique(runs[shared > 0, RUN_SLOT], return_inverse=True)
    ran = np.bincount(which, weights=shared[shared > 0], minlength=len(slots))
    count = np.bincount(which, minlength=len(slots))
    for slot, ran_ns, many in zip(slots.tolist(), ran.tolist(), count.tolist(), strict=True):
        yield _part(*scene.slot_name(slot), cpu, int(ran_ns), many)


def _part(pid: int, name: str, cpu: int, ran_ns: int, runs: int) -> WaitPart:
    return {"pid": pid, "name": name, "cpu": cpu, "ran_ns": ran_ns, "runs": runs}


def _overlap(waits: Integers, begin: Integers, end: Integers) -> Integers:
    """How much of each stretch lies in the waits, which are in order and apart from each other."""
    return _waited_until(waits, end) - _waited_until(waits, begin)


def _waited_until(waits: Integers, time: Integers) -> Integers:
    """How much of the waits lies before each time."""
    begins, ends = waits[:, WAIT_BEGIN], waits[:, WAIT_END]
    before = np.concatenate(([0], np.cumsum(ends - begins)))
    at = np.searchsorted(begins, time, side="right")
    last = np.maximum(at - 1, 0)
    # Of the wait that goes on at that time, what lies beyond it is taken off.
    beyond = np.where(at > 0, np.maximum(ends[last] - time, 0), 0)
    return before[at] - beyond


def _idle(scene: Scene, cpu: int) -> Integers:
    """Rows of begin and end in which a CPU of the window ran no process."""
    runs = scene.runs[cpu]
    first = max(scene.begin, scene.there_since[cpu])
    last = max(min(scene.now, scene.there_until[cpu]), first)
    begins = np.concatenate(([first], np.maximum(runs[:, RUN_END], first)))
    ends = np.concatenate((np.minimum(runs[:, RUN_BEGIN], last), [last]))
    return np.column_stack((begins, ends))[ends > begins]


def _idle_elsewhere(waits: Integers, scene: Scene, idle: list[Integers]) -> int:
    """The part of the waits in which a CPU other than that of the queue idled; with one queue: any
    CPU."""
    total = 0
    queues = [-1] if scene.shared else np.unique(waits[:, WAIT_CPU]).tolist()
    for queue in queues:
        here = waits if scene.shared else waits[waits[:, WAIT_CPU] == queue]
        others = _union([rows for cpu, rows in enumerate(idle) if cpu != queue])
        total += int(_overlap(here, others[:, 0], others[:, 1]).sum())
    return total


def _union(parts: list[Integers]) -> Integers:
    """Stretches that overlap or touch, as one."""
    rows = np.concatenate(parts) if parts else np.empty((0, 2), np.int64)
    if len(rows) == 0:
        return rows
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    reach = np.maximum.accumulate(rows[:, 1])
    apart = np.append(True, rows[1:, 0] > reach[:-1])
    lasts = np.append(np.flatnonzero(apart)[1:], len(rows)) - 1
    return np.column_stack((rows[apart, 0], reach[lasts]))

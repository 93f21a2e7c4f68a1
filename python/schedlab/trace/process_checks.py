# SPDX-License-Identifier: MIT
"""Checks that the state changes of each process are possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from schedlab.trace.breach import Breach, first_breach_of
from schedlab.trace.cpu_records import Mask, is_change
from schedlab.trace.errors import RecordName, RecordSource, process_name, state_name
from schedlab.trace.format import Kind, ProcessState, is_kind
from schedlab.trace.model import Columns
from schedlab.trace.steps import Steps
from schedlab.trace.timeline import EXITING, OUT_OF_SIGHT, Step

_UNKNOWN = 6
"""State of a PID before its first step."""

_STATE_COUNT = 128
_ALLOWED = np.zeros((len(Step), _STATE_COUNT), bool)
"""Which steps may follow each state."""
_ALLOWED[Step.BORN, [_UNKNOWN, ProcessState.ZOMBIE]] = True
_ALLOWED[Step.FOUND, [_UNKNOWN, OUT_OF_SIGHT]] = True
_ALLOWED[Step.UNSEEN, [ProcessState.RUNNABLE, ProcessState.BLOCKED]] = True
_ALLOWED[Step.IN, ProcessState.RUNNABLE] = True
_ALLOWED[Step.OUT, [ProcessState.RUNNING, EXITING]] = True
_ALLOWED[Step.WOKEN, ProcessState.BLOCKED] = True
_ALLOWED[Step.ENDED, ProcessState.RUNNING] = True
_FORBIDDEN = ~_ALLOWED.reshape(-1)


def process_checks(
    trace: RecordSource, steps: Steps, certain: Callable[[], int]
) -> Iterator[Breach]:
    """Yields steps in a part that may not follow the process's previous step.

    `certain` returns the number of rows that are surely complete: later rows may lack records of a
    truncated trace, and are not checked. That a process leaves the CPU where it runs is checked by
    `cpu_checks`.
    """
    if len(steps.pid) == 0:
        return
    previous_state = np.empty_like(steps.after)
    previous_state[1:] = steps.after[:-1]
    previous_state[is_change(steps.pid)] = _UNKNOWN
    is_forbidden = _FORBIDDEN[steps.step.astype(np.int16) * _STATE_COUNT + previous_state]
    is_forbidden |= _leaves_in_wrong_state(steps, previous_state)
    forbidden = np.flatnonzero(is_forbidden)
    forbidden = forbidden[steps.row[forbidden] >= steps.begin]
    if len(forbidden):
        at = int(forbidden[steps.row[forbidden].argmin()])
        if steps.row[at] < certain():
            yield Breach(int(steps.row[at]), _explain(trace, steps, at, int(previous_state[at])))


def queued_checks(columns: Columns, steps: Steps, certain: Callable[[], int]) -> Iterator[Breach]:
    """Yields QUEUED records of processes that do not exist.

    `certain`: see `process_checks`. A process may be queued while it still runs, and lose its CPU
    afterwards.
    """
    rows = np.flatnonzero(is_kind(columns.kind, Kind.QUEUED))
    if len(rows) == 0:
        return
    pid = columns.process[rows].astype(np.int64)
    last = steps.last_before(pid, rows + steps.begin)
    state = np.where(last < 0, _UNKNOWN, steps.after[last] if len(steps.pid) else _UNKNOWN)
    is_wrong = (state == _UNKNOWN) | is_kind(state, ProcessState.ZOMBIE)
    if is_wrong.any():
        is_wrong &= rows + steps.begin < certain()
    yield from first_breach_of(
        rows + steps.begin,
        is_wrong,
        lambda at: f"{process_name(int(pid[at]))} {_NOT_ALIVE_TEXTS[int(state[at])]}",
    )


def _leaves_in_wrong_state(steps: Steps, before: npt.NDArray[np.int8]) -> Mask:
    """Returns which steps leave a CPU in a wrong state: as a zombie without EXIT, or the reverse."""
    leaves_cpu = is_kind(steps.step, Step.OUT)
    as_zombie = is_kind(steps.after, ProcessState.ZOMBIE)
    alive = is_kind(steps.after, ProcessState.RUNNABLE, ProcessState.BLOCKED)
    is_wrong: Mask = leaves_cpu & ~np.where(before == EXITING, as_zombie, alive)
    return is_wrong


def _explain(trace: RecordSource, steps: Steps, at: int, before: int) -> str:
    """Returns why a process cannot take this step from its state `before`."""
    pid = int(steps.pid[at])
    if before == _UNKNOWN:
        return f"process {pid} was never forked, nor found when the trace began"
    record = RecordName.of(trace, int(steps.row[at - 1]))
    since = f"since record {record.sequence} ({record.kind_name} on CPU {record.cpu})"
    if before == EXITING:
        return f"process {pid} exited {since}; expected a switch from it as a zombie"
    if before == ProcessState.RUNNING:
        return (
            f"process {pid} runs on CPU {record.cpu} {since}; {_EXPECTATIONS[Step(steps.step[at])]}"
        )
    if before == ProcessState.ZOMBIE:
        return f"process {pid} is a zombie {since}; {_EXPECTATIONS[Step(steps.step[at])]}"
    return f"process {pid} is {state_name(before)} {since}; {_EXPECTATIONS[Step(steps.step[at])]}"


_NOT_ALIVE_TEXTS = {
    _UNKNOWN: "was never forked, nor found when the trace began",
    int(ProcessState.ZOMBIE): "is a zombie; expected a live process",
}

_EXPECTATIONS = {
    Step.BORN: "expected a free PID",
    Step.IN: "expected a runnable one",
    Step.OUT: "expected it to run here, and to leave it runnable, blocked, or a zombie after EXIT",
    Step.WOKEN: "expected a blocked one",
    Step.ENDED: "expected it to run here",
    Step.FOUND: "expected a process that is new in the trace",
    Step.UNSEEN: "expected a runnable or blocked process",
}

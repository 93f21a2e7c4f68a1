# SPDX-License-Identifier: MIT
"""Checks that the steps of each process follow its state machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from schedlab.trace.breach import Breach, first_of
from schedlab.trace.cpu_records import Mask, changes
from schedlab.trace.errors import Named, RecordName, process_name, state_name
from schedlab.trace.format import Kind, ProcessState, is_kind
from schedlab.trace.model import Columns
from schedlab.trace.steps import Steps
from schedlab.trace.timeline import EXITING, OUT_OF_SIGHT, Step

_UNKNOWN = 6
"""The state of a PID before its first step."""

_STATES = 128
_ALLOWED = np.zeros((len(Step), _STATES), bool)
"""The steps that may follow each state."""
_ALLOWED[Step.BORN, [_UNKNOWN, ProcessState.ZOMBIE]] = True
_ALLOWED[Step.FOUND, [_UNKNOWN, OUT_OF_SIGHT]] = True
_ALLOWED[Step.UNSEEN, [ProcessState.RUNNABLE, ProcessState.BLOCKED]] = True
_ALLOWED[Step.IN, ProcessState.RUNNABLE] = True
_ALLOWED[Step.OUT, [ProcessState.RUNNING, EXITING]] = True
_ALLOWED[Step.WOKEN, ProcessState.BLOCKED] = True
_ALLOWED[Step.ENDED, ProcessState.RUNNING] = True
_FORBIDDEN = ~_ALLOWED.reshape(-1)


def process_checks(trace: Named, steps: Steps, certain: Callable[[], int]) -> Iterator[Breach]:
    """Checks that each step of a part may follow the previous one. `certain`: see `queued_checks`.

    `cpu_checks` has already checked that a process leaves and exits on the CPU where it runs.
    """
    if len(steps.pid) == 0:
        return
    before = np.empty_like(steps.after)
    before[1:] = steps.after[:-1]
    before[changes(steps.pid)] = _UNKNOWN
    wrong = _FORBIDDEN[steps.step.astype(np.int16) * _STATES + before]
    wrong |= _left_wrongly(steps, before)
    bad = np.flatnonzero(wrong)
    bad = bad[steps.row[bad] >= steps.begin]
    if len(bad):
        at = int(bad[steps.row[bad].argmin()])
        if steps.row[at] < certain():
            yield Breach(int(steps.row[at]), _explain(trace, steps, at, int(before[at])))


def queued_checks(columns: Columns, steps: Steps, certain: Callable[[], int]) -> Iterator[Breach]:
    """Checks that queued processes exist. `certain` returns the first row that is not checked.

    A process may still be running when it is queued, and lose its CPU only then.
    """
    rows = np.flatnonzero(is_kind(columns.kind, Kind.QUEUED))
    if len(rows) == 0:
        return
    pid = columns.process[rows].astype(np.int64)
    last = steps.last_before(pid, rows + steps.begin)
    state = np.where(last < 0, _UNKNOWN, steps.after[last] if len(steps.pid) else _UNKNOWN)
    wrong = (state == _UNKNOWN) | is_kind(state, ProcessState.ZOMBIE)
    if wrong.any():
        wrong &= rows + steps.begin < certain()
    yield from first_of(
        rows + steps.begin,
        wrong,
        lambda at: f"{process_name(int(pid[at]))} {_NOT_ALIVE[int(state[at])]}",
    )


def _left_wrongly(steps: Steps, before: npt.NDArray[np.int8]) -> Mask:
    """Marks processes that leave their CPU in a wrong state: as a zombie without EXIT, or not as a
    zombie after EXIT.
    """
    out = is_kind(steps.step, Step.OUT)
    as_zombie = is_kind(steps.after, ProcessState.ZOMBIE)
    alive = is_kind(steps.after, ProcessState.RUNNABLE, ProcessState.BLOCKED)
    wrong: Mask = out & ~np.where(before == EXITING, as_zombie, alive)
    return wrong


def _explain(trace: Named, steps: Steps, at: int, before: int) -> str:
    pid = int(steps.pid[at])
    if before == _UNKNOWN:
        return f"process {pid} was never forked, nor found when the trace began"
    record = RecordName.of(trace, int(steps.row[at - 1]))
    since = f"since record {record.sequence} ({record.kind_name} on CPU {record.cpu})"
    if before == EXITING:
        return f"process {pid} exited {since}; expected a switch from it as a zombie"
    if before == ProcessState.RUNNING:
        return f"process {pid} runs on CPU {record.cpu} {since}; {_EXPECTED[Step(steps.step[at])]}"
    if before == ProcessState.ZOMBIE:
        return f"process {pid} is a zombie {since}; {_EXPECTED[Step(steps.step[at])]}"
    return f"process {pid} is {state_name(before)} {since}; {_EXPECTED[Step(steps.step[at])]}"


_NOT_ALIVE = {
    _UNKNOWN: "was never forked, nor found when the trace began",
    int(ProcessState.ZOMBIE): "is a zombie; expected a live process",
}

_EXPECTED = {
    Step.BORN: "expected a free PID",
    Step.IN: "expected a runnable one",
    Step.OUT: "expected it to run here, and to leave it runnable, blocked, or a zombie after EXIT",
    Step.WOKEN: "expected a blocked one",
    Step.ENDED: "expected it to run here",
    Step.FOUND: "expected a process that is new in the trace",
    Step.UNSEEN: "expected a runnable or blocked process",
}

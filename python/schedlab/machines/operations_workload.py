# SPDX-License-Identifier: MIT
"""Converts a sequence of task operations to a workload file for `./schedlab run`."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from schedlab.workload.model import ATTRIBUTES, TASKGROUP

TICK_US = 10_000
_ATTRIBUTE_NAMES = tuple(ATTRIBUTES)
"""Attribute names, in the order of their numbers in abi/trace_format.h, from 1 on."""
_IDLE_TICKS = 40
"""Ticks without operations at the end, so that a task that starves is noticed."""


@dataclass(frozen=True)
class Operation:
    """An operation of a task: `act` is "new", "wake", "set", "yield", "block", "end" or "tick".

    The number of a task is reused after the task's end.
    """

    act: str
    task: int = 0
    attribute: int = 0
    value: int = 0


@dataclass
class _Task:
    """A task of the workload file: its start (µs), and its phases so far."""

    start_us: int
    events: list[dict[str, Any]] = field(default_factory=list)
    asleep: bool = False
    """True if the task sleeps until it is woken."""
    ended: bool = False


def parse_operations(lines: list[str]) -> list[Operation]:
    """Parses the operations printed by explore/engine.c."""
    words = [line.split()[1:] for line in lines if line.startswith("act ")]
    return [
        Operation(act, int(task), int(attribute), int(value))
        for act, task, attribute, value in words
    ]


def make_workload(operations: list[Operation], description: str) -> str:
    """Returns a workload file that performs the operations. Those after the same tick are 1 µs apart."""
    tasks: list[_Task] = []
    current_tasks: dict[int, _Task] = {}
    ticks, us_since_tick = 0, 0
    for operation in operations:
        if operation.act == "tick":
            ticks, us_since_tick = ticks + 1, 0
            continue
        us_since_tick += 1
        time = ticks * TICK_US + us_since_tick
        if operation.act == "new":
            current_tasks[operation.task] = _Task(time)
            tasks.append(current_tasks[operation.task])
        else:
            _apply_operation(current_tasks[operation.task], operation, time)
    end = (ticks + _IDLE_TICKS) * TICK_US
    file = {
        "description": description,
        "global": {"duration": end / 1e6},
        "tasks": {f"task{number}": _task_json(task, end) for number, task in enumerate(tasks, 1)},
    }
    return json.dumps(file, indent=4) + "\n"


def _until(time: int) -> dict[str, str]:
    return {"until": f"{time}us"}


def _apply_operation(task: _Task, operation: Operation, time: int) -> None:
    if operation.act == "wake":
        task.events.append({"sleep": _until(time)})
        task.asleep = False
        return
    task.events.append({"run": _until(time)})
    if operation.act == "yield":
        task.events[-1]["yield"] = ""
    elif operation.act == "set":
        task.events.append(
            _attribute_member(_ATTRIBUTE_NAMES[operation.attribute - 1], operation.value)
        )
    task.asleep = operation.act == "block"
    task.ended = operation.act == "end"


def _attribute_member(name: str, number: int) -> dict[str, Any]:
    """Returns the member of a workload file that sets an attribute."""
    value: Any = f"{number}ns" if ATTRIBUTES[name].is_time else number
    if name == TASKGROUP:
        value = "/other" if number else "/"
    return {ATTRIBUTES[name].key or name: value}


def _task_json(task: _Task, end: int) -> dict[str, Any]:
    """Returns the task as an entry of a workload file that ends at `end` (µs)."""
    last_step = {"sleep": _until(end)} if task.asleep else {"run": _until(end)}
    events = [*task.events, *([] if task.ended else [last_step])]
    return {"delay": task.start_us, "loop": 1, "phases": dict(_phases(events))}


def _phases(events: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields a task's phases by name.

    A phase of the file sets attributes at its beginning, so attributes set at a phase's end move to
    the next phase.
    """
    attributes: dict[str, Any] = {}
    number = 0
    for event in events:
        if not event.keys() & {"run", "sleep"}:
            attributes |= event
            continue
        number += 1
        yield f"phase{number}", {**attributes, **event}
        attributes = {}

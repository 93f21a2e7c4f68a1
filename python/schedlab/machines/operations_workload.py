# SPDX-License-Identifier: MIT
"""Converts a sequence of task operations to a workload file for `./schedlab run`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from schedlab.workload.model import ATTRIBUTES, TASKGROUP

TICK_US = 10_000
_NAMES = tuple(ATTRIBUTES)
"""Attribute names in the order of ATTRIBUTE_… of abi/trace_format.h, from number 1."""
_AFTER_TICKS = 40
"""Idle ticks after the last operation, so that starving tasks are noticed."""


@dataclass(frozen=True)
class Act:
    """An operation of a task.

    `act` is "new", "wake", "set", "yield", "block", "end" or "tick". Task numbers are reused after
    a task's end.
    """

    act: str
    task: int = 0
    attribute: int = 0
    value: int = 0


@dataclass
class _Task:
    """A task: `start_us` is its start (µs), `events` are its phases."""

    start_us: int
    events: list[dict[str, Any]] = field(default_factory=list)
    asleep: bool = False
    ended: bool = False


def acts_of(lines: list[str]) -> list[Act]:
    """Parses the operations printed by explore/engine.c."""
    words = [line.split()[1:] for line in lines if line.startswith("act ")]
    return [
        Act(act, int(task), int(attribute), int(value)) for act, task, attribute, value in words
    ]


def workload_of(acts: list[Act], description: str) -> str:
    """Returns a workload file. Operations after the same tick are 1 µs apart."""
    tasks: list[_Task] = []
    now: dict[int, _Task] = {}
    ticks, since = 0, 0
    for act in acts:
        if act.act == "tick":
            ticks, since = ticks + 1, 0
            continue
        since += 1
        time = ticks * TICK_US + since
        if act.act == "new":
            now[act.task] = _Task(time)
            tasks.append(now[act.task])
        else:
            _do(now[act.task], act, time)
    end = (ticks + _AFTER_TICKS) * TICK_US
    file = {
        "description": description,
        "global": {"duration": end / 1e6},
        "tasks": {f"task{number}": _written(task, end) for number, task in enumerate(tasks, 1)},
    }
    return json.dumps(file, indent=4) + "\n"


def _until(time: int) -> dict[str, str]:
    return {"until": f"{time}us"}


def _do(task: _Task, act: Act, time: int) -> None:
    if act.act == "wake":
        task.events.append({"sleep": _until(time)})
        task.asleep = False
        return
    task.events.append({"run": _until(time)})
    if act.act == "yield":
        task.events[-1]["yield"] = ""
    elif act.act == "set":
        task.events.append(_attribute(_NAMES[act.attribute - 1], act.value))
    task.asleep = act.act == "block"
    task.ended = act.act == "end"


def _attribute(name: str, number: int) -> dict[str, Any]:
    value: Any = f"{number}ns" if ATTRIBUTES[name].is_time else number
    if name == TASKGROUP:
        value = "/other" if number else "/"
    return {ATTRIBUTES[name].key or name: value}


def _written(task: _Task, end: int) -> dict[str, Any]:
    last = {"sleep": _until(end)} if task.asleep else {"run": _until(end)}
    events = [*task.events, *([] if task.ended else [last])]
    return {"delay": task.start_us, "loop": 1, "phases": dict(_phases(events))}


def _phases(events: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields phases. A phase's attributes apply from its end, so they go into the next phase."""
    attributes: dict[str, Any] = {}
    number = 0
    for event in events:
        if not event.keys() & {"run", "sleep"}:
            attributes |= event
            continue
        number += 1
        yield f"phase{number}", {**attributes, **event}
        attributes = {}

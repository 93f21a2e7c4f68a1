# SPDX-License-Identifier: MIT
"""Reads what babeltrace2 prints of LTTng's kernel traces: it becomes lines as those of ftrace."""

from __future__ import annotations

import re

_LINE = re.compile(
    r"^\[(?:\d{4}-\d\d-\d\d )?(?:(\d+):(\d+):)?(\d+)\.(\d{9})\] [^{\n]*?\b"
    r"(sched_(?:switch|waking|wakeup|wakeup_new|process_fork|migrate_task)): (.*)$",
    re.MULTILINE,
)
_CPU = re.compile(r"\bcpu_id = (\d+)")
_FIELD = re.compile(r'\b(\w+) = (?:"((?:[^"\\]|\\.)*)"|\( [^()]*?: container = (-?\d+) \)|(-?\d+))')
_DAY_S = 86400
_PRIORITY_OFFSET = 100
"""LTTng counts priorities from the first one of the fair class."""
_FIELDS = {
    "sched_switch": (
        *("prev_comm", "prev_pid", "prev_prio", "prev_state"),
        *("next_comm", "next_pid", "next_prio"),
    ),
    "sched_process_fork": ("comm", "pid", "child_comm", "child_pid"),
    "sched_migrate_task": ("comm", "pid", "prio", "orig_cpu", "dest_cpu"),
}
_OF_WAKEUPS = ("comm", "pid", "prio", "target_cpu")
_PARENT = {"parent_comm": "comm", "parent_tid": "pid"}


def is_babeltrace(text: str) -> bool:
    """True if a text has an event of the scheduler as babeltrace2 prints it."""
    return bool(_LINE.search(text))


def as_ftrace(printed: str) -> str:
    """The events of the scheduler, as lines of ftrace with raw states."""
    lines: list[str] = []
    before = day = 0
    for hours, minutes, seconds, nanoseconds, what, rest in _LINE.findall(printed):
        second = int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds)
        if hours and second + _DAY_S // 2 < before:
            day += 1  # times of day begin again at midnight
        before = second
        cpu = _CPU.search(rest)
        values = {
            _PARENT.get(name, name.replace("tid", "pid")): _unescaped(text)
            if text
            else number or other
            for name, text, number, other in _FIELD.findall(rest)
        }
        names = _FIELDS.get(what, _OF_WAKEUPS)
        if cpu is None or not set(names) - {"prev_comm", "next_comm", "comm", "child_comm"} <= set(
            values
        ):
            continue
        said = " ".join(f"{name}={_told(name, values.get(name, ''))}" for name in names)
        lines.append(f"[{cpu[1]}] {day * _DAY_S + second}.{nanoseconds}: {what}: {said}\n")
    return "".join(lines)


def _told(name: str, value: str) -> str:
    return str(int(value) + _PRIORITY_OFFSET) if name.endswith("prio") else value


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text).replace("\n", " ")

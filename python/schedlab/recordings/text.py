# SPDX-License-Identifier: MIT
"""Parses the text that `perf script`, `trace-cmd report` and the kernel print.

Each event is a line: running thread, CPU, optional flags, time, event name, and the event's fields.
The fields are in the kernel's format, in the shorter format of a plugin, or raw with numeric
states.
"""

import re
from collections.abc import Callable, Iterator

from schedlab.recordings.events import (
    WAKEUPS,
    Event,
    Events,
    Fork,
    Loss,
    Move,
    Start,
    Switch,
    TimerTick,
    Wakeup,
    WakeupEnd,
)
from schedlab.recordings.states import finish

_EVENT_NAMES = (
    r"(sched_switch|sched_waking|sched_wakeup|sched_wakeup_new|sched_process_fork"
    r"|sched_migrate_task|PERF_RECORD_FORK|PERF_RECORD_LOST)\b"
)
_FLAGS = r"([^\s\d\[\]][^\s\[\]]{3,5})"
"""Flags: interrupts off, need to reschedule, in an interrupt, depth of locks."""


def _line_patterns(event_pattern: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Returns the patterns of the two forms of a line with such an event."""
    return (
        re.compile(rf"\[(\d+)\] (?: *{_FLAGS})? *(\d+)\.(\d+): +(?:\w+:)?{event_pattern}:? *(.*)"),
        re.compile(rf"-\d+ +(\d+){_FLAGS} +(\d+)\.(\d+): +{event_pattern}: +(.*)"),
    )


_LINES = _line_patterns(_EVENT_NAMES)
"""Two forms of a line: the CPU is in brackets or, in trace-cmd's latency format, joined to the
flags.

Two patterns are much faster than one for both.
"""
_TIMER_LINES = _line_patterns(r"(hrtimer_expire_entry|hrtimer_expire_exit)\b")
_TIMER = re.compile(r"hrtimer=(\S+)(?: function=(\S+))?")
_TICK_FUNCTION = re.compile(r"tick_(?:sched_timer|nohz_handler)\b")
"""Function of the tick's timer until Linux 6.9, and since then."""
_HEADER = re.compile(r"(?:\S-|[\s/]|^)(\d+)\s+(?:\([^()]*\)\s+)?$")
"""The thread in front of the CPU; perf prints −1 for none."""
_LOSS = re.compile(r"^CPU:(\d+) \[(?:LOST )?(\d*) ?EVENTS(?: DROPPED)?\]", re.MULTILINE)
_STATE = r"(0x[0-9a-f]{1,16}|[1-9]\d{0,18}|0|[^\s\d]\S*)"
"""A thread's state: letters, or a number."""
_SWITCH = (
    re.compile(
        rf"(?s)prev_comm=(.*) prev_pid=(\d+) prev_prio=(-?\d+) prev_state={_STATE}(?: ==>)?"
        r" next_comm=(.*) next_pid=(\d+) next_prio=(-?\d+)"
    ),
    re.compile(rf"(?s)(.*):(\d+) \[(-?\d+)\] {_STATE} ==> (.*):(\d+) \[(-?\d+)\]"),
)
_WAKEUP = (
    re.compile(r"(?s)comm=(.*) pid=(\d+) prio=(-?\d+)(?: success=\d)? target_cpu=(\d+)"),
    re.compile(r"(?s)(.*):(\d+) \[(-?\d+)\](?: success=\d| Success)? CPU:(\d+)"),
)
_FORK = (
    re.compile(r"(?s)(?:parent_)?comm=(.*) (?:parent_)?pid=(\d+) child_comm=(.*) child_pid=(\d+)"),
)
_MOVE = (re.compile(r"(?s)comm=(.*) pid=(\d+) prio=(-?\d+) orig_cpu=(\d+) dest_cpu=(\d+)"),)
_RECORDED_FORK = (re.compile(r"\((\d+):(\d+)\):\((-?\d+):(-?\d+)\)"),)
_RECORDED_LOSS = (re.compile(r"lost (\d+)"),)
_IN_INTERRUPT = re.compile(r"[hHsZz]")
_UNREADABLE_SHOWN = 3
_HEADER_MAX = 64
"""Maximum characters of a line before its time; a thread's name has at most 15."""
_TRACEPOINTS = (*WAKEUPS, "sched_wakeup_new", "sched_migrate_task", "sched_process_fork")
"""Tracepoints that happen in the running thread or in an interrupt.

(A switch names its own thread.)
"""
_LINE_FEEDS = 4
"""Maximum number of line feeds in an event. Events with names that contain more are not read."""

Values = tuple[str, ...]


def parse(text: str) -> Events:
    """Returns all scheduler events in a text, and ignores the rest of the text."""
    return _Parser().parse(text)


class _Parser:
    def __init__(self) -> None:
        self.collected = Events()
        self.wakeup_name = WAKEUPS[0]
        self.time_ns = 0
        """The time of the previous line."""
        self.thread = -1
        """The thread in the line's header; −1: none."""
        self.makers: dict[str, tuple[tuple[re.Pattern[str], ...], Callable[..., None]]] = {
            "sched_switch": (_SWITCH, self.switch),
            "sched_waking": (_WAKEUP, self.wakeup),
            "sched_wakeup": (_WAKEUP, self.wakeup),
            "sched_wakeup_new": (_WAKEUP, self.start),
            "sched_process_fork": (_FORK, self.fork),
            "sched_migrate_task": (_MOVE, self.move),
            "PERF_RECORD_FORK": (_RECORDED_FORK, self.recorded_fork),
            "PERF_RECORD_LOST": (_RECORDED_LOSS, self.recorded_loss),
        }

    def parse(self, text: str) -> Events:
        self.wakeup_name = next((name for name in WAKEUPS if f"{name}:" in text), WAKEUPS[0])
        if self.wakeup_name == WAKEUPS[0]:
            self.makers[WAKEUPS[1]] = (_WAKEUP, self.woken)
        losses = list(_LOSS.finditer(text))[::-1]
        for pattern in _LINES:
            for line in pattern.finditer(text):
                self.line(line)
                while losses and losses[-1].start() < line.start():
                    self.lose(losses.pop())
        for loss in reversed(losses):
            self.lose(loss)
        self.collected.events.sort(key=lambda event: event[0])
        self.forget_earlier_forks()
        self.collected.ticks = _ticks(text)
        finish(self.collected)
        return self.collected

    def forget_earlier_forks(self) -> None:
        """Removes forks that perf noted itself, which happened before tracing began."""
        events = self.collected.events
        begin = 0
        for event in events:
            if not (isinstance(event, Fork) and event.by_recorder):
                break
            begin += 1
        del events[:begin]

    def lose(self, match: re.Match[str]) -> None:
        """Adds a loss, which is printed without a time before the next event."""
        self.add(Loss(self.time_ns, int(match[1]), int(match[2] or 1)))

    def line(self, line: re.Match[str]) -> None:
        """Adds the event of a line, or counts the line as unreadable."""
        cpu, flags, seconds, fraction, event_name, rest = line.groups()
        patterns, make = self.makers[event_name]
        for words in _continued(line):
            match = next(filter(None, (pattern.match(words) for pattern in patterns)), None)
            if match:
                self.count(event_name)
                self.time_ns = _nanoseconds(seconds, fraction)
                self.thread = _thread_of(line)
                if self.thread >= 0 and event_name in _TRACEPOINTS:
                    self.collected.see(self.time_ns, int(cpu), self.thread)
                make(int(cpu), match.groups(), flags)
                return
        if len(self.collected.unreadable) < _UNREADABLE_SHOWN:
            self.collected.unreadable.append(f"{event_name}: {rest}")

    def count(self, event_name: str) -> None:
        self.collected.seen[event_name] = self.collected.seen.get(event_name, 0) + 1

    def add(self, event: Event) -> None:
        self.collected.events.append(event)

    def switch(self, cpu: int, values: Values, _flags: str | None) -> None:
        name, pid, priority, state, next_name, next_pid, next_priority = values
        previous, following = int(pid), int(next_pid)
        of_next = (following, next_name, int(next_priority))
        self.collected.add_switch(
            Switch(self.time_ns, cpu, previous, name, int(priority), state, *of_next), self.thread
        )

    def wakeup(self, cpu: int, values: Values, flags: str | None) -> None:
        name, pid, _priority, target = values
        in_interrupt = bool(flags and _IN_INTERRUPT.search(flags, 2))
        self.add(Wakeup(self.time_ns, cpu, int(pid), name, int(target), in_interrupt))

    def woken(self, cpu: int, values: Values, _flags: str | None) -> None:
        """Adds the end of a wake-up; only called if the beginning (sched_waking) is recorded, too."""
        self.add(WakeupEnd(self.time_ns, cpu, int(values[1])))

    def start(self, cpu: int, values: Values, _flags: str | None) -> None:
        self.add(Start(self.time_ns, cpu, int(values[1]), values[0], int(values[3])))

    def fork(self, cpu: int, values: Values, _flags: str | None) -> None:
        parent, child = int(values[1]), int(values[3])
        self.add(Fork(self.time_ns, cpu, parent, child))
        self.collected.mark_kernel_thread(child, parent)

    def move(self, cpu: int, values: Values, _flags: str | None) -> None:
        self.add(Move(self.time_ns, cpu, int(values[1]), int(values[3]), int(values[4])))

    def recorded_fork(self, cpu: int, values: Values, _flags: str | None) -> None:
        """Handles perf's own record of a fork; at time 0, it stands for a thread that already exists."""
        leader, thread, _, parent = map(int, values)
        if thread != leader:
            self.collected.leader[thread] = leader
        if self.time_ns:
            self.add(Fork(self.time_ns, cpu, parent, thread, by_recorder=True))
        self.collected.mark_kernel_thread(thread, parent)

    def recorded_loss(self, cpu: int, values: Values, _flags: str | None) -> None:
        self.add(Loss(self.time_ns, cpu, int(values[0])))


def _ticks(text: str) -> list[TimerTick]:
    """Returns the runs of the tick's timer, in chronological order."""
    ticks = []
    for pattern in _TIMER_LINES if "hrtimer_expire_exit" in text else ():
        pending: dict[str, tuple[str, int]] = {}
        for cpu, _flags, seconds, fraction, _what, rest in pattern.findall(text):
            match = _TIMER.match(rest)
            time_ns = _nanoseconds(seconds, fraction)
            timer, begin_ns = pending.pop(cpu, ("", 0))
            if match and match[2]:
                if _TICK_FUNCTION.match(match[2]):
                    pending[cpu] = match[1], time_ns
            elif match and match[1] == timer:
                ticks.append(TimerTick(begin_ns, int(cpu), time_ns - begin_ns))
    return sorted(ticks)


def _nanoseconds(seconds: str, fraction: str) -> int:
    return int(seconds) * 1_000_000_000 + int(fraction.ljust(9, "0")[:9])


def _thread_of(line: re.Match[str]) -> int:
    """Returns the thread in the header of a line; −1 if there is none."""
    if line[0].startswith("-"):
        return int(line[0][1:].split(maxsplit=1)[0])
    text, end = line.string, line.start()
    header = _HEADER.search(text, max(text.rfind("\n", 0, end) + 1, end - _HEADER_MAX), end)
    return int(header[1]) if header else -1


def _continued(line: re.Match[str]) -> Iterator[str]:
    """Yields the possible texts of an event: the rest of its line, and that with the following
    lines.

    A thread's name may contain line feeds.
    """
    yield line[6]
    end = line.end()
    for _ in range(_LINE_FEEDS):
        following = line.string.find("\n", end + 1)
        end = following if following >= 0 else len(line.string)
        yield line.string[line.start(6) : end]


_LINE = re.compile(
    r"^\[(?:\d{4}-\d\d-\d\d )?(?:(\d+):(\d+):)?(\d+)\.(\d{9})\] [^{\n]*?\b"
    r"(sched_(?:switch|waking|wakeup|wakeup_new|process_fork|migrate_task)): (.*)$",
    re.MULTILINE,
)
_CPU = re.compile(r"\bcpu_id = (\d+)")
_FIELD = re.compile(r'\b(\w+) = (?:"((?:[^"\\]|\\.)*)"|\( [^()]*?: container = (-?\d+) \)|(-?\d+))')
_DAY_S = 86400
_PRIORITY_OFFSET = 100
"""Linux's priority is LTTng's priority plus this number."""
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
    """Returns whether a text has a scheduler event in babeltrace2's format."""
    return bool(_LINE.search(text))


def as_ftrace(printed: str) -> str:
    """Returns the scheduler events of babeltrace2's text as lines of ftrace, with numeric states."""
    lines: list[str] = []
    last_second = day = 0
    for hours, minutes, seconds, nanoseconds, event, rest in _LINE.findall(printed):
        second = int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds)
        if hours and second + _DAY_S // 2 < last_second:
            day += 1  # times of day start again at midnight
        last_second = second
        cpu = _CPU.search(rest)
        values = {
            _PARENT.get(name, name.replace("tid", "pid")): _unescaped(text)
            if text
            else number or other
            for name, text, number, other in _FIELD.findall(rest)
        }
        names = _FIELDS.get(event, _OF_WAKEUPS)
        if cpu is None or not set(names) - {"prev_comm", "next_comm", "comm", "child_comm"} <= set(
            values
        ):
            continue
        arguments = " ".join(
            f"{name}={_argument_text(name, values.get(name, ''))}" for name in names
        )
        lines.append(f"[{cpu[1]}] {day * _DAY_S + second}.{nanoseconds}: {event}: {arguments}\n")
    return "".join(lines)


def _argument_text(name: str, value: str) -> str:
    return str(int(value) + _PRIORITY_OFFSET) if name.endswith("prio") else value


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text).replace("\n", " ")

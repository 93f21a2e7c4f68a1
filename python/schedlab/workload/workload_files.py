# SPDX-License-Identifier: MIT
"""Workloads as files: JSON that follows rt-app's (docs/workload-files.md), for the simulator.

`read` checks a file and returns a WorkloadFile, which knows its text in the simulator's form
(docs/simulator.md) for each seed and length of a tick.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TypeGuard

from schedlab.errors import WrongUsage
from schedlab.files.json_lines import JsonError, Node, Object, Value, parse
from schedlab.workload.changes import NOT_OF_THE_FILE, Change, changed, checked
from schedlab.workload.model import (
    ATTRIBUTES,
    ROOT,
    Arrivals,
    AwaitAll,
    Drawn,
    Fork,
    Item,
    Meet,
    Starter,
    Step,
    Task,
    Time,
    WorkloadFile,
    forks,
    looped,
)
from schedlab.workload.text import length

SUFFIX = ".json"
GROUP_MAX = 8
"""Characters; a mark of the trace holds no more."""
NAME_MAX = 26
"""Characters; the simulator's names have 31, of which a few say what is named."""
COUNT_MAX = 2**32 - 1
NOTE_MAX = 2**63 - 1
PIDS_MAX = 2**31 - 10
INSTANCES_MAX = 1_000_000
ARRIVALS_MAX = 10**17
"""Nanoseconds, three years, that arrivals may go on, on the mean, at a tick of a second."""
NANOSECONDS_MAX = 10**18
LINES_MAX = 2_000_000
"""The most lines of a text in the simulator's form: random draws make it long."""
TIMERS_MAX = 8
"""A process has; sim/simulator.h."""

_NAME = re.compile(rf"[A-Za-z0-9_.+/:-]{{1,{NAME_MAX}}}")
_EVENT = re.compile(r"([a-z]+)\d*")
_TIME = re.compile(r"(\d{1,18})(ns|us|ms|s|ticks?)")
_PARTS_OF_TICKS = re.compile(r"(\d{1,10}\.\d{1,9})ticks?")
_NANOSECONDS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}

PRIORITIES_STAY = "locks do not pass priorities on"
NOT_BEHAVIOUR = {
    **dict.fromkeys(("logdir", "log_basename", "log_size", "gnuplot", "ftrace"), "a log of rt-app"),
    "cumulative_slack": "a log of rt-app",
    "calibration": "a run event's time is exact here",
    "lock_pages": "there is no memory here",
    "io_device": "there are no devices here",
    "mem_buffer_size": "there is no memory here",
}
"""Keys of `global` that do not change what tasks do, and why. The reader says so."""

REFUSED = {
    "mem": "memory is not modelled; say `run` with the time that it takes",
    "iorun": "devices are not modelled; say `run` and `sleep` with the times that it takes",
    "policy": "all processes have the policy of the machine: ./schedlab run --policy",
    **dict.fromkeys(
        ("dl-runtime", "dl-period", "dl-deadline", "period", "deadline"),
        "there are no deadlines; `timer` gives a period",
    ),
    "cpus": "processes have no affinity",
    **dict.fromkeys(("util_min", "util_max"), "CPUs have one speed"),
    "membind_nodes": "memory is not modelled",
    "taskgroup": "there are no groups of processes for the policy",
}
"""rt-app's keys that would change what happens and cannot be had."""


def is_workload_file(workload: str) -> bool:
    """Rather than a program and its options: they do not end so."""
    return workload.strip().endswith(SUFFIX)


def read(path: Path, changes: Iterable[Change] = ()) -> WorkloadFile:
    """Reads a workload file with other values, if any: (("tasks.cpu.instance", "40"), …).
    WrongUsage says what is wrong in the file or in a change, and where.

    WrongUsage says what is wrong in the file or in a change, and where.
    """
    try:
        content = path.read_bytes()
        text = content.decode()
    except OSError as error:
        raise WrongUsage(f"--workload {path}: it cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise WrongUsage(f"--workload {path}: expected UTF-8: {error.reason}") from None
    try:
        wanted = checked(changes)
        top = changed(parse(text), wanted)
        file = _Reader(top, hashlib.sha256(content).hexdigest(), wanted).file()
        return replace(file, source=text)
    except JsonError as error:
        place = f"{path}, --with" if error.line == NOT_OF_THE_FILE else f"{path}:{error.line}"
        raise WrongUsage(f"{place}: {error}") from None
    except ValueError as error:
        raise WrongUsage(f"--with {error}") from None


def wrong(node: Node, expected: str) -> JsonError:
    """The error that says what stands there, and what was expected."""
    place = f"{node.path}: " if node.path else ""
    return JsonError(node.line, f"{place}{_shown(node)}: expected {expected}")


def refused(node: Node, why: str) -> JsonError:
    return JsonError(node.line, f"{node.path}: it cannot be had here: {why}")


def _shown(node: Node) -> str:
    if isinstance(node.value, Object):
        return "an object"
    if isinstance(node.value, tuple):
        return "an array"
    return json.dumps(node.value, ensure_ascii=False)[:40]


# --- values


def members(node: Node, expected: str) -> tuple[tuple[str, Node], ...]:
    """The members of an object."""
    if not isinstance(node.value, Object):
        raise wrong(node, expected)
    return node.value.members


def by_key(node: Node, expected: str, keys: tuple[str, ...]) -> dict[str, Node]:
    """The members of an object that has these keys at most, each once."""
    found: dict[str, Node] = {}
    for key, value in members(node, expected):
        if key not in keys:
            raise JsonError(value.line, f"{value.path}: unknown: expected {', '.join(keys)}")
        if key in found:
            raise JsonError(value.line, f"{value.path}: it is given twice: expected once")
        found[key] = value
    return found


def whole(node: Node, least: int, most: int, expected: str | None = None) -> int:
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise wrong(node, expected or f"a whole number from {least} to {most}")
    return value


def is_number(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def time(node: Node) -> Time:
    """A number of microseconds, as rt-app's; or, ours, a text with a unit."""
    value = node.value
    if isinstance(value, str) and (match := _TIME.fullmatch(value)):
        in_ticks = match[2].startswith("tick")
        result = Time(int(match[1]) * _NANOSECONDS.get(match[2], 1), in_ticks)
        if result.number <= (COUNT_MAX if in_ticks else NANOSECONDS_MAX):
            return result
    if isinstance(value, str) and (match := _PARTS_OF_TICKS.fullmatch(value)):
        parts = Fraction(match[1])
        if parts <= COUNT_MAX:
            return Time(parts, in_ticks=True)
    if is_number(value) and 0 <= value <= NANOSECONDS_MAX // 1000:
        return Time(round(value * 1000))
    raise wrong(node, 'a time: a number of microseconds, or a text such as "3ms" or "5ticks"')


def drawn(node: Node) -> Time | Drawn:
    """A time; or, ours, an object that says between which times it is drawn at random."""
    if not isinstance(node.value, Object):
        return time(node)
    found = by_key(node, _DRAWN, ("from", "to", "below", "step"))
    if ("to" in found) == ("below" in found):
        raise wrong(node, f"{_DRAWN}, or with `below` in place of `to`")
    end = found.get("to") or found["below"]
    last = time(end)
    first = time(found["from"]) if "from" in found else Time(0, last.in_ticks)
    step = time(found["step"]) if "step" in found else Time(1)
    if step.number == 0:
        raise wrong(found["step"], "a step longer than 0")
    if first.in_ticks == last.in_ticks and first.number > last.number:
        raise wrong(end, "a time that is not before `from`")
    return Drawn(first, last, step, end_counts="to" in found)


_DRAWN = 'a time, or an object such as {"from": 0, "to": "1tick", "step": "10ns"}'


def seconds(node: Node) -> int | None:
    """Nanoseconds of rt-app's `duration`; None: until all tasks have ended."""
    value = node.value
    if is_number(value) and value == -1:
        return None
    if is_number(value) and 0 < value <= NANOSECONDS_MAX // 10**9:
        return round(value * 10**9)
    raise wrong(node, "-1, which is until all tasks have ended, or a number of seconds")


def name(node: Node, what: str) -> str:
    if not isinstance(node.value, str) or not _NAME.fullmatch(node.value):
        raise wrong(node, f"{what}: {_NAME_WORDS}")
    return node.value


_NAME_WORDS = f"1 to {NAME_MAX} letters, digits and _ . + / : -"


def rounds(node: Node | None, standard: int) -> float:
    """rt-app's `loop`: -1 is for ever."""
    if node is None:
        number = standard
    elif node.value == 0:
        raise wrong(node, "-1, which is for ever, or a number from 1 on")
    else:
        number = whole(node, -1, COUNT_MAX, "-1, which is for ever, or a number from 1 on")
    return math.inf if number == -1 else number


# --- the file


class _Reader:
    """Reads one file."""

    def __init__(self, node: Node, sha256: str, changes: tuple[Change, ...]) -> None:
        self.sha256 = sha256
        self.changes = changes
        self.top = by_key(
            node,
            "an object with `tasks`",
            ("description", "global", "starter", "tasks", "resources"),
        )
        if "tasks" not in self.top:
            raise wrong(node, "an object with `tasks`")
        self.channels: dict[str, int] = {}
        self.notes: list[str] = []
        self.barriers: dict[str, Node] = {}
        """A place of each task at which it meets others."""

    def file(self) -> WorkloadFile:
        if "description" in self.top and not isinstance(self.top["description"].value, str):
            raise wrong(self.top["description"], "a text")
        if "resources" in self.top:
            self.note(self.top["resources"], "what is named in events is there")
        duration = self.duration()
        found = members(self.top["tasks"], "an object whose keys are the names of tasks")
        if not found:
            raise wrong(self.top["tasks"], "at least one task in it")
        self.check_names(found)
        names = tuple(key for key, _ in found)
        tasks = tuple(_TaskReader(self, key, node, names).task() for key, node in found)
        starter = self.starter(tasks)
        self.check_groups(found, tasks)
        self.check_barriers(tasks)
        file = WorkloadFile(
            self.sha256,
            self.changes,
            duration,
            tasks,
            starter,
            self.channels,
            tuple(self.notes),
        )
        self.check_size(file)
        return file

    def starter(self, tasks: tuple[Task, ...]) -> Starter | None:
        """None: the file does not say what the first process does."""
        if "starter" not in self.top:
            if not any(task.instances for task in tasks):
                raise wrong(self.top["tasks"], "at least one task with an `instance` other than 0")
            return None
        if "global" in self.top and self.duration() is not None:
            raise JsonError(
                self.top["global"].line,
                "global.duration: expected none: it is the `starter` that ends the run",
            )
        return _TaskReader(
            self, ROOT, self.top["starter"], tuple(task.name for task in tasks), tasks
        ).starter()

    def check_size(self, file: WorkloadFile) -> None:
        """It must come to an end of being written, and its processes to an end of being counted."""
        if file.total() > PIDS_MAX and not math.isinf(file.total()):
            raise wrong(self.top["tasks"], f"at most {PIDS_MAX} processes in all, forked ones too")
        lines = length(file)
        if math.isinf(lines):
            raise wrong(
                self.top["tasks"],
                "a `loop` with an end wherever a time is drawn at random: each is drawn beforehand",
            )
        if lines > LINES_MAX:
            raise wrong(
                self.top["tasks"],
                f"fewer times drawn at random: each process has its own steps, here {lines:.0f},"
                f" and at most {LINES_MAX} are possible",
            )

    def note(self, node: Node, why: str) -> None:
        self.notes.append(f"line {node.line}: {node.path} has no effect: {why}")

    def duration(self) -> int | None:
        """Nanoseconds; None: until all tasks have ended."""
        if "global" not in self.top:
            return None
        known = ("duration", "default_policy", "pi_enabled", *NOT_BEHAVIOUR)
        found = by_key(self.top["global"], "an object", known)
        for key, node in found.items():
            if key in NOT_BEHAVIOUR:
                self.note(node, NOT_BEHAVIOUR[key])
        if "default_policy" in found:
            if found["default_policy"].value != "SCHED_OTHER":
                raise refused(found["default_policy"], REFUSED["policy"])
            self.note(found["default_policy"], REFUSED["policy"])
        if "pi_enabled" in found:
            if found["pi_enabled"].value is not False:
                raise refused(found["pi_enabled"], PRIORITIES_STAY)
            self.note(found["pi_enabled"], PRIORITIES_STAY)
        return seconds(found["duration"]) if "duration" in found else None

    def check_names(self, found: tuple[tuple[str, Node], ...]) -> None:
        seen: set[str] = set()
        for key, node in found:
            if not _NAME.fullmatch(key):
                raise JsonError(node.line, f"{node.path}: expected a name of {_NAME_WORDS}")
            if key == ROOT:
                raise JsonError(
                    node.line, f"{node.path}: expected another name: {ROOT} starts the tasks"
                )
            if key in seen:
                raise JsonError(node.line, f"{node.path}: there are two tasks of this name")
            seen.add(key)

    def check_groups(self, found: tuple[tuple[str, Node], ...], tasks: tuple[Task, ...]) -> None:
        """A name that was cut off may not be taken for another one."""
        for (_, node), task in zip(found, tasks, strict=True):
            others = [other for other in tasks if other.group == task.group and other is not task]
            cut = len(task.name) > GROUP_MAX and task.name.startswith(task.group)
            if cut and others:
                raise JsonError(
                    node.line,
                    f"{node.path}: the first {GROUP_MAX} characters name the group of"
                    f" {others[0].name} too: expected a `group` of its own",
                )

    def check_barriers(self, tasks: tuple[Task, ...]) -> None:
        """Checks barriers as rt-app does: it must be known how many tasks will come."""
        forked = {each for task in tasks for each in forks(task.body)}
        for task, node in self.barriers.items():
            if task in forked:
                raise wrong(
                    node,
                    f"no barrier in {task}: it is forked, so it is unknown how many will come",
                )


TASK_KEYS = ("instance", "delay", "arrivals", "group", "phases", "loop", *ATTRIBUTES)
STARTER_KEYS = ("delay", "phases", "loop", *ATTRIBUTES)
PHASE_KEYS = ("loop", *ATTRIBUTES)


class _TaskReader:
    """Reads one task, or the starter."""

    def __init__(
        self,
        file: _Reader,
        key: str,
        node: Node,
        tasks: tuple[str, ...],
        startable: tuple[Task, ...] = (),
    ) -> None:
        self.file = file
        self.name = key
        self.node = node
        self.tasks = tasks
        self.startable = {task.name: task for task in startable}
        """The tasks that the starter can start: all of them."""
        self.timers: dict[str, int] = {}
        """Its own: their numbers."""
        self.barriers: set[str] = set()
        self.events: dict[str, Callable[[Node], tuple[Item, ...]]] = {
            "run": lambda node: (self.lasting("run", node),),
            "runtime": lambda node: (self.lasting("run", node),),
            "sleep": lambda node: (self.lasting("sleep", node),),
            "timer": self.timer,
            "lock": lambda node: (Step(f"take {self.lock(node)}"),),
            "unlock": lambda node: (Step(f"give {self.lock(node)}"),),
            "wait": self.wait,
            "signal": lambda node: (Step(f"give {self.condition(node)} waiting"),),
            "broad": lambda node: (Step(f"give {self.condition(node)} all"),),
            "sync": self.sync,
            "barrier": self.barrier,
            "suspend": self.suspend,
            "resume": self.resume,
            "yield": self.give_way,
            "fork": self.fork,
            "await": self.wait_for_children,
            "take": lambda node: (Step(f"take {self.things(node)}"),),
            "give": lambda node: (Step(f"give {self.things(node)}"),),
            "mark": self.mark,
            "call": lambda node: looped(whole(node, 1, COUNT_MAX), (CALL,)),
            "exit": lambda node: (Step(f"exit {whole(node, 0, 255)}"),),
        }
        if startable:
            self.events["start"] = self.start

    def task(self) -> Task:
        properties, body = self.whole(TASK_KEYS, standard=-1)
        if "starter" in self.file.top:
            for key in {"delay", "arrivals"} & properties.keys():
                raise JsonError(
                    properties[key].line,
                    f"{properties[key].path}: expected none: it is the `starter` that starts it",
                )
        return Task(
            name=self.name,
            group=self.group(properties.get("group")),
            instances=self.instances(properties.get("instance")),
            delay=time(properties["delay"]) if "delay" in properties else Time(0),
            arrivals=self.arrivals(properties.get("arrivals"), properties.get("instance")),
            attributes=attributes(properties),
            body=body,
        )

    def starter(self) -> Starter:
        properties, body = self.whole(STARTER_KEYS, standard=1)
        delay = time(properties["delay"]) if "delay" in properties else Time(0)
        return Starter(delay, attributes(properties), body)

    def whole(
        self, keys: tuple[str, ...], standard: int
    ) -> tuple[dict[str, Node], tuple[Item, ...]]:
        """Its properties, and what a process of it does. `standard`: its `loop`."""
        properties, events = self.split(self.node, keys)
        phases = properties.get("phases")
        if phases and events:
            raise JsonError(
                events[0][1].line,
                f"{events[0][1].path}: expected it within a phase: the task has `phases`",
            )
        inner = self.phases(phases) if phases else self.sequence(self.node, events)
        return properties, looped(rounds(properties.get("loop"), standard), inner)

    def split(
        self, node: Node, keys: tuple[str, ...]
    ) -> tuple[dict[str, Node], list[tuple[str, Node]]]:
        """Properties, each once; and events, as they come."""
        properties: dict[str, Node] = {}
        events: list[tuple[str, Node]] = []
        for key, value in members(node, "an object"):
            event = _EVENT.fullmatch(key)
            if key in keys and key not in properties:
                properties[key] = value
            elif key in keys:
                raise JsonError(value.line, f"{value.path}: it is given twice: expected once")
            elif event and event[1] in self.events:
                events.append((event[1], value))
            elif key in REFUSED or (event and event[1] in REFUSED):
                raise refused(value, REFUSED.get(key) or REFUSED[event[1] if event else key])
            else:
                known = ", ".join((*keys, *self.events))
                raise JsonError(value.line, f"{value.path}: unknown: expected one of {known}")
        return properties, events

    def phases(self, node: Node) -> tuple[Item, ...]:
        items: list[Item] = []
        found = members(node, "an object whose keys are the names of phases")
        if not found:
            raise wrong(node, "at least one phase in it")
        for _, phase in found:
            properties, events = self.split(phase, PHASE_KEYS)
            items += [Step(f"{key} {value}") for key, value in attributes(properties).items()]
            items += looped(rounds(properties.get("loop"), 1), self.sequence(phase, events))
        return tuple(items)

    def sequence(self, node: Node, events: list[tuple[str, Node]]) -> tuple[Item, ...]:
        if not events:
            raise wrong(node, "at least one event in it, such as `run`")
        return tuple(item for event, value in events for item in self.events[event](value))

    # --- properties

    def instances(self, node: Node | None) -> int:
        return 1 if node is None else whole(node, 0, INSTANCES_MAX)

    def group(self, node: Node | None) -> str:
        if node is None:
            return self.name[:GROUP_MAX]
        label = name(node, f"a group of at most {GROUP_MAX} characters")
        if len(label) > GROUP_MAX:
            raise wrong(node, f"a group of at most {GROUP_MAX} characters")
        return label

    def arrivals(self, node: Node | None, instances: Node | None) -> Arrivals | None:
        if node is None:
            return None
        expected = 'an object such as {"distribution": "exponential", "mean": 1000}'
        found = by_key(node, expected, ("distribution", "mean"))
        if len(found) < 2:
            raise wrong(node, expected)
        distribution = found["distribution"].value
        if distribution not in ("uniform", "exponential"):
            raise wrong(found["distribution"], '"uniform" or "exponential"')
        mean = time(found["mean"])
        if mean.nanoseconds(10**9) * self.instances(instances) > ARRIVALS_MAX:
            raise wrong(found["mean"], "a shorter time: arrivals would go on for years")
        return Arrivals(str(distribution), mean)

    # --- events

    def channel(self, kind: str, label: str, count: int) -> str:
        channel = f"{kind}:{label}"
        self.file.channels[channel] = count
        return channel

    def lock(self, node: Node) -> str:
        return self.channel("lock", name(node, "the name of a lock"), 1)

    def condition(self, node: Node) -> str:
        return self.channel("cond", name(node, "the name of what is waited for"), 0)

    def things(self, node: Node) -> str:
        """A channel, which is empty at first."""
        return self.channel("of", name(node, "the name of what is given and taken"), 0)

    def lasting(self, what: str, node: Node) -> Step:
        """The step for `run` and `sleep`: for so long, or until then."""
        if isinstance(node.value, Object) and [key for key, _ in node.value.members] == ["until"]:
            return Step(f"{what} until", time(node.value.members[0][1]))
        return Step(what, drawn(node))

    def timer(self, node: Node) -> tuple[Item, ...]:
        found = by_key(node, _TIMER, ("ref", "period", "mode"))
        if "ref" not in found or "period" not in found:
            raise wrong(node, _TIMER)
        mode = found["mode"].value if "mode" in found else "relative"
        if mode not in ("relative", "absolute"):
            raise wrong(found["mode"], '"relative" or "absolute"')
        period = time(found["period"])
        if period.number == 0:
            raise wrong(found["period"], "a period longer than 0")
        absolute = "absolute" if mode == "absolute" else ""
        return (Step(f"timer {self.timer_name(found['ref'])}", period, absolute),)

    def timer_name(self, node: Node) -> str:
        """The number of one of its own, or a name that all share."""
        reference = name(node, "the name of a timer")
        if not reference.startswith("unique"):
            return f"time:{reference}"
        if self.timers.setdefault(reference, len(self.timers)) >= TIMERS_MAX:
            raise wrong(node, f"at most {TIMERS_MAX} timers of its own in a task")
        return str(self.timers[reference])

    def barrier(self, node: Node) -> tuple[Item, ...]:
        label = name(node, "the name of a barrier")
        if label in self.barriers:
            raise wrong(node, "another name: the task meets others at a barrier of this one")
        self.barriers.add(label)
        self.file.barriers[self.name] = node
        return (Meet(self.channel("meet", label, 0)),)

    def wait_objects(self, node: Node) -> tuple[str, str]:
        found = by_key(node, _WAIT, ("ref", "mutex"))
        if len(found) < 2:
            raise wrong(node, _WAIT)
        return self.condition(found["ref"]), self.lock(found["mutex"])

    def wait(self, node: Node) -> tuple[Item, ...]:
        condition, lock = self.wait_objects(node)
        return (Step(f"take {condition} releasing {lock}"), Step(f"take {lock}"))

    def sync(self, node: Node) -> tuple[Item, ...]:
        condition, lock = self.wait_objects(node)
        own = (Step(f"take {lock}"), Step(f"give {condition} waiting"))
        return (*own, *self.wait(node), Step(f"give {lock}"))

    def suspend(self, node: Node) -> tuple[Item, ...]:
        if node.value not in ("", self.name):
            raise wrong(node, f'"" or "{self.name}": a task suspends itself')
        return (Step(f"take {self.channel('task', self.name, 0)}"),)

    def resume(self, node: Node) -> tuple[Item, ...]:
        return (Step(f"give {self.channel('task', self.other_task(node), 0)} all"),)

    def give_way(self, node: Node) -> tuple[Item, ...]:
        if not isinstance(node.value, str):
            raise wrong(node, 'a text, which may be ""')
        return (Step("yield"),)

    def fork(self, node: Node) -> tuple[Item, ...]:
        return (Fork(self.other_task(node)),)

    def start(self, node: Node) -> tuple[Item, ...]:
        """All instances of a task, and before each what the starter does."""
        if not isinstance(node.value, Object):
            return self.instances_of(self.other_task(node), ())
        properties, events = self.split(node, ("task",))
        if "task" not in properties:
            raise wrong(node, _START)
        before = (item for event, value in events for item in self.events[event](value))
        return self.instances_of(self.other_task(properties["task"]), tuple(before))

    def instances_of(self, task: str, before: tuple[Item, ...]) -> tuple[Item, ...]:
        return looped(self.startable[task].instances, (*before, Fork(task)))

    def wait_for_children(self, node: Node) -> tuple[Item, ...]:
        if node.value == "all":
            return (AwaitAll(),)
        count = whole(node, 1, COUNT_MAX, '"all", or a number of children')
        return looped(count, (Step("wait"),))

    def mark(self, node: Node) -> tuple[Item, ...]:
        if node.value in ("begin", "end"):
            return (Step(f"mark {node.value}"),)
        return (Step(f"mark note {whole(node, 0, NOTE_MAX, _MARK)}"),)

    def other_task(self, node: Node) -> str:
        if node.value not in self.tasks:
            raise wrong(node, f"the name of a task: {', '.join(self.tasks)}")
        return str(node.value)


CALL = Step("sleep until", Time(0))
"""What the kernel answers at once: it is over."""
_TIMER = 'an object such as {"ref": "unique", "period": 10000}'
_START = 'the name of a task, or an object such as {"task": "cpu", "run": 100}'
_MARK = '"begin" or "end" of what is measured, or a number from 0 on, which is noted'
_WAIT = 'an object such as {"ref": "condition", "mutex": "lock"}'


def attributes(properties: Mapping[str, Node]) -> dict[str, int]:
    return {
        key: whole(properties[key], least, most)
        for key, (least, most, _, _) in ATTRIBUTES.items()
        if key in properties
    }

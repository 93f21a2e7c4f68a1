# SPDX-License-Identifier: MIT
"""Reads a task of a workload file, or its starter: properties, phases and events."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from schedlab.base.files.json_lines import JsonError, Node, Object
from schedlab.workload.distributions import IntegerDistribution
from schedlab.workload.groups import Groups
from schedlab.workload.model import (
    ALL_WORK,
    ATTRIBUTES,
    GIVEN,
    GIVEN_KEYS,
    TASKGROUP,
    Arrivals,
    AwaitAll,
    Device,
    Fork,
    Item,
    Loop,
    Meet,
    Starter,
    Step,
    Task,
    everything,
    looped,
)
from schedlab.workload.times import Time
from schedlab.workload.values import (
    COUNT_MAX,
    NAME,
    NANOSECONDS_MAX,
    Names,
    Notes,
    attributes,
    by_key,
    distribution,
    drawn,
    integer,
    members,
    number,
    rounds,
    time,
    times,
    wrong,
)

GROUP_MAX = 8
"""Characters; the limit of a mark in the trace."""
NOTE_MAX = 2**63 - 1
INSTANCES_MAX = 1_000_000
ARRIVALS_MAX = 10**17
"""Longest mean duration of all arrivals, in nanoseconds (three years), at a tick of one second."""
TIMERS_MAX = 8
"""Timers per process, as in sim/simulator.h."""

_EVENT = re.compile(r"([a-z]+)\d*")
_RT_APP_EVENTS = (
    *(
        "runtime",
        "run",
        "sleep",
        "timer",
        "lock",
        "unlock",
        "wait",
        "signal",
        "broad",
        "sync",
        "barrier",
    ),
    *("suspend", "resume", "yield", "fork", "mem", "iorun", "sem_post", "sem_wait"),
)
"""A key with one of these prefixes is that event, as in rt-app. The first match counts."""

OTHER, IDLE, DEADLINE = "SCHED_OTHER", "SCHED_IDLE", "SCHED_DEADLINE"
CLASSES = (OTHER, IDLE, "SCHED_RR", "SCHED_FIFO", DEADLINE)
"""Possible values of rt-app's `policy`."""
_FAIR = (OTHER, IDLE)

IGNORED = {
    "util_min": "CPUs do not choose a frequency by a task's use",
    "util_max": "CPUs do not choose a frequency by a task's use",
    "membind_nodes": "memory is not modelled",
    "nodes_membind": "memory is not modelled",
    "period": "write `dl-period`; a `timer` does something in each period",
    "deadline": "write `dl-deadline`",
}
"""Keys of tasks and phases without effect, with the reasons."""
REPEATED = "the key again: each is done in its place, as with rt-app's workgen; rt-app alone does only the last"
AS_TIME = "counted as computing, 1 ns for each byte: memory and devices are not modelled"

CALL = Step("sleep until", Time(0))
"""A system call that the kernel answers at once."""
DRAWN = ("priority", "tickets", "weight", "nice")
"""Attributes that may be drawn for each arriving process."""
BATCH_MAX = 10_000
_ARRIVALS = (
    'an object such as {"distribution": "exponential", "mean": 1000}, or {"times": [0, 500]}'
)
_TIMER = 'an object such as {"ref": "unique", "period": 10000}'
_START = 'the name of a task, or an object such as {"task": "cpu", "run": 100}'
_MARK = '"begin" or "end" of what is measured, or a number from 0 on, which is noted'
_PRIORITY = ATTRIBUTES["priority"]
NICE_LAST = ATTRIBUTES["nice"].most
_RUNTIME = ATTRIBUTES["runtime"]
_LOCK = 'the name of a lock, or an object such as {"ref": "lock", "ceiling": 2}'
_TASK = "the name of a task"
_WAIT = 'an object such as {"ref": "condition", "mutex": "lock"}'

TASK_KEYS = ("instance", "delay", "arrivals", "group", "phases", "loop", "policy", *GIVEN_KEYS)
STARTER_KEYS = ("delay", "phases", "loop", *GIVEN_KEYS)
PHASE_KEYS = ("loop", "policy", *GIVEN_KEYS)


@dataclass
class Shared:
    """The state that the tasks of a file share."""

    has_starter: bool
    nice_priorities: bool = False
    """True if `priority` is rt-app's nice value, although no scheduling class is named."""
    scheduling_class: str = ""
    """rt-app's `default_policy`; "" if it is not given."""
    notes: Notes = field(default_factory=Notes)
    channels: dict[str, int] = field(default_factory=dict)
    """The initial content of each channel, by name."""
    groups: Groups = field(default_factory=Groups)
    names: Names = field(init=False)
    """The machine's names of tasks, locks and similar objects."""
    barriers: dict[str, Node] = field(default_factory=dict)
    """For each task that meets others at a barrier, one such place in the file."""
    suspended: set[str] = field(default_factory=set)
    """Names used by tasks that suspend themselves."""
    resumed: dict[str, Node] = field(default_factory=dict)
    """Names used to resume tasks, with the first place of each."""

    def __post_init__(self) -> None:
        self.names = Names(self.notes)


def read_class(node: Node, notes: Notes) -> str:
    """Returns the value of rt-app's `policy` or `default_policy`, and notes how it is interpreted."""
    if node.value not in CLASSES:
        raise wrong(node, f"one of {', '.join(CLASSES)}")
    if node.value == IDLE:
        notes.add(node, f"taken for the nice value {NICE_LAST}")
    elif node.value != OTHER:
        notes.add(
            node,
            f"ignored: tasks of {node.value} have the policy that `policy=` names, as all tasks",
        )
    return str(node.value)


class TaskReader:
    """Reads one task, or the starter."""

    def __init__(
        self,
        shared: Shared,
        key: str,
        node: Node,
        tasks: tuple[str, ...],
        startable: tuple[Task, ...] = (),
    ) -> None:
        self.shared = shared
        self.name = key
        self.node = node
        self.tasks = tasks
        self.startable = {task.name: task for task in startable}
        """The tasks that the starter can start: all of them."""
        self.timers: dict[str, int] = {}
        """Numbers of the task's own timers."""
        self.barriers: set[str] = set()
        self.locks_held: set[str] = set()
        """The locks that the task holds at the current event."""
        self.scheduling_class = shared.scheduling_class
        """rt-app's `policy` of the task or its last phase."""
        self.has_period = False
        self.events: dict[str, Callable[[Node], tuple[Item, ...]]] = {
            "run": lambda node: (self.lasting("run", node),),
            "runtime": lambda node: (self.lasting("run", node),),
            "sleep": lambda node: (self.lasting("sleep", node),),
            "timer": self.timer,
            "lock": self.take_lock,
            "unlock": self.give_lock,
            "wait": self.wait,
            "signal": lambda node: (Step(f"give {self.condition(node)} waiting"),),
            "broad": lambda node: (Step(f"give {self.condition(node)} all"),),
            "sync": self.sync,
            "barrier": self.barrier,
            "suspend": self.suspend,
            "resume": self.resume,
            "yield": self.yield_cpu,
            "fork": self.fork,
            "await": self.wait_for_children,
            "mem": self.write,
            "iorun": self.write,
            "sem_post": lambda node: (Step(f"give {self.semaphore(node)}"),),
            "sem_wait": lambda node: (Step(f"take {self.semaphore(node)}"),),
            "take": lambda node: (Step(f"take {self.item_channel(node)}"),),
            "give": lambda node: (Step(f"give {self.item_channel(node)}"),),
            "mark": self.mark,
            "window": lambda node: (Step("window", time(node)),),
            "call": lambda node: looped(integer(node, 1, COUNT_MAX), (CALL,)),
            "exit": lambda node: (Step(f"exit {integer(node, 0, 255)}"),),
        }
        if startable:
            self.events["start"] = self.start

    def task(self) -> Task:
        properties, body = self.process_properties(TASK_KEYS, standard=-1)
        if self.shared.has_starter:
            for key in {"delay", "arrivals"} & properties.keys():
                raise JsonError(
                    properties[key].line,
                    f"{properties[key].path}: expected none, because the `starter` starts it",
                )
        drawn_ones = self.drawn(properties)
        result = self.runtime_attribute(properties, body)
        given = result | self.attributes(
            {
                key: node
                for key, node in properties.items()
                if key not in drawn_ones and not (result and key == _RUNTIME.key)
            }
        )
        arrivals = self.arrivals(properties.get("arrivals"), properties.get("instance"))
        return Task(
            name=self.name,
            group=self.group(properties.get("group")),
            instances=self.instances(properties.get("instance"), arrivals),
            delay=time(properties["delay"]) if "delay" in properties else Time(0),
            arrivals=arrivals,
            attributes=given,
            body=with_jobs(given, body),
            drawn=drawn_ones,
        )

    def runtime_attribute(
        self, properties: dict[str, Node], body: tuple[Item, ...]
    ) -> dict[str, int]:
        """Returns the runtime of a process if it is its total work ("work"); otherwise {}."""
        node = properties.get(_RUNTIME.key)
        if node is None or node.value != "work":
            return {}
        endless = any(
            (isinstance(item, Loop) and math.isinf(item.rounds))
            or (isinstance(item, Step) and item.words == "run until")
            for item in everything(body)
        )
        if endless or "dl-period" in properties:
            raise wrong(
                node,
                "a time; or no `dl-period`, loops with an end, and no `until`, so that "
                "all work is known",
            )
        return {"runtime": ALL_WORK}

    def device(self) -> Device:
        """Returns the device: the channel, and the times of its interrupts."""
        expected = 'an object such as {"give": "net", "instance": 9, "arrivals": {"times": [0]}}'
        fields = by_key(self.node, expected, ("give", "instance", "delay", "arrivals"))
        arrivals = self.arrivals(fields.get("arrivals"), fields.get("instance"))
        if "give" not in fields or arrivals is None:
            raise wrong(self.node, expected)
        return Device(
            self.name,
            self.item_channel(fields["give"]),
            self.instances(fields.get("instance"), arrivals),
            time(fields["delay"]) if "delay" in fields else Time(0),
            arrivals,
        )

    def drawn(self, properties: dict[str, Node]) -> dict[str, IntegerDistribution]:
        """Returns the attributes that are drawn for each instance."""
        drawn_values = {}
        for key in DRAWN:
            if key not in properties or not isinstance(properties[key].value, Object):
                continue
            if "arrivals" not in properties:
                raise wrong(properties[key], "a number, because random values need `arrivals`")
            drawn_values[key] = number(properties[key], GIVEN[key].least, GIVEN[key].most)
        return drawn_values

    def starter(self) -> Starter:
        properties, body = self.process_properties(STARTER_KEYS, standard=1)
        delay = time(properties["delay"]) if "delay" in properties else Time(0)
        return Starter(delay, self.attributes(properties), body)

    def process_properties(
        self, keys: tuple[str, ...], standard: int
    ) -> tuple[dict[str, Node], tuple[Item, ...]]:
        """Returns the properties, and the behaviour of a process. `standard`: the default of `loop`."""
        properties, events = self.split(self.node, keys)
        properties = self.in_our_words(properties)
        phases = properties.get("phases")
        if phases and events and self.startable:
            event = events[0][1]
            raise JsonError(
                event.line, f"{event.path}: expected within a phase: there are `phases`"
            )
        for _, event in events if phases else ():
            self.shared.notes.add(event, "ignored, as by rt-app: the task has `phases`")
        cpus = {key: key_node for key, key_node in properties.items() if key == "cpus"}
        pinned = attributes(cpus).get("cpus", GIVEN["cpus"].standard)
        inner = self.phases(phases, pinned) if phases else self.sequence(self.node, events)
        return properties, looped(rounds(properties.get("loop"), standard), inner)

    def split(
        self, node: Node, keys: tuple[str, ...]
    ) -> tuple[dict[str, Node], list[tuple[str, Node]]]:
        """Separates properties, each once, from events in their order.

        The starter is not part of rt-app's format, so none of its keys may be repeated.
        """
        properties: dict[str, Node] = {}
        events: list[tuple[str, Node]] = []
        seen: set[str] = set()
        notes = self.shared.notes
        for key, value in members(node, "an object"):
            event = self.event_of(key)
            if key in keys:
                if key in seen and self.startable:
                    raise JsonError(value.line, f"{value.path}: given twice: expected once")
                if key in seen:
                    notes.given_again(properties[key])
                properties[key] = value
            elif key in IGNORED:
                notes.add(value, f"ignored: {IGNORED[key]}")
            elif event:
                if key in seen:
                    notes.add(value, REPEATED)
                events.append((event, value))
            elif self.startable:
                known = ", ".join((*keys, *self.events))
                raise JsonError(value.line, f"{value.path}: unknown: expected one of {known}")
            else:
                notes.unknown(key, value, (*keys, *self.events))
            seen.add(key)
        return properties, events

    def event_of(self, key: str) -> str:
        """Returns the event that a key names, or "" if it names none."""
        match = _EVENT.fullmatch(key)
        if match and match[1] in self.events:
            return match[1]
        return next((event for event in _RT_APP_EVENTS if key.startswith(event)), "")

    def in_our_words(self, given: dict[str, Node]) -> dict[str, Node]:
        """Translates rt-app's `policy`, and its `priority` and `dl-runtime` under it, into schedlab's properties."""
        notes = self.shared.notes
        fields = {key: node for key, node in given.items() if key != "policy"}
        if "policy" in given:
            self.scheduling_class = read_class(given["policy"], notes)
        class_name, priority, runtime = (
            self.scheduling_class,
            fields.get("priority"),
            fields.get(_RUNTIME.key),
        )
        self.has_period |= "dl-period" in fields
        if priority and (class_name in _FAIR or (not class_name and self.shared.nice_priorities)):
            if "nice" in fields:
                raise wrong(
                    priority,
                    "no `nice` in the same task, because this is its nice value, as in rt-app",
                )
            fields["nice"] = self.nice(fields.pop("priority"))
            if not class_name:
                notes.add(
                    priority,
                    "taken for a nice value, as in rt-app: one of the file is not from 0 to 10",
                )
        elif priority and class_name:
            notes.add(fields.pop("priority"), f"ignored: a priority of {class_name}")
        if class_name == IDLE:
            fields.setdefault("nice", Node(NICE_LAST, self.node.line, self.node.path))
        if runtime and class_name == DEADLINE and not self.has_period:
            fields["dl-period"] = runtime
        elif (
            runtime
            and runtime.value != "work"
            and not self.has_period
            and class_name in ("", *_FAIR)
        ):
            fields.setdefault("slice", runtime)
            if class_name:
                del fields[_RUNTIME.key]
            else:
                notes.add(
                    runtime,
                    "taken for the slice, as in rt-app, and for the work under a policy that asks for it",
                )
        return fields

    def nice(self, node: Node) -> Node:
        """Returns rt-app's priority as a nice value. Values out of range are clamped, as on Linux."""
        least, most = ATTRIBUTES["nice"].least, NICE_LAST
        if not isinstance(node.value, int) or least <= node.value <= most:
            return node
        self.shared.notes.add(node, f"taken for the nearest nice value, {least} to {most}")
        return replace(node, value=min(max(node.value, least), most))

    def phases(self, node: Node, cpus: int) -> tuple[Item, ...]:
        """Reads phases. `cpus`: the affinity of phases without one, if any other phase has one."""
        items: list[Item] = []
        entries = members(node, "an object whose keys are the names of phases")
        if not entries:
            raise wrong(node, "at least one phase in it")
        seen: set[str] = set()
        for key, value in entries:
            if key in seen:
                self.shared.notes.add(value, REPEATED)
            seen.add(key)
        split = [(phase, *self.split(phase, PHASE_KEYS)) for _, phase in entries]
        split = [
            (phase, self.in_our_words(phase_properties), events)
            for phase, phase_properties, events in split
        ]
        default = (
            {"cpus": cpus}
            if any("cpus" in phase_properties for _, phase_properties, _ in split)
            else {}
        )
        for phase, properties, events in split:
            given = {**default, **self.attributes(properties)}
            items += [Step(GIVEN[key].line(key, value)) for key, value in given.items()]
            items += looped(rounds(properties.get("loop"), 1), self.sequence(phase, events))
        return tuple(items)

    def sequence(self, node: Node, events: list[tuple[str, Node]]) -> tuple[Item, ...]:
        if not events:
            raise wrong(node, "at least one event in it, such as `run`")
        return tuple(item for event, value in events for item in self.events[event](value))

    # --- properties

    def attributes(self, properties: dict[str, Node]) -> dict[str, int]:
        values = attributes(properties)
        if TASKGROUP in properties:
            values[TASKGROUP] = self.shared.groups.number(properties[TASKGROUP])
        return values

    def instances(self, node: Node | None, arrivals: Arrivals | None) -> int:
        """Returns the number of instances; by default 1, or the number of given arrivals."""
        if node is not None:
            return integer(node, 0, INSTANCES_MAX)
        listed = arrivals is not None and not arrivals.gaps
        return len(arrivals.times) * max(arrivals.batch.values) if arrivals and listed else 1

    def group(self, node: Node | None) -> str:
        if node is None:
            return self.name[:GROUP_MAX]
        label = node.value
        if not isinstance(label, str) or not NAME.fullmatch(label) or len(label) > GROUP_MAX:
            raise wrong(node, f"a group: 1 to {GROUP_MAX} letters, digits and _ . + / : -")
        return label

    def arrivals(self, node: Node | None, instances: Node | None) -> Arrivals | None:
        if node is None:
            return None
        given = dict(members(node, _ARRIVALS))
        batch = number(given["batch"], 1, BATCH_MAX) if "batch" in given else IntegerDistribution()
        if "times" in given:
            fields = by_key(node, _ARRIVALS, ("times", "batch"))
            return Arrivals(None, times(fields["times"]), batch)
        if "distribution" not in given:
            raise wrong(node, _ARRIVALS)
        gaps = distribution(node, ("batch",))
        mean = gaps.moments_ns(10**9)[0]
        count = integer(instances, 0, INSTANCES_MAX) if instances else 1
        if mean * count > ARRIVALS_MAX:
            raise wrong(
                given.get("mean", node), "a shorter time: these arrivals would last for years"
            )
        return Arrivals(gaps, (), batch)

    # --- events

    def channel(self, kind: str, label: str, count: int) -> str:
        channel = f"{kind}:{label}"
        self.shared.channels[channel] = count
        return channel

    def name_in(self, node: Node, what: str) -> str:
        """Returns the machine's name for the value. Raises JsonError if it is not text."""
        if not isinstance(node.value, str):
            raise wrong(node, what)
        return self.shared.names.fitting(node.value, node)

    def part(self, node: Node, fields: Mapping[str, Node], key: str) -> Node:
        """Returns the name at this key in rt-app's object, or rt-app's default name if it is missing."""
        if key not in fields:
            self.shared.notes.add(node, f'without `{key}`: taken for "unknown", as in rt-app')
        return fields.get(key, replace(node, value="unknown"))

    def lock(self, node: Node) -> str:
        return self.channel("lock", self.name_in(node, "the name of a lock"), 1)

    def give_lock(self, node: Node) -> tuple[Item, ...]:
        lock = self.lock(node)
        self.locks_held.discard(lock)
        return (Step(f"give {lock}"),)

    def take_lock(self, node: Node) -> tuple[Item, ...]:
        if not isinstance(node.value, Object):
            self.locks_held.add(self.lock(node))
            return (Step(f"lock {self.lock(node)}"),)
        fields = by_key(node, _LOCK, ("ref", "ceiling"))
        if len(fields) < 2:
            raise wrong(node, _LOCK)
        ceiling = integer(fields["ceiling"], _PRIORITY.least, _PRIORITY.most)
        self.locks_held.add(self.lock(fields["ref"]))
        return (Step(f"lock {self.lock(fields['ref'])} ceiling {ceiling}"),)

    def condition(self, node: Node) -> str:
        return self.channel("cond", self.name_in(node, "the name of what is waited for"), 0)

    def item_channel(self, node: Node) -> str:
        """Returns a channel that is empty at first."""
        return self.channel("of", self.name_in(node, "the name of what is given and taken"), 0)

    def lasting(self, what: str, node: Node) -> Step:
        """Returns the step for `run` and `sleep`: for a duration, or until a time."""
        if isinstance(node.value, Object) and [key for key, _ in node.value.members] == ["until"]:
            return Step(f"{what} until", time(node.value.members[0][1]))
        return Step(what, drawn(node))

    def timer(self, node: Node) -> tuple[Item, ...]:
        fields = by_key(node, _TIMER, ("ref", "period", "mode"), self.shared.notes)
        reference = self.part(node, fields, "ref")
        mode = fields["mode"].value if "mode" in fields else "relative"
        if not isinstance(mode, str):
            raise wrong(fields["mode"], '"relative" or "absolute"')
        if mode not in ("relative", "absolute"):
            self.shared.notes.add(fields["mode"], 'taken for "relative", as in rt-app')
        period = time(fields["period"]) if "period" in fields else Time(0)
        if period.number == 0:
            return ()
        absolute = "absolute" if mode == "absolute" else ""
        return (Step(f"timer {self.timer_name(reference)}", period, absolute),)

    def timer_name(self, node: Node) -> str:
        """Returns the number of the task's own timer, or the name of a shared one."""
        reference = self.name_in(node, "the name of a timer")
        if not reference.startswith("unique"):
            return f"time:{reference}"
        if self.timers.setdefault(reference, len(self.timers)) >= TIMERS_MAX:
            raise wrong(node, f"at most {TIMERS_MAX} timers of a task")
        return str(self.timers[reference])

    def barrier(self, node: Node) -> tuple[Item, ...]:
        label = self.name_in(node, "the name of a barrier")
        if label in self.barriers:
            raise wrong(
                node, "another name, because the task meets others at a barrier of this name"
            )
        self.barriers.add(label)
        self.shared.barriers[self.name] = node
        return (Meet(self.channel("meet", label, 0)),)

    def wait_objects(self, node: Node) -> tuple[str, str]:
        fields = by_key(node, _WAIT, ("ref", "mutex"), self.shared.notes)
        return self.condition(self.part(node, fields, "ref")), self.lock(
            self.part(node, fields, "mutex")
        )

    def wait(self, node: Node) -> tuple[Item, ...]:
        condition, lock = self.wait_objects(node)
        return (Step(f"take {condition} releasing {lock}"), Step(f"lock {lock}"))

    def sync(self, node: Node) -> tuple[Item, ...]:
        """Signals and waits. Takes the lock first, unless the task already holds it, as rt-app requires."""
        condition, lock = self.wait_objects(node)
        wait = (Step(f"take {condition} releasing {lock}"), Step(f"lock {lock}"))
        steps = (Step(f"give {condition} waiting"), *wait)
        if lock in self.locks_held:
            return steps
        return (Step(f"lock {lock}"), *steps, Step(f"give {lock}"))

    def semaphore(self, node: Node) -> str:
        return self.channel("sem", self.name_in(node, "the name of a semaphore"), 0)

    def write(self, node: Node) -> tuple[Item, ...]:
        self.shared.notes.add(node, AS_TIME)
        return (Step("run", Time(integer(node, 0, NANOSECONDS_MAX))),)

    def suspend(self, node: Node) -> tuple[Item, ...]:
        """Waits until `resume` uses the same name. An empty name means the task's name."""
        label = self.name if node.value == "" else self.name_in(node, 'a name, or ""')
        self.shared.suspended.add(label)
        return (Step(f"take {self.channel('task', label, 0)}"),)

    def resume(self, node: Node) -> tuple[Item, ...]:
        label = self.name_in(node, "the name of a task, or the name that its `suspend` has")
        self.shared.resumed.setdefault(label, node)
        return (Step(f"give {self.channel('task', label, 0)} all"),)

    def yield_cpu(self, node: Node) -> tuple[Item, ...]:
        """Ignores the value, as rt-app does."""
        return (Step("yield"),)

    def fork(self, node: Node) -> tuple[Item, ...]:
        return (Fork(self.other_task(node)),)

    def start(self, node: Node) -> tuple[Item, ...]:
        """Starts all instances of a task; the starter's events come before each."""
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
        count = integer(node, 1, COUNT_MAX, '"all", or a number of children')
        return looped(count, (Step("wait"),))

    def mark(self, node: Node) -> tuple[Item, ...]:
        if node.value in ("begin", "end"):
            return (Step(f"mark {node.value}"),)
        return (Step(f"mark note {integer(node, 0, NOTE_MAX, _MARK)}"),)

    def other_task(self, node: Node) -> str:
        task = self.name_in(node, _TASK)
        if task not in self.tasks:
            raise wrong(node, f"{_TASK}: {', '.join(self.tasks)}")
        return task


_TIMER_STEP = re.compile(r"timer (\d+)")
_RESERVED = re.compile(r"(runtime|period) [1-9]")
_FROM_THE_FORK = Step("job 0 0ns absolute")
_NO_MORE = Step("job none")


def with_jobs(attributes: Mapping[str, int], body: tuple[Item, ...]) -> tuple[Item, ...]:
    """Returns the body with a mark before each of the task's own timers, where a job ends.

    Returns the same body if the task has no runtime or no period. The first job is released at the
    fork, unless the task begins with a timer. A timer at the very end releases no job.
    """
    steps = (item.words for item in everything(body) if isinstance(item, Step))
    set_later = {match[1] for words in steps if (match := _RESERVED.match(words))}
    given = {name for name in ("runtime", "period") if attributes.get(name)}
    if len(set_later | given) < 2:
        return body
    begin = () if _is_timer(_edge(body, 0)) else (_FROM_THE_FORK,)
    end = (_NO_MORE,) if _is_timer(_edge(body, -1)) else ()
    return (*begin, *_marked(body), *end)


def _marked(items: tuple[Item, ...]) -> Iterator[Item]:
    for item in items:
        if isinstance(item, Loop):
            yield replace(item, body=tuple(_marked(item.body)))
            continue
        if _is_timer(item):
            assert isinstance(item, Step)
            yield replace(item, words=item.words.replace("timer", "job", 1))
        yield item


def _edge(items: tuple[Item, ...], place: int) -> Item | None:
    """Returns the first (0) or last (−1) item executed; None if there is none."""
    if not items:
        return None
    item = items[place]
    if not isinstance(item, Loop):
        return item
    return None if place and math.isinf(item.rounds) else _edge(item.body, place)


def _is_timer(item: Item | None) -> bool:
    """True if the item is one of the process's own timers."""
    return isinstance(item, Step) and bool(_TIMER_STEP.fullmatch(item.words))

# SPDX-License-Identifier: MIT
"""Reads one task of a workload file: its properties, phases and events."""

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
    ATTRIBUTE_KEYS,
    ATTRIBUTES,
    CPUS_MAX,
    FILE_ATTRIBUTES,
    TASKGROUP,
    Arrivals,
    AwaitAllChildren,
    Device,
    Fork,
    Item,
    Loop,
    MeetAtBarrier,
    Starter,
    Step,
    Task,
    all_items,
    make_loop,
)
from schedlab.workload.times import Time
from schedlab.workload.values import (
    COUNT_MAX,
    NAME,
    NANOSECONDS_MAX,
    MachineNames,
    Notes,
    members_by_key,
    object_members,
    read_attributes,
    read_distribution,
    read_integer,
    read_integer_distribution,
    read_rounds,
    read_time,
    read_time_or_distribution,
    read_times,
    value_error,
)

GROUP_MAX = 8
"""Maximum characters of a group's name; the limit of a mark in the trace."""
NOTE_MAX = 2**63 - 1
INSTANCES_MAX = 1_000_000
ARRIVALS_MAX = 10**17
"""Limit (ns) for the mean duration of all arrivals: three years, at a tick of one second."""
TIMERS_MAX = 8
"""Maximum number of timers per process, as in sim/simulator.h."""

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
"""A key that begins with one of these names is that event, as in rt-app; the first match counts."""

OTHER, IDLE, DEADLINE = "SCHED_OTHER", "SCHED_IDLE", "SCHED_DEADLINE"
SCHEDULING_CLASSES = (OTHER, IDLE, "SCHED_RR", "SCHED_FIFO", DEADLINE)
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
"""Keys of tasks and phases that have no effect, and why."""
REPEATED_NOTE = "the key again: each is done in its place, as with rt-app's workgen; rt-app alone does only the last"
TRANSFER_NOTE = "counted as computing, 1 ns for each byte: memory and devices are not modelled"

CALL_STEP = Step("sleep until", Time(0))
"""A system call to which the kernel returns at once."""
DRAWABLE_ATTRIBUTES = ("priority", "tickets", "weight", "nice")
"""Attributes whose value may be random for each arriving process."""
BATCH_MAX = 10_000
_ARRIVALS_EXPECTED = (
    'an object such as {"distribution": "exponential", "mean": 1000}, or {"times": [0, 500]}'
)
_TIMER_EXPECTED = 'an object such as {"ref": "unique", "period": 10000}'
_START_EXPECTED = 'the name of a task, or an object such as {"task": "cpu", "run": 100}'
_MARK_EXPECTED = '"begin" or "end" of what is measured, or a number from 0 on, which is noted'
_PRIORITY = ATTRIBUTES["priority"]
NICE_MAX = ATTRIBUTES["nice"].most
_RUNTIME = ATTRIBUTES["runtime"]
_LOCK_EXPECTED = 'the name of a lock, or an object such as {"ref": "lock", "ceiling": 2}'
_TASK_EXPECTED = "the name of a task"
_SET_EXPECTED = 'an object such as {"task": "cpu", "cpus": "0-1"}'
SETTABLE_ATTRIBUTES = ("priority", "tickets", "weight", "nice", TASKGROUP, "cpus")
"""Attributes that a process may set of another process."""
_WAIT_EXPECTED = 'an object such as {"ref": "condition", "mutex": "lock"}'

TASK_KEYS = ("instance", "delay", "arrivals", "group", "phases", "loop", "policy", *ATTRIBUTE_KEYS)
STARTER_KEYS = ("delay", "phases", "loop", *ATTRIBUTE_KEYS)
PHASE_KEYS = ("loop", "policy", *ATTRIBUTE_KEYS)


@dataclass
class FileContext:
    """What the tasks of a file have in common while they are read."""

    has_starter: bool
    nice_priorities: bool = False
    """True if `priority` in the file is a nice value, as in rt-app without a scheduling class."""
    scheduling_class: str = ""
    """rt-app's `default_policy`; "" if the file has none."""
    notes: Notes = field(default_factory=Notes)
    channels: dict[str, int] = field(default_factory=dict)
    """Number of items in each channel at the start."""
    groups: Groups = field(default_factory=Groups)
    names: MachineNames = field(init=False)
    """The machine's names of tasks, locks and similar objects."""
    barriers: dict[str, Node] = field(default_factory=dict)
    """For each task that uses a barrier, one place in the file where it does."""
    changed: dict[str, Node] = field(default_factory=dict)
    """Tasks whose attributes others set, with the first place of each in the file."""
    suspended: set[str] = field(default_factory=set)
    """Names used by tasks that suspend themselves."""
    resumed: dict[str, Node] = field(default_factory=dict)
    """Names used to resume tasks, with the first place of each in the file."""

    def __post_init__(self) -> None:
        self.names = MachineNames(self.notes)


def read_class(node: Node, notes: Notes) -> str:
    """Returns the value of rt-app's `policy` or `default_policy`; notes for the user what it means here."""
    if node.value not in SCHEDULING_CLASSES:
        raise value_error(node, f"one of {', '.join(SCHEDULING_CLASSES)}")
    if node.value == IDLE:
        notes.add(node, f"taken for the nice value {NICE_MAX}")
    elif node.value != OTHER:
        notes.add(
            node,
            f"ignored: tasks of {node.value} have the policy that `policy=` names, as all tasks",
        )
    return str(node.value)


class TaskReader:
    """Reads one entry of `tasks`, or the starter."""

    def __init__(
        self,
        shared: FileContext,
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
            "set": self.set_attributes,
            "online": lambda node: (Step(f"online {self.hotplug_cpu(node)}"),),
            "offline": lambda node: (Step(f"offline {self.hotplug_cpu(node)}"),),
            "mem": self.write,
            "iorun": self.write,
            "sem_post": lambda node: (Step(f"give {self.semaphore(node)}"),),
            "sem_wait": lambda node: (Step(f"take {self.semaphore(node)}"),),
            "take": lambda node: (Step(f"take {self.item_channel(node)}"),),
            "give": lambda node: (Step(f"give {self.item_channel(node)}"),),
            "mark": self.mark,
            "window": lambda node: (Step("window", read_time(node)),),
            "call": lambda node: make_loop(read_integer(node, 1, COUNT_MAX), (CALL_STEP,)),
            "exit": lambda node: (Step(f"exit {read_integer(node, 0, 255)}"),),
        }
        if startable:
            self.events["start"] = self.start

    def task(self) -> Task:
        properties, body = self.process_properties(TASK_KEYS, standard=-1)
        if self.shared.has_starter:
            for key in {"delay", "arrivals"} & properties.keys():
                raise JsonError(
                    properties[key].line,
                    f"{properties[key].path}: the `starter` starts this task; leave it out",
                )
        drawn_ones = self.drawn(properties)
        runtime = self.runtime_attribute(properties, body)
        attributes = runtime | self.attributes(
            {
                key: node
                for key, node in properties.items()
                if key not in drawn_ones and not (runtime and key == _RUNTIME.key)
            }
        )
        arrivals = self.arrivals(properties.get("arrivals"), properties.get("instance"))
        return Task(
            name=self.name,
            group=self.group(properties.get("group")),
            instances=self.instances(properties.get("instance"), arrivals),
            delay=read_time(properties["delay"]) if "delay" in properties else Time(0),
            arrivals=arrivals,
            attributes=attributes,
            body=add_jobs(attributes, body),
            drawn=drawn_ones,
        )

    def runtime_attribute(
        self, properties: dict[str, Node], body: tuple[Item, ...]
    ) -> dict[str, int]:
        """Returns the attribute `runtime` if its value is "work", the process's total computing
        time; else {}.
        """
        node = properties.get(_RUNTIME.key)
        if node is None or node.value != "work":
            return {}
        endless = any(
            (isinstance(item, Loop) and math.isinf(item.rounds))
            or (isinstance(item, Step) and item.words == "run until")
            for item in all_items(body)
        )
        if endless or "dl-period" in properties:
            raise value_error(
                node,
                "a time; or no `dl-period`, loops with an end, and no `until`, so that "
                "all work is known",
            )
        return {"runtime": ALL_WORK}

    def device(self) -> Device:
        """Reads a device: its channel, and the times of its interrupts."""
        expected = 'an object such as {"give": "net", "instance": 9, "arrivals": {"times": [0]}}'
        fields = members_by_key(self.node, expected, ("give", "instance", "delay", "arrivals"))
        arrivals = self.arrivals(fields.get("arrivals"), fields.get("instance"))
        if "give" not in fields or arrivals is None:
            raise value_error(self.node, expected)
        return Device(
            self.name,
            self.item_channel(fields["give"]),
            self.instances(fields.get("instance"), arrivals),
            read_time(fields["delay"]) if "delay" in fields else Time(0),
            arrivals,
        )

    def drawn(self, properties: dict[str, Node]) -> dict[str, IntegerDistribution]:
        """Returns the attributes whose values are random for each instance."""
        drawn_values = {}
        for key in DRAWABLE_ATTRIBUTES:
            if key not in properties or not isinstance(properties[key].value, Object):
                continue
            if "arrivals" not in properties:
                raise value_error(
                    properties[key], "a number, because random values need `arrivals`"
                )
            drawn_values[key] = read_integer_distribution(
                properties[key], FILE_ATTRIBUTES[key].least, FILE_ATTRIBUTES[key].most
            )
        return drawn_values

    def starter(self) -> Starter:
        properties, body = self.process_properties(STARTER_KEYS, standard=1)
        delay = read_time(properties["delay"]) if "delay" in properties else Time(0)
        return Starter(delay, self.attributes(properties), body)

    def process_properties(
        self, keys: tuple[str, ...], standard: int
    ) -> tuple[dict[str, Node], tuple[Item, ...]]:
        """Returns the properties, and what a process does.

        `standard`: the default of `loop`.
        """
        properties, events = self.split(self.node, keys)
        properties = self.translate_rt_app(properties)
        phases = properties.get("phases")
        if phases and events and self.startable:
            event = events[0][1]
            raise JsonError(
                event.line, f"{event.path}: this task has `phases`; move the event into one of them"
            )
        for _, event in events if phases else ():
            self.shared.notes.add(event, "ignored, as by rt-app: the task has `phases`")
        cpus = {key: key_node for key, key_node in properties.items() if key == "cpus"}
        pinned = read_attributes(cpus).get("cpus", FILE_ATTRIBUTES["cpus"].standard)
        inner = self.phases(phases, pinned) if phases else self.sequence(self.node, events)
        return properties, make_loop(read_rounds(properties.get("loop"), standard), inner)

    def split(
        self, node: Node, keys: tuple[str, ...]
    ) -> tuple[dict[str, Node], list[tuple[str, Node]]]:
        """Separates properties from events, which stay in their order.

        A property may occur once. The starter is not part of rt-app's format, so none of its keys
        may be repeated.
        """
        properties: dict[str, Node] = {}
        events: list[tuple[str, Node]] = []
        keys_seen: set[str] = set()
        notes = self.shared.notes
        for key, value in object_members(node, "an object"):
            event = self.event_of(key)
            if key in keys:
                if key in keys_seen and self.startable:
                    raise JsonError(value.line, f"{value.path}: given twice; remove one of the two")
                if key in keys_seen:
                    notes.given_again(properties[key])
                properties[key] = value
            elif key in IGNORED:
                notes.add(value, f"ignored: {IGNORED[key]}")
            elif event:
                if key in keys_seen:
                    notes.add(value, REPEATED_NOTE)
                events.append((event, value))
            elif self.startable:
                known_keys = ", ".join((*keys, *self.events))
                raise JsonError(value.line, f"{value.path}: unknown: expected one of {known_keys}")
            else:
                notes.unknown(key, value, (*keys, *self.events))
            keys_seen.add(key)
        return properties, events

    def event_of(self, key: str) -> str:
        """Returns the event that a key means, or "" if it means none."""
        match = _EVENT.fullmatch(key)
        if match and match[1] in self.events:
            return match[1]
        return next((event for event in _RT_APP_EVENTS if key.startswith(event)), "")

    def translate_rt_app(self, given: dict[str, Node]) -> dict[str, Node]:
        """Translates rt-app's `policy`, `priority` and `dl-runtime` to schedlab's properties."""
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
                raise value_error(
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
            fields.setdefault("nice", Node(NICE_MAX, self.node.line, self.node.path))
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
        """Returns rt-app's priority as a nice value, limited to the valid range as on Linux."""
        least, most = ATTRIBUTES["nice"].least, NICE_MAX
        if not isinstance(node.value, int) or least <= node.value <= most:
            return node
        self.shared.notes.add(node, f"taken for the nearest nice value, {least} to {most}")
        return replace(node, value=min(max(node.value, least), most))

    def phases(self, node: Node, cpus: int) -> tuple[Item, ...]:
        """Reads phases.

        `cpus`: allowed CPUs of a phase that names none, if another phase does.
        """
        items: list[Item] = []
        entries = object_members(node, "an object whose keys are the names of phases")
        if not entries:
            raise value_error(node, "at least one phase in it")
        phase_names: set[str] = set()
        for key, value in entries:
            if key in phase_names:
                self.shared.notes.add(value, REPEATED_NOTE)
            phase_names.add(key)
        split = [(phase, *self.split(phase, PHASE_KEYS)) for _, phase in entries]
        split = [
            (phase, self.translate_rt_app(phase_properties), events)
            for phase, phase_properties, events in split
        ]
        default = (
            {"cpus": cpus}
            if any("cpus" in phase_properties for _, phase_properties, _ in split)
            else {}
        )
        for phase, properties, events in split:
            given = {**default, **self.attributes(properties)}
            items += [Step(FILE_ATTRIBUTES[key].line(key, value)) for key, value in given.items()]
            items += make_loop(read_rounds(properties.get("loop"), 1), self.sequence(phase, events))
        return tuple(items)

    def sequence(self, node: Node, events: list[tuple[str, Node]]) -> tuple[Item, ...]:
        if not events:
            raise value_error(node, "at least one event in it, such as `run`")
        return tuple(item for event, value in events for item in self.events[event](value))

    # --- properties

    def attributes(self, properties: dict[str, Node]) -> dict[str, int]:
        values = read_attributes(properties)
        if TASKGROUP in properties:
            values[TASKGROUP] = self.shared.groups.number(properties[TASKGROUP])
        return values

    def instances(self, node: Node | None, arrivals: Arrivals | None) -> int:
        """Returns the number of instances; by default 1, or the number of arrival times."""
        if node is not None:
            return read_integer(node, 0, INSTANCES_MAX)
        has_arrival_times = arrivals is not None and not arrivals.gaps
        return (
            len(arrivals.times) * max(arrivals.batch.values)
            if arrivals and has_arrival_times
            else 1
        )

    def group(self, node: Node | None) -> str:
        """Returns the group of the task in metrics: by default, its name."""
        if node is None:
            return self.name[:GROUP_MAX]
        label = node.value
        if not isinstance(label, str) or not NAME.fullmatch(label) or len(label) > GROUP_MAX:
            raise value_error(node, f"a group: 1 to {GROUP_MAX} letters, digits and _ . + / : -")
        return label

    def arrivals(self, node: Node | None, instances: Node | None) -> Arrivals | None:
        """Returns when the instances arrive, or None without the key."""
        if node is None:
            return None
        members = dict(object_members(node, _ARRIVALS_EXPECTED))
        batch = (
            read_integer_distribution(members["batch"], 1, BATCH_MAX)
            if "batch" in members
            else IntegerDistribution()
        )
        if "times" in members:
            fields = members_by_key(node, _ARRIVALS_EXPECTED, ("times", "batch"))
            return Arrivals(None, read_times(fields["times"]), batch)
        if "distribution" not in members:
            raise value_error(node, _ARRIVALS_EXPECTED)
        gaps = read_distribution(node, ("batch",))
        mean = gaps.moments_ns(10**9)[0]
        count = read_integer(instances, 0, INSTANCES_MAX) if instances else 1
        if mean * count > ARRIVALS_MAX:
            raise value_error(
                members.get("mean", node), "a shorter time: these arrivals would last for years"
            )
        return Arrivals(gaps, (), batch)

    # --- events

    def channel(self, kind: str, label: str, count: int) -> str:
        """Declares the channel KIND:LABEL with its initial count, and returns its name."""
        channel = f"{kind}:{label}"
        self.shared.channels[channel] = count
        return channel

    def name_in(self, node: Node, meaning: str) -> str:
        """Returns a name that machines accept for a name in the file; raises JsonError if it is not
        a text.
        """
        if not isinstance(node.value, str):
            raise value_error(node, meaning)
        return self.shared.names.fitting(node.value, node)

    def part(self, node: Node, fields: Mapping[str, Node], key: str) -> Node:
        """Returns a value of an rt-app object; rt-app's default name if it is missing."""
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
        fields = members_by_key(node, _LOCK_EXPECTED, ("ref", "ceiling"))
        if len(fields) < 2:
            raise value_error(node, _LOCK_EXPECTED)
        ceiling = read_integer(fields["ceiling"], _PRIORITY.least, _PRIORITY.most)
        self.locks_held.add(self.lock(fields["ref"]))
        return (Step(f"lock {self.lock(fields['ref'])} ceiling {ceiling}"),)

    def condition(self, node: Node) -> str:
        """Declares the channel cond:NAME with count 0, and returns its name."""
        return self.channel("cond", self.name_in(node, "the name of what is waited for"), 0)

    def item_channel(self, node: Node) -> str:
        """Returns the name of a channel that is empty at the start."""
        return self.channel("of", self.name_in(node, "the name of what is given and taken"), 0)

    def lasting(self, step_name: str, node: Node) -> Step:
        """Returns the step of `run` or `sleep`, which lasts for a duration, or until a time."""
        if isinstance(node.value, Object) and [key for key, _ in node.value.members] == ["until"]:
            return Step(f"{step_name} until", read_time(node.value.members[0][1]))
        return Step(step_name, read_time_or_distribution(node))

    def timer(self, node: Node) -> tuple[Item, ...]:
        fields = members_by_key(node, _TIMER_EXPECTED, ("ref", "period", "mode"), self.shared.notes)
        reference = self.part(node, fields, "ref")
        mode = fields["mode"].value if "mode" in fields else "relative"
        if not isinstance(mode, str):
            raise value_error(fields["mode"], '"relative" or "absolute"')
        if mode not in ("relative", "absolute"):
            self.shared.notes.add(fields["mode"], 'taken for "relative", as in rt-app')
        period = read_time(fields["period"]) if "period" in fields else Time(0)
        if period.number == 0:
            return ()
        absolute = "absolute" if mode == "absolute" else ""
        return (Step(f"timer {self.timer_name(reference)}", period, absolute),)

    def timer_name(self, node: Node) -> str:
        """Returns the number of one of the process's own timers, or the name of a shared timer."""
        reference = self.name_in(node, "the name of a timer")
        if not reference.startswith("unique"):
            return f"time:{reference}"
        if self.timers.setdefault(reference, len(self.timers)) >= TIMERS_MAX:
            raise value_error(node, f"at most {TIMERS_MAX} timers of a task")
        return str(self.timers[reference])

    def barrier(self, node: Node) -> tuple[Item, ...]:
        label = self.name_in(node, "the name of a barrier")
        if label in self.barriers:
            raise value_error(
                node, "another name, because the task meets others at a barrier of this name"
            )
        self.barriers.add(label)
        self.shared.barriers[self.name] = node
        return (MeetAtBarrier(self.channel("meet", label, 0)),)

    def wait_objects(self, node: Node) -> tuple[str, str]:
        fields = members_by_key(node, _WAIT_EXPECTED, ("ref", "mutex"), self.shared.notes)
        return self.condition(self.part(node, fields, "ref")), self.lock(
            self.part(node, fields, "mutex")
        )

    def wait(self, node: Node) -> tuple[Item, ...]:
        condition, lock = self.wait_objects(node)
        return (Step(f"take {condition} releasing {lock}"), Step(f"lock {lock}"))

    def sync(self, node: Node) -> tuple[Item, ...]:
        """Signals a condition and waits for it.

        Takes the lock first, unless the process already holds it, as rt-app requires.
        """
        condition, lock = self.wait_objects(node)
        wait = (Step(f"take {condition} releasing {lock}"), Step(f"lock {lock}"))
        steps = (Step(f"give {condition} waiting"), *wait)
        if lock in self.locks_held:
            return steps
        return (Step(f"lock {lock}"), *steps, Step(f"give {lock}"))

    def semaphore(self, node: Node) -> str:
        """Declares the channel sem:NAME with count 0, and returns its name."""
        return self.channel("sem", self.name_in(node, "the name of a semaphore"), 0)

    def write(self, node: Node) -> tuple[Item, ...]:
        self.shared.notes.add(node, TRANSFER_NOTE)
        return (Step("run", Time(read_integer(node, 0, NANOSECONDS_MAX))),)

    def suspend(self, node: Node) -> tuple[Item, ...]:
        """Waits until another process resumes this name; an empty name means the task's name."""
        label = self.name if node.value == "" else self.name_in(node, 'a name, or ""')
        self.shared.suspended.add(label)
        return (Step(f"take {self.channel('task', label, 0)}"),)

    def resume(self, node: Node) -> tuple[Item, ...]:
        label = self.name_in(node, "the name of a task, or the name that its `suspend` has")
        self.shared.resumed.setdefault(label, node)
        return (Step(f"give {self.channel('task', label, 0)} all"),)

    def yield_cpu(self, node: Node) -> tuple[Item, ...]:
        """Yields the CPU; ignores the value, as rt-app does."""
        return (Step("yield"),)

    def fork(self, node: Node) -> tuple[Item, ...]:
        return (Fork(self.other_task(node)),)

    def start(self, node: Node) -> tuple[Item, ...]:
        """Starts all instances of a task.

        The other events in the object, such as a `run`, come before each instance.
        """
        if not isinstance(node.value, Object):
            return self.instances_of(self.other_task(node), ())
        properties, events = self.split(node, ("task",))
        if "task" not in properties:
            raise value_error(node, _START_EXPECTED)
        preceding_items = (item for event, value in events for item in self.events[event](value))
        return self.instances_of(self.other_task(properties["task"]), tuple(preceding_items))

    def instances_of(self, task: str, before: tuple[Item, ...]) -> tuple[Item, ...]:
        """Returns the items that fork all instances of a task, each after `before`."""
        return make_loop(self.startable[task].instances, (*before, Fork(task)))

    def set_attributes(self, node: Node) -> tuple[Item, ...]:
        """Sets attributes of the living process of a task that was forked last."""
        properties = members_by_key(node, _SET_EXPECTED, ("task", *SETTABLE_ATTRIBUTES))
        if "task" not in properties or len(properties) < 2:
            raise value_error(node, _SET_EXPECTED)
        task = self.other_task(properties.pop("task"))
        self.shared.changed.setdefault(task, node)
        return tuple(
            Step(f"{FILE_ATTRIBUTES[key].line(key, value)} {task}")
            for key, value in self.attributes(properties).items()
        )

    def hotplug_cpu(self, node: Node) -> int:
        """Returns the number of a CPU that may go offline."""
        return read_integer(node, 1, CPUS_MAX - 1, "a CPU from 1 on; CPU 0 is always online")

    def wait_for_children(self, node: Node) -> tuple[Item, ...]:
        if node.value == "all":
            return (AwaitAllChildren(),)
        count = read_integer(node, 1, COUNT_MAX, '"all", or a number of children')
        return make_loop(count, (Step("wait"),))

    def mark(self, node: Node) -> tuple[Item, ...]:
        if node.value in ("begin", "end"):
            return (Step(f"mark {node.value}"),)
        return (Step(f"mark note {read_integer(node, 0, NOTE_MAX, _MARK_EXPECTED)}"),)

    def other_task(self, node: Node) -> str:
        task = self.name_in(node, _TASK_EXPECTED)
        if task not in self.tasks:
            raise value_error(node, f"{_TASK_EXPECTED}: {', '.join(self.tasks)}")
        return task


_TIMER_STEP = re.compile(r"timer (\d+)")
_RESERVATION_STEP = re.compile(r"(runtime|period) [1-9]")
_JOB_AT_FORK = Step("job 0 0ns absolute")
_NO_MORE_JOBS = Step("job none")


def add_jobs(attributes: Mapping[str, int], body: tuple[Item, ...]) -> tuple[Item, ...]:
    """Returns the body with marks for jobs: a job ends at each of the task's own timers.

    Returns the body unchanged if the task has no runtime or no period. The first job begins at the
    fork, unless the task begins with a timer. A timer at the very end begins no job.
    """
    steps = (item.words for item in all_items(body) if isinstance(item, Step))
    reserved_later = {match[1] for words in steps if (match := _RESERVATION_STEP.match(words))}
    reserved_at_start = {name for name in ("runtime", "period") if attributes.get(name)}
    if len(reserved_later | reserved_at_start) < 2:
        return body
    begin = () if _is_timer(_edge_item(body, 0)) else (_JOB_AT_FORK,)
    end = (_NO_MORE_JOBS,) if _is_timer(_edge_item(body, -1)) else ()
    return (*begin, *_add_job_marks(body), *end)


def _add_job_marks(items: tuple[Item, ...]) -> Iterator[Item]:
    for item in items:
        if isinstance(item, Loop):
            yield replace(item, body=tuple(_add_job_marks(item.body)))
            continue
        if _is_timer(item):
            assert isinstance(item, Step)
            yield replace(item, words=item.words.replace("timer", "job", 1))
        yield item


def _edge_item(items: tuple[Item, ...], index: int) -> Item | None:
    """Returns the item that is executed first (`index` 0) or last (−1); None if there is none."""
    if not items:
        return None
    item = items[index]
    if not isinstance(item, Loop):
        return item
    return None if index and math.isinf(item.rounds) else _edge_item(item.body, index)


def _is_timer(item: Item | None) -> bool:
    """Returns whether the item is one of the process's own timers."""
    return isinstance(item, Step) and bool(_TIMER_STEP.fullmatch(item.words))

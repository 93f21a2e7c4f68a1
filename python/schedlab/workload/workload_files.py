# SPDX-License-Identifier: MIT
"""Reads workload files: JSON in an extension of rt-app's format (docs/workload-files.md).

`read_workload_file` checks a file and returns a WorkloadFile. schedlab.workload.text converts it for a seed and
tick length (docs/simulator.md).
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from schedlab.base.files.json_lines import JsonError, Node, Object, parse_first
from schedlab.base.files.reading import read_text
from schedlab.errors import FileRefused, WrongUsage, format_parameter
from schedlab.workload.changes import CHANGE_LINE, Change, apply_changes, check_unique
from schedlab.workload.model import (
    ATTRIBUTES,
    ROOT_PROGRAM,
    Device,
    Starter,
    Task,
    WorkloadFile,
    count_forks,
)
from schedlab.workload.tasks import GROUP_MAX, FileContext, TaskReader, read_class
from schedlab.workload.text import count_lines
from schedlab.workload.values import (
    GIVEN_AGAIN_NOTE,
    PROCESS_NAME_MAX,
    UNKNOWN_NOTE,
    Notes,
    members_by_key,
    object_members,
    read_duration_ns,
    read_real,
    value_error,
)

SUFFIX = ".json"
VALUELESS_EVENTS = ("suspend",)
"""Events that may lack a value, as rt-app's tool workgen accepts."""
PIDS_MAX = 2**31 - 10
LINES_MAX = 20_000_000
"""Maximum number of lines of a workload in the simulator's text format.

Random times make texts long, because loops are written out.
"""

KEYS_WITHOUT_EFFECT = {
    **dict.fromkeys(("logdir", "log_basename", "log_size", "gnuplot", "ftrace"), "a log of rt-app"),
    "cumulative_slack": "a log of rt-app",
    "calibration": "a run event's time is exact here",
    "lock_pages": "there is no memory here",
    "io_device": "there are no devices here",
    "mem_buffer_size": "there is no memory here",
}
"""Keys of `global` that do not affect what tasks do, and why."""
TOP_KEYS = (
    *("description", "global", "load", "starter", "tasks", "devices", "groups", "resources"),
)


def is_workload_file(workload: str) -> bool:
    """Returns whether a text names a workload file; programs and their options never end like this."""
    return workload.strip().endswith(SUFFIX)


def read_workload_file(path: Path, changes: Iterable[Change] = ()) -> WorkloadFile:
    """Reads a workload file, with some values changed: (("tasks.cpu.instance", "40"), …).

    Raises WrongUsage, which names the place in the file or in a change.
    """
    try:
        text = read_text(path)
    except FileRefused as error:
        raise WrongUsage(
            error.why, what=format_parameter("workload", path), fix=error.fix
        ) from None
    return parse_workload_text(text, path, changes)


def parse_workload_text(text: str, path: Path, changes: Iterable[Change] = ()) -> WorkloadFile:
    """Returns the workload in a file's text, like `read_workload_file`; `path` is the file's name in errors."""
    try:
        valid_changes = check_unique(changes)
        top, rest_line = parse_first(text, VALUELESS_EVENTS)
        reader = _Reader(
            apply_changes(top, valid_changes),
            hashlib.sha256(text.encode()).hexdigest(),
            valid_changes,
        )
        if rest_line:
            trailing_node = Node(None, rest_line, "what follows the file's object")
            reader.notes.add(trailing_node, "ignored, as by rt-app")
        file = reader.file()
        return replace(file, source=text)
    except JsonError as error:
        place = f"{path}, `changes=`" if error.line == CHANGE_LINE else f"{path}:{error.line}"
        raise WrongUsage(str(error), what=place) from None
    except ValueError as error:
        raise WrongUsage(str(error), what="`changes=`") from None


def parse_workload_node(node: Node, sha256: str) -> WorkloadFile:
    """Returns a workload that is part of another file, whose hash is `sha256`. Raises JsonError."""
    file = _Reader(node, sha256, ()).file()
    check_known_keys(node, file)
    return file


def check_known_keys(node: Node, file: WorkloadFile) -> None:
    """Raises JsonError if the workload file has unknown or repeated keys.

    `node`: the place that contains or names the workload, for errors.
    """
    for note in file.notes:
        if note.endswith((UNKNOWN_NOTE, GIVEN_AGAIN_NOTE)):
            raise value_error(node, f"a workload with known keys, each given once; {note}")


def read_description(path: Path) -> str:
    """Returns the first sentence of a workload file's description, or "".

    Raises JsonError if the file is invalid.
    """
    text = dict(
        object_members(parse_first(path.read_text(), VALUELESS_EVENTS)[0], "an object")
    ).get("description")
    return str(text.value).partition(". ")[0].removesuffix(".") if text else ""


def check_load(node: Node, file: WorkloadFile) -> None:
    """Raises JsonError if it is unknown how much work arrives."""
    offered = file.offered(10**6)
    if not 0 < offered < math.inf:
        raise value_error(
            node,
            "no load, or a task with gaps between its arrivals (`arrivals`, "
            "`distribution`), a `loop` with an end and a known computing time",
        )


def _has_nice_priorities(tasks: Node) -> bool:
    """Returns whether any `priority` is outside schedlab's range; all are then rt-app's nice values."""
    if not isinstance(tasks.value, Object):
        return False
    ours = ATTRIBUTES["priority"]
    return any(
        (
            key == "priority"
            and isinstance(node.value, int)
            and not ours.least <= node.value <= ours.most
        )
        or _has_nice_priorities(node)
        for key, node in tasks.value.members
    )


class _Reader:
    """Reads the members of one workload file."""

    def __init__(self, node: Node, sha256: str, changes: tuple[Change, ...]) -> None:
        self.sha256 = sha256
        self.changes = changes
        self.notes = Notes()
        self.top = members_by_key(node, "an object with `tasks`", TOP_KEYS, self.notes)
        if "tasks" not in self.top:
            raise value_error(node, "an object with `tasks`")
        self.shared = FileContext(
            "starter" in self.top, _has_nice_priorities(self.top["tasks"]), notes=self.notes
        )

    def file(self) -> WorkloadFile:
        if "description" in self.top and not isinstance(self.top["description"].value, str):
            raise value_error(self.top["description"], "a text")
        if "resources" in self.top:
            self.notes.add(self.top["resources"], "ignored: events need no such definition")
        duration = self.duration()
        if "groups" in self.top:
            self.shared.groups.declare(self.top["groups"])
        task_nodes = self.task_nodes()
        tasks = tuple(
            TaskReader(self.shared, key, node, tuple(task_nodes)).task()
            for key, node in task_nodes.items()
        )
        tasks = self.with_distinct_groups(task_nodes, tasks)
        starter = self.starter(tasks, duration)
        devices = self.devices()
        self.check_barriers(tasks)
        for label, node in self.shared.resumed.items():
            if label not in self.shared.suspended:
                self.notes.add(node, "without effect: no task suspends itself by this name")
        file = WorkloadFile(
            self.sha256,
            self.changes,
            duration,
            tasks,
            starter,
            self.shared.channels,
            self.shared.groups.all(),
            self.notes.all(),
            devices,
            read_real(self.top["load"], 0.001, 1000) if "load" in self.top else None,
        )
        if "load" in self.top:
            check_load(self.top["load"], file)
        self.check_size(file)
        self.check_changed(file.drawing())
        return file

    def starter(self, tasks: tuple[Task, ...], duration: int | None) -> Starter | None:
        """Returns what the first process does, or None if the file does not say."""
        if "starter" not in self.top:
            if not any(task.instances for task in tasks):
                raise value_error(
                    self.top["tasks"], "at least one task with an `instance` other than 0"
                )
            return None
        if duration is not None:
            raise JsonError(
                self.top["global"].line,
                "global.duration: the `starter` ends the run; leave it out",
            )
        return TaskReader(
            self.shared,
            ROOT_PROGRAM,
            self.top["starter"],
            tuple(task.name for task in tasks),
            tasks,
        ).starter()

    def devices(self) -> tuple[Device, ...]:
        """Returns the devices."""
        if "devices" not in self.top:
            return ()
        if "starter" in self.top:
            raise value_error(
                self.top["devices"], "no `starter` with it: its process would be late"
            )
        entries = object_members(
            self.top["devices"], "an object whose keys are the names of devices"
        )
        return tuple(TaskReader(self.shared, key, node, ()).device() for key, node in entries)

    def check_size(self, file: WorkloadFile) -> None:
        """Raises JsonError if the workload is too large or has infinitely many steps."""
        if file.total() > PIDS_MAX and not math.isinf(file.total()):
            raise value_error(
                self.top["tasks"], f"at most {PIDS_MAX} processes in total, including forked ones"
            )
        lines = count_lines(file)
        if math.isinf(lines):
            raise value_error(
                self.top["tasks"],
                "a `loop` with an end for each random time, because each is drawn in advance",
            )
        if lines > LINES_MAX:
            raise value_error(
                self.top["tasks"],
                f"fewer random times: each process has its own steps, here {lines:.0f}, "
                f"and at most {LINES_MAX} are possible",
            )

    def duration(self) -> int | None:
        """Returns the duration in ns, or None if the run lasts until all tasks have ended."""
        if "global" not in self.top:
            return None
        known_keys = ("duration", "default_policy", "pi_enabled", *KEYS_WITHOUT_EFFECT)
        fields = members_by_key(self.top["global"], "an object", known_keys, self.notes)
        for key, node in fields.items():
            if key in KEYS_WITHOUT_EFFECT:
                self.notes.add(node, f"ignored: {KEYS_WITHOUT_EFFECT[key]}")
        if "default_policy" in fields:
            self.shared.scheduling_class = read_class(fields["default_policy"], self.notes)
        if "pi_enabled" in fields and fields["pi_enabled"].value is not False:
            self.notes.add(
                fields["pi_enabled"],
                "ignored: whether locks pass priorities on is the policy's matter",
            )
        return read_duration_ns(fields["duration"]) if "duration" in fields else None

    def task_nodes(self) -> dict[str, Node]:
        """Returns the tasks by the names that machines know."""
        nodes: dict[str, Node] = {}
        members = object_members(self.top["tasks"], "an object whose keys are the names of tasks")
        heads = Counter(key[:PROCESS_NAME_MAX] for key in {key for key, _ in members})
        for key, node in members:
            name = self.shared.names.fitting(key, node, heads[key[:PROCESS_NAME_MAX]] == 1)
            if name in nodes:
                self.notes.given_again(nodes[name])
            nodes[name] = node
        if not nodes:
            raise value_error(self.top["tasks"], "at least one task in it")
        return nodes

    def with_distinct_groups(
        self, nodes: dict[str, Node], tasks: tuple[Task, ...]
    ) -> tuple[Task, ...]:
        """Returns the tasks with different group names.

        Group names are truncated; a number distinguishes equal ones.
        """
        taken = Counter(task.group for task in tasks)
        numbers: dict[str, Iterator[int]] = defaultdict(lambda: itertools.count(1))
        distinct: list[Task] = []
        for node, task in zip(nodes.values(), tasks, strict=True):
            group = task.group
            is_cut = len(task.name) > GROUP_MAX and "group" not in dict(
                object_members(node, "an object")
            )
            if is_cut and taken[group] > 1:
                labels = (f"{group[: GROUP_MAX - len(str(n))]}{n}" for n in numbers[task.group])
                group = next(label for label in labels if label not in taken)
                taken[group] += 1
                self.notes.add(
                    node, "shortened in tables to the name in brackets", f"{node.path} ({group})"
                )
            distinct.append(replace(task, group=group))
        return tuple(distinct)

    def check_changed(self, drawing: frozenset[str]) -> None:
        """Checks that other tasks can name the tasks whose attributes they set."""
        for task, node in self.shared.changed.items():
            if task in drawing:
                raise value_error(
                    node,
                    f"no random times or attributes in {task}: each of its processes has its own program then",
                )

    def check_barriers(self, tasks: tuple[Task, ...]) -> None:
        """Checks that the number of tasks at each barrier is known, as rt-app requires."""
        forked = {fork for task in tasks for fork in count_forks(task.body)}
        for task, node in self.shared.barriers.items():
            if task in forked:
                raise value_error(
                    node,
                    f"no barrier in {task}: it is forked, so the number of its tasks is unknown",
                )

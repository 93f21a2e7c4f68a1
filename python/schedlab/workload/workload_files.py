# SPDX-License-Identifier: MIT
"""Reads workload files: JSON in an extension of rt-app's format (docs/workload-files.md).

`read` checks a file and returns a WorkloadFile. schedlab.workload.text converts it for a seed and
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
from schedlab.errors import FileRefused, WrongUsage, parameter
from schedlab.workload.changes import NOT_OF_THE_FILE, Change, changed, checked
from schedlab.workload.model import ATTRIBUTES, ROOT, Device, Starter, Task, WorkloadFile, forks
from schedlab.workload.tasks import GROUP_MAX, Shared, TaskReader, read_class
from schedlab.workload.text import length
from schedlab.workload.values import (
    GIVEN_AGAIN,
    PROCESS_NAME_MAX,
    UNKNOWN,
    Notes,
    by_key,
    members,
    real,
    seconds,
    wrong,
)

SUFFIX = ".json"
BARE = ("suspend",)
"""Events that rt-app's workgen accepts without a value."""
PIDS_MAX = 2**31 - 10
LINES_MAX = 20_000_000
"""The most lines of a workload in the simulator's text format; random draws make it long."""

NOT_BEHAVIOUR = {
    **dict.fromkeys(("logdir", "log_basename", "log_size", "gnuplot", "ftrace"), "a log of rt-app"),
    "cumulative_slack": "a log of rt-app",
    "calibration": "a run event's time is exact here",
    "lock_pages": "there is no memory here",
    "io_device": "there are no devices here",
    "mem_buffer_size": "there is no memory here",
}
"""Keys of `global` that do not affect behaviour, with the reasons."""
TOP_KEYS = (
    *("description", "global", "load", "starter", "tasks", "devices", "groups", "resources"),
)


def is_workload_file(workload: str) -> bool:
    """True if the text names a workload file; programs and their options do not end like this."""
    return workload.strip().endswith(SUFFIX)


def read(path: Path, changes: Iterable[Change] = ()) -> WorkloadFile:
    """Reads a workload file, optionally with changed values: (("tasks.cpu.instance", "40"), …).

    Raises WrongUsage, which names the place in the file or in a change.
    """
    try:
        text = read_text(path)
    except FileRefused as error:
        raise WrongUsage(error.why, what=parameter("workload", path), fix=error.fix) from None
    return of_text(text, path, changes)


def of_text(text: str, path: Path, changes: Iterable[Change] = ()) -> WorkloadFile:
    """Returns the workload of a file's text, as `read` does. Errors name the file `path`."""
    try:
        valid_changes = checked(changes)
        top, rest_line = parse_first(text, BARE)
        reader = _Reader(
            changed(top, valid_changes), hashlib.sha256(text.encode()).hexdigest(), valid_changes
        )
        if rest_line:
            end = Node(None, rest_line, "what follows the file's object")
            reader.notes.add(end, "ignored, as by rt-app")
        file = reader.file()
        return replace(file, source=text)
    except JsonError as error:
        place = f"{path}, `changes=`" if error.line == NOT_OF_THE_FILE else f"{path}:{error.line}"
        raise WrongUsage(str(error), what=place) from None
    except ValueError as error:
        raise WrongUsage(str(error), what="`changes=`") from None


def from_node(node: Node, sha256: str) -> WorkloadFile:
    """Returns a workload embedded in another file with this hash. Raises JsonError."""
    file = _Reader(node, sha256, ()).file()
    check_known_keys(node, file)
    return file


def check_known_keys(node: Node, file: WorkloadFile) -> None:
    """Raises JsonError if the workload file has unknown or repeated keys. `node` contains or names the file."""
    for note in file.notes:
        if note.endswith((UNKNOWN, GIVEN_AGAIN)):
            raise wrong(node, f"a workload with known keys, each given once; {note}")


def description(path: Path) -> str:
    """Returns the first sentence of a workload file's description, or "". Raises JsonError if the file is invalid."""
    text = dict(members(parse_first(path.read_text(), BARE)[0], "an object")).get("description")
    return str(text.value).partition(". ")[0].removesuffix(".") if text else ""


def check_load(node: Node, file: WorkloadFile) -> None:
    """Raises JsonError unless the amount of arriving work is known."""
    offered = file.offered(10**6)
    if not 0 < offered < math.inf:
        raise wrong(
            node,
            "no load, or a task with gaps between its arrivals (`arrivals`, "
            "`distribution`), a `loop` with an end and a known computing time",
        )


def _has_nice_priorities(tasks: Node) -> bool:
    """True if any `priority` is outside schedlab's range: all of them are then rt-app's nice values."""
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
    """Reads one file."""

    def __init__(self, node: Node, sha256: str, changes: tuple[Change, ...]) -> None:
        self.sha256 = sha256
        self.changes = changes
        self.notes = Notes()
        self.top = by_key(node, "an object with `tasks`", TOP_KEYS, self.notes)
        if "tasks" not in self.top:
            raise wrong(node, "an object with `tasks`")
        self.shared = Shared(
            "starter" in self.top, _has_nice_priorities(self.top["tasks"]), notes=self.notes
        )

    def file(self) -> WorkloadFile:
        if "description" in self.top and not isinstance(self.top["description"].value, str):
            raise wrong(self.top["description"], "a text")
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
            real(self.top["load"], 0.001, 1000) if "load" in self.top else None,
        )
        if "load" in self.top:
            check_load(self.top["load"], file)
        self.check_size(file)
        return file

    def starter(self, tasks: tuple[Task, ...], duration: int | None) -> Starter | None:
        """Returns the first process's behaviour, or None if the file does not define it."""
        if "starter" not in self.top:
            if not any(task.instances for task in tasks):
                raise wrong(self.top["tasks"], "at least one task with an `instance` other than 0")
            return None
        if duration is not None:
            raise JsonError(
                self.top["global"].line,
                "global.duration: expected none, because the `starter` ends the run",
            )
        return TaskReader(
            self.shared, ROOT, self.top["starter"], tuple(task.name for task in tasks), tasks
        ).starter()

    def devices(self) -> tuple[Device, ...]:
        """Returns the devices."""
        if "devices" not in self.top:
            return ()
        if "starter" in self.top:
            raise wrong(self.top["devices"], "no `starter` with it: its process would be late")
        entries = members(self.top["devices"], "an object whose keys are the names of devices")
        return tuple(TaskReader(self.shared, key, node, ()).device() for key, node in entries)

    def check_size(self, file: WorkloadFile) -> None:
        """Raises JsonError if the workload is too large, or has infinitely many steps."""
        if file.total() > PIDS_MAX and not math.isinf(file.total()):
            raise wrong(
                self.top["tasks"], f"at most {PIDS_MAX} processes in total, including forked ones"
            )
        lines = length(file)
        if math.isinf(lines):
            raise wrong(
                self.top["tasks"],
                "a `loop` with an end for each random time, because each is drawn in advance",
            )
        if lines > LINES_MAX:
            raise wrong(
                self.top["tasks"],
                f"fewer random times: each process has its own steps, here {lines:.0f}, "
                f"and at most {LINES_MAX} are possible",
            )

    def duration(self) -> int | None:
        """Returns the duration in nanoseconds, or None if the run lasts until all tasks have ended."""
        if "global" not in self.top:
            return None
        known = ("duration", "default_policy", "pi_enabled", *NOT_BEHAVIOUR)
        fields = by_key(self.top["global"], "an object", known, self.notes)
        for key, node in fields.items():
            if key in NOT_BEHAVIOUR:
                self.notes.add(node, f"ignored: {NOT_BEHAVIOUR[key]}")
        if "default_policy" in fields:
            self.shared.scheduling_class = read_class(fields["default_policy"], self.notes)
        if "pi_enabled" in fields and fields["pi_enabled"].value is not False:
            self.notes.add(
                fields["pi_enabled"],
                "ignored: whether locks pass priorities on is the policy's matter",
            )
        return seconds(fields["duration"]) if "duration" in fields else None

    def task_nodes(self) -> dict[str, Node]:
        """Returns the tasks by their names on the machine."""
        nodes: dict[str, Node] = {}
        given = members(self.top["tasks"], "an object whose keys are the names of tasks")
        heads = Counter(key[:PROCESS_NAME_MAX] for key in {key for key, _ in given})
        for key, node in given:
            name = self.shared.names.fitting(key, node, heads[key[:PROCESS_NAME_MAX]] == 1)
            if name in nodes:
                self.notes.given_again(nodes[name])
            nodes[name] = node
        if not nodes:
            raise wrong(self.top["tasks"], "at least one task in it")
        return nodes

    def with_distinct_groups(
        self, nodes: dict[str, Node], tasks: tuple[Task, ...]
    ) -> tuple[Task, ...]:
        """Returns the tasks. If several have the same truncated group, a number makes their groups distinct."""
        taken = Counter(task.group for task in tasks)
        numbers: dict[str, Iterator[int]] = defaultdict(lambda: itertools.count(1))
        distinct: list[Task] = []
        for node, task in zip(nodes.values(), tasks, strict=True):
            group = task.group
            cut = len(task.name) > GROUP_MAX and "group" not in dict(members(node, "an object"))
            if cut and taken[group] > 1:
                labels = (f"{group[: GROUP_MAX - len(str(n))]}{n}" for n in numbers[task.group])
                group = next(label for label in labels if label not in taken)
                taken[group] += 1
                self.notes.add(
                    node, "shortened in tables to the name in brackets", f"{node.path} ({group})"
                )
            distinct.append(replace(task, group=group))
        return tuple(distinct)

    def check_barriers(self, tasks: tuple[Task, ...]) -> None:
        """Checks barriers as rt-app does: the number of participating tasks must be known."""
        forked = {fork for task in tasks for fork in forks(task.body)}
        for task, node in self.shared.barriers.items():
            if task in forked:
                raise wrong(
                    node,
                    f"no barrier in {task}: it is forked, so the number of its tasks is unknown",
                )

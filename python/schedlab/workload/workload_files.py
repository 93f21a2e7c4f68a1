# SPDX-License-Identifier: MIT
"""Workloads as files: JSON that follows rt-app's (docs/workload-files.md), for the simulator.

`read` checks a file and returns a WorkloadFile, which knows its text in the simulator's form
(docs/simulator.md) for each seed and length of a tick.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from schedlab.errors import WrongUsage
from schedlab.files.json_lines import JsonError, Node, parse
from schedlab.workload.changes import NOT_OF_THE_FILE, Change, changed, checked
from schedlab.workload.model import ROOT, Device, Starter, Task, WorkloadFile, forks
from schedlab.workload.tasks import GROUP_MAX, REFUSED, Shared, TaskReader
from schedlab.workload.text import length
from schedlab.workload.values import (
    NAME,
    NAME_WORDS,
    by_key,
    members,
    real,
    refused,
    seconds,
    wrong,
)

SUFFIX = ".json"
PIDS_MAX = 2**31 - 10
LINES_MAX = 20_000_000
"""The most lines of a text in the simulator's form: random draws make it long."""

PRIORITIES_STAY = "whether locks pass priorities on is the matter of the policy"
NOT_BEHAVIOUR = {
    **dict.fromkeys(("logdir", "log_basename", "log_size", "gnuplot", "ftrace"), "a log of rt-app"),
    "cumulative_slack": "a log of rt-app",
    "calibration": "a run event's time is exact here",
    "lock_pages": "there is no memory here",
    "io_device": "there are no devices here",
    "mem_buffer_size": "there is no memory here",
}
"""Keys of `global` that do not change what tasks do, and why. The reader says so."""


def is_workload_file(workload: str) -> bool:
    """Rather than a program and its options: they do not end so."""
    return workload.strip().endswith(SUFFIX)


def read(path: Path, changes: Iterable[Change] = ()) -> WorkloadFile:
    """Reads a workload file with other values, if any: (("tasks.cpu.instance", "40"), …).

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


def from_node(node: Node, sha256: str) -> WorkloadFile:
    """Returns the workload that stands within another file, of this hash. Raises JsonError."""
    return _Reader(node, sha256, ()).file()


def description(path: Path) -> str:
    """Returns the first sentence that a workload file says of itself, or "" if it says nothing.

    JsonError: it is none.
    """
    told = dict(members(parse(path.read_text()), "an object")).get("description")
    return str(told.value).partition(". ")[0].removesuffix(".") if told else ""


def check_load(node: Node, file: WorkloadFile) -> None:
    """Raises JsonError unless it is known how much arrives."""
    offered = file.offered(10**6)
    if not 0 < offered < math.inf:
        raise wrong(
            node,
            "no load, or a task with gaps between its arrivals (`arrivals`, `distribution`) whose"
            " `loop` has an end and which computes for a time that is known beforehand",
        )


class _Reader:
    """Reads one file."""

    def __init__(self, node: Node, sha256: str, changes: tuple[Change, ...]) -> None:
        self.sha256 = sha256
        self.changes = changes
        self.top = by_key(
            node,
            "an object with `tasks`",
            ("description", "global", "load", "starter", "tasks", "devices", "groups", "resources"),
        )
        if "tasks" not in self.top:
            raise wrong(node, "an object with `tasks`")
        self.shared = Shared("starter" in self.top)
        self.notes: list[str] = []

    def file(self) -> WorkloadFile:
        if "description" in self.top and not isinstance(self.top["description"].value, str):
            raise wrong(self.top["description"], "a text")
        if "resources" in self.top:
            self.note(self.top["resources"], "what is named in events is there")
        duration = self.duration()
        if "groups" in self.top:
            self.shared.groups.declare(self.top["groups"])
        found = members(self.top["tasks"], "an object whose keys are the names of tasks")
        if not found:
            raise wrong(self.top["tasks"], "at least one task in it")
        self.check_names(found)
        names = tuple(key for key, _ in found)
        tasks = tuple(TaskReader(self.shared, key, node, names).task() for key, node in found)
        starter = self.starter(tasks)
        devices = self.devices()
        self.check_groups(found, tasks)
        self.check_barriers(tasks)
        file = WorkloadFile(
            self.sha256,
            self.changes,
            duration,
            tasks,
            starter,
            self.shared.channels,
            self.shared.groups.all(),
            tuple(self.notes),
            devices,
            real(self.top["load"], 0.001, 1000) if "load" in self.top else None,
        )
        if "load" in self.top:
            check_load(self.top["load"], file)
        self.check_size(file)
        return file

    def starter(self, tasks: tuple[Task, ...]) -> Starter | None:
        """Returns what the first process does, or None if the file does not say it."""
        if "starter" not in self.top:
            if not any(task.instances for task in tasks):
                raise wrong(self.top["tasks"], "at least one task with an `instance` other than 0")
            return None
        if "global" in self.top and self.duration() is not None:
            raise JsonError(
                self.top["global"].line,
                "global.duration: expected none: it is the `starter` that ends the run",
            )
        return TaskReader(
            self.shared, ROOT, self.top["starter"], tuple(task.name for task in tasks), tasks
        ).starter()

    def devices(self) -> tuple[Device, ...]:
        """What comes by interrupts."""
        if "devices" not in self.top:
            return ()
        if "starter" in self.top:
            raise wrong(self.top["devices"], "no `starter` beside it: its process would be late")
        found = members(self.top["devices"], "an object whose keys are the names of devices")
        return tuple(TaskReader(self.shared, key, node, ()).device() for key, node in found)

    def check_size(self, file: WorkloadFile) -> None:
        """Raises JsonError for what cannot be written or counted to its end."""
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
        """Returns nanoseconds, or None if it is until all tasks have ended."""
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
            if not NAME.fullmatch(key):
                raise JsonError(node.line, f"{node.path}: expected a name of {NAME_WORDS}")
            if key == ROOT:
                raise JsonError(
                    node.line, f"{node.path}: expected another name: {ROOT} starts the tasks"
                )
            if key in seen:
                raise JsonError(node.line, f"{node.path}: there are two tasks of this name")
            seen.add(key)

    def check_groups(self, found: tuple[tuple[str, Node], ...], tasks: tuple[Task, ...]) -> None:
        """Raises JsonError for a name that, cut off, may be taken for another."""
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
        for task, node in self.shared.barriers.items():
            if task in forked:
                raise wrong(
                    node,
                    f"no barrier in {task}: it is forked, so it is unknown how many will come",
                )

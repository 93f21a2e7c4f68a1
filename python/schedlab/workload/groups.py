# SPDX-License-Identifier: MIT
"""Reads the task groups of a workload file: paths in the file become numbers for the machine."""

from __future__ import annotations

import re

from schedlab.base.files.json_lines import JsonError, Node, Object
from schedlab.workload.model import GROUPS_MAX, TaskGroup
from schedlab.workload.values import by_key, integer, members, time, wrong

_PATH = re.compile(r"(?:/[A-Za-z0-9_+:-][A-Za-z0-9_.+:-]*)+")
_PATH_MAX = 64
"""Characters."""
_PATH_WORDS = f'the path of a group, such as "/users/ann", with at most {_PATH_MAX} characters'
_KEYS = ("weight", "quota", "period")
_WEIGHT_MAX = 10_000
_TIME_LEAST, _PERIOD_MOST, _QUOTA_MOST = 10**6, 10**9, 10**12
"""Nanoseconds, as in policies/policy.h."""


_RANGES = {
    "weight": (1, _WEIGHT_MAX, ""),
    "quota": (_TIME_LEAST, _QUOTA_MOST, "ns"),
    "period": (_TIME_LEAST, _PERIOD_MOST, "ns"),
}


def set_group_line(number: int, field: str, value: int) -> str:
    """Returns the line of the simulator's text format that sets a field of a group, or "" if the value is invalid."""
    if not 0 <= number < GROUPS_MAX or (number == 0 and field in ("parent", "weight")):
        return ""
    if field == "parent":
        return f"setgroup {number} parent {value}" if 0 <= value < number else ""
    if field == "quota" and value == 0:
        return f"setgroup {number} quota 0"
    least, most, unit = _RANGES[field]
    return f"setgroup {number} {field} {value}{unit}" if least <= value <= most else ""


class Groups:
    """Assigns numbers to paths; a parent has a lower number than its children."""

    def __init__(self) -> None:
        self._by_path: dict[str, TaskGroup] = {}

    def all(self) -> tuple[TaskGroup, ...]:
        """Returns all groups, parents before their children."""
        return tuple(sorted(self._by_path.values(), key=lambda group: group.number))

    def declare(self, node: Node) -> None:
        """Reads the section `groups`."""
        declared: set[str] = set()
        for path, group_node in members(node, "an object whose keys are the paths of groups"):
            if path in declared:
                raise JsonError(group_node.line, f"{group_node.path}: given twice: expected once")
            declared.add(path)
            number = 0 if path == "/" else self._number(path, group_node)
            given = by_key(group_node, "an object, which may be empty", _KEYS)
            if "weight" in given and not number:
                raise wrong(given["weight"], "no weight, because the root has no siblings")
            if "period" in given and "quota" not in given:
                raise wrong(given["period"], "a `quota` with it")
            self._by_path[path] = TaskGroup(
                number,
                self._by_path[path].parent if number else 0,
                integer(given["weight"], 1, _WEIGHT_MAX) if "weight" in given else None,
                _length(given.get("quota"), _QUOTA_MOST),
                _length(given.get("period"), _PERIOD_MOST),
            )

    def number(self, node: Node) -> int:
        """Returns the number of the group that a task or phase names."""
        return 0 if node.value in ("/", "") else self._number(node.value, node)

    def _number(self, path: object, node: Node) -> int:
        if not isinstance(path, str) or len(path) > _PATH_MAX or not _PATH.fullmatch(path):
            hint = "; the object `groups` says what a group has" if isinstance(path, Object) else ""
            raise JsonError(node.line, f"{node.path}: expected {_PATH_WORDS}{hint}")
        if path in self._by_path:
            return self._by_path[path].number
        above = path.rpartition("/")[0]
        parent = self._number(above, node) if above else 0
        number = sum(1 for path in self._by_path if path != "/") + 1
        if number >= GROUPS_MAX:
            raise wrong(node, f"at most {GROUPS_MAX - 1} groups in addition to the root")
        self._by_path[path] = TaskGroup(number, parent)
        return number


def _length(node: Node | None, most: int) -> int | None:
    if node is None:
        return None
    value = time(node)
    if value.in_ticks or not _TIME_LEAST <= value.number <= most:
        raise wrong(node, f"a time of 1 ms to {most // 10**9} s, and not in ticks")
    return int(value.number)

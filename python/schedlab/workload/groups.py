# SPDX-License-Identifier: MIT
"""Reads the task groups of a workload file; gives each path, such as "/users/ann", a number."""

from __future__ import annotations

import re

from schedlab.base.files.json_lines import JsonError, Node, Object
from schedlab.workload.model import GROUPS_MAX, TaskGroup
from schedlab.workload.values import (
    members_by_key,
    object_members,
    read_integer,
    read_time,
    value_error,
)

_PATH = re.compile(r"(?:/[A-Za-z0-9_+:-][A-Za-z0-9_.+:-]*)+")
_PATH_MAX = 64
"""Characters."""
_PATH_EXPECTED = f'the path of a group, such as "/users/ann", with at most {_PATH_MAX} characters'
_KEYS = ("weight", "quota", "period")
_WEIGHT_MAX = 10_000
_TIME_MIN_NS, _PERIOD_MAX_NS, _QUOTA_MAX_NS = 10**6, 10**9, 10**12
"""Nanoseconds, as in policies/policy.h."""


_RANGES = {
    "weight": (1, _WEIGHT_MAX, ""),
    "quota": (_TIME_MIN_NS, _QUOTA_MAX_NS, "ns"),
    "period": (_TIME_MIN_NS, _PERIOD_MAX_NS, "ns"),
}
"""Range and unit of each field."""


def set_group_line(number: int, field: str, value: int) -> str:
    """Returns the line that sets a field of a group in the simulator's text format.

    "" if the value is invalid.
    """
    if not 0 <= number < GROUPS_MAX or (number == 0 and field in ("parent", "weight")):
        return ""
    if field == "parent":
        return f"setgroup {number} parent {value}" if 0 <= value < number else ""
    if field == "quota" and value == 0:
        return f"setgroup {number} quota 0"
    least, most, unit = _RANGES[field]
    return f"setgroup {number} {field} {value}{unit}" if least <= value <= most else ""


class Groups:
    """The groups of a workload file by path. A parent has a lower number than its children."""

    def __init__(self) -> None:
        self._by_path: dict[str, TaskGroup] = {}

    def all(self) -> tuple[TaskGroup, ...]:
        """Returns all groups, parents before their children."""
        return tuple(sorted(self._by_path.values(), key=lambda group: group.number))

    def declare(self, node: Node) -> None:
        """Reads the section `groups` of the file."""
        declared: set[str] = set()
        for path, group_node in object_members(
            node, "an object whose keys are the paths of groups"
        ):
            if path in declared:
                raise JsonError(
                    group_node.line, f"{group_node.path}: given twice; remove one of the two"
                )
            declared.add(path)
            number = 0 if path == "/" else self._number(path, group_node)
            fields = members_by_key(group_node, "an object, which may be empty", _KEYS)
            if "weight" in fields and not number:
                raise value_error(fields["weight"], "no weight, because the root has no siblings")
            if "period" in fields and "quota" not in fields:
                raise value_error(fields["period"], "a `quota` with it")
            self._by_path[path] = TaskGroup(
                number,
                self._by_path[path].parent if number else 0,
                read_integer(fields["weight"], 1, _WEIGHT_MAX) if "weight" in fields else None,
                _read_duration_ns(fields.get("quota"), _QUOTA_MAX_NS),
                _read_duration_ns(fields.get("period"), _PERIOD_MAX_NS),
            )

    def number(self, node: Node) -> int:
        """Returns the number of the group that a task or phase names."""
        return 0 if node.value in ("/", "") else self._number(node.value, node)

    def _number(self, path: object, node: Node) -> int:
        """Returns the number of the group with this path; declares it and its parents."""
        if not isinstance(path, str) or len(path) > _PATH_MAX or not _PATH.fullmatch(path):
            hint = "; the object `groups` says what a group has" if isinstance(path, Object) else ""
            raise JsonError(node.line, f"{node.path}: expected {_PATH_EXPECTED}{hint}")
        if path in self._by_path:
            return self._by_path[path].number
        parent_path = path.rpartition("/")[0]
        parent = self._number(parent_path, node) if parent_path else 0
        number = sum(1 for path in self._by_path if path != "/") + 1
        if number >= GROUPS_MAX:
            raise value_error(node, f"at most {GROUPS_MAX - 1} groups in addition to the root")
        self._by_path[path] = TaskGroup(number, parent)
        return number


def _read_duration_ns(node: Node | None, most: int) -> int | None:
    if node is None:
        return None
    value = read_time(node)
    if value.in_ticks or not _TIME_MIN_NS <= value.number <= most:
        raise value_error(node, f"a time of 1 ms to {most // 10**9} s, and not in ticks")
    return int(value.number)

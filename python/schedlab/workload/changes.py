# SPDX-License-Identifier: MIT
"""Replaces values in workload files, such as `tasks.cpu.instance=40` (docs/workload-files.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from schedlab.base.files.json_lines import JsonError, Node, Object, Value, parse

Change = tuple[str, str]
"""Which value to change (keys joined by dots), and the new value (JSON, or text)."""
CHANGE_LINE = 0
"""Line number of a value that does not come from the file, but from a change."""


def parse_change(text: str) -> Change:
    """Parses a change such as "tasks.cpu.instance=40", or "tasks.cpu.run.values=@FILE".

    Raises ValueError if it is malformed, or if the file cannot be read.
    """
    place, equals, value = text.partition("=")
    if not equals or not place.strip() or not value.strip():
        raise ValueError("expected PLACE=VALUE, such as tasks.cpu.instance=40")
    value = value.strip()
    return place.strip(), _read_value_file(Path(value[1:])) if value.startswith("@") else value


def _read_value_file(path: Path) -> str:
    """Returns the JSON of a file or, if it is not JSON, a JSON array of its lines."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"@{path}: not a readable text file: {error}") from None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    try:
        parse(text)
    except JsonError:
        return f"[{', '.join(map(_json_item, lines))}]"
    return text.strip() if len(lines) != 1 or text.lstrip()[:1] in "[{" else f"[{lines[0]}]"


def _json_item(line: str) -> str:
    return line if re.fullmatch(r"\d+(\.\d+)?", line) else json.dumps(line)


def check_unique(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Returns the changes as given. Raises ValueError if two of them change the same value."""
    valid: dict[str, str] = {}
    for place, value in changes:
        if place in valid:
            raise ValueError(f"{place}: given more than once")
        valid[place] = value
    return tuple(valid.items())


def changes_text(changes: Iterable[Change]) -> str:
    """Returns the changes as `tasks.cpu.instance=40 tasks.cpu.run=300`, for users; "" if there are none."""
    return " ".join(f"{place}={value}" for place, value in changes)


def workload_title(manifest: Mapping[str, object]) -> str:
    """Returns the name of a run's workload, with the changes of its file."""
    changes = manifest.get("with")
    changed = changes_text(changes.items()) if isinstance(changes, dict) else ""
    return f"{manifest['workload']} with {changed}" if changed else str(manifest["workload"])


def apply_changes(top: Node, changes: Iterable[Change]) -> Node:
    """Applies changes to a parsed workload file, in order, and returns the result.

    If the last key of a change is missing, it is added, so that a task can get a new property. All
    other keys must exist. Raises JsonError, which lists the existing keys.
    """
    for place, value in changes:
        top = _replace_value(top, place, value, "")
    return top


def _replace_value(node: Node, rest: str, text: str, path: str) -> Node:
    """Returns the node with another value at the place `rest`; `path` leads to the node."""
    if not isinstance(node.value, Object):
        raise JsonError(
            CHANGE_LINE,
            f"{path or 'the file'}: not an object, so it has no {rest}; leave {rest} out",
        )
    key = _longest_key(node.value, rest)
    place = f"{path}.{key}" if path else key
    remaining = rest[len(key) + 1 :]
    current_values = [value for name, value in node.value.members if name == key]
    if len(current_values) > 1:
        raise JsonError(
            CHANGE_LINE,
            f"{place}: occurs {len(current_values)} times; give each its own name in the file, "
            f"such as {key}1 and {key}2",
        )
    if remaining and not current_values:
        keys = ", ".join(dict.fromkeys(name for name, _ in node.value.members))
        raise JsonError(
            CHANGE_LINE,
            f"{place}: there is no such key; {path or 'the file'} has {keys or 'no keys'}",
        )
    new_value = (
        _replace_value(current_values[0], remaining, text, place)
        if remaining
        else _parse_value(text, place)
    )
    members = (
        tuple((name, new_value if name == key else value) for name, value in node.value.members)
        if current_values
        else (*node.value.members, (key, new_value))
    )
    return Node(Object(members), node.line, node.path)


def _longest_key(node: Object, rest: str) -> str:
    """Returns the longest key of the object that `rest` begins with; keys may contain dots.

    Returns the first word if there is no such key.
    """
    matching = [key for key, _ in node.members if rest == key or rest.startswith(f"{key}.")]
    return max(matching, key=len) if matching else rest.partition(".")[0]


def _parse_value(text: str, path: str) -> Node:
    """Parses JSON. Text that is not JSON is a string, so that `5ticks` needs no quotation marks."""
    try:
        return _set_paths(parse(text), path)
    except JsonError:
        return Node(text, CHANGE_LINE, path)


def _set_paths(node: Node, path: str) -> Node:
    """Returns the node and all nodes in it, with paths that begin with `path`."""
    value: Value = node.value
    if isinstance(value, Object):
        value = Object(
            tuple((key, _set_paths(member, f"{path}.{key}")) for key, member in value.members)
        )
    elif isinstance(value, tuple):
        value = tuple(_set_paths(item, f"{path}.{index}") for index, item in enumerate(value))
    return Node(value, CHANGE_LINE, path)

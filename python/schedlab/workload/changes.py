# SPDX-License-Identifier: MIT
"""Replaces values of a workload file: `tasks.cpu.instance=40` (docs/workload-files.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from schedlab.base.files.json_lines import JsonError, Node, Object, Value, parse

Change = tuple[str, str]
"""The place, as keys joined by dots; and the value, as JSON or text."""
NOT_OF_THE_FILE = 0
"""The line number of values that a change added."""


def parse_change(text: str) -> Change:
    """Parses a change such as "tasks.cpu.instance=40", or "tasks.cpu.run.values=@FILE".

    Raises ValueError for a malformed change or an unreadable file.
    """
    place, equals, value = text.partition("=")
    if not equals or not place.strip() or not value.strip():
        raise ValueError("expected PLACE=VALUE, such as tasks.cpu.instance=40")
    value = value.strip()
    return place.strip(), _content(Path(value[1:])) if value.startswith("@") else value


def _content(path: Path) -> str:
    """Returns the value in a file: its JSON, or otherwise an array of its lines."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"@{path}: not a readable text file: {error}") from None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    try:
        parse(text)
    except JsonError:
        return f"[{', '.join(map(_item, lines))}]"
    return text.strip() if len(lines) != 1 or text.lstrip()[:1] in "[{" else f"[{lines[0]}]"


def _item(line: str) -> str:
    return line if re.fullmatch(r"\d+(\.\d+)?", line) else json.dumps(line)


def checked(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Returns the changes in the given order. Raises ValueError if a place is named twice."""
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


def changed(top: Node, changes: Iterable[Change]) -> Node:
    """Returns the file's value with these changes applied in order.

    A missing last key is added, so that a task can get a new property; all other keys must exist.
    Raises JsonError, which lists the existing keys.
    """
    for place, value in changes:
        top = _replaced(top, place, value, "")
    return top


def _replaced(node: Node, rest: str, text: str, path: str) -> Node:
    if not isinstance(node.value, Object):
        raise JsonError(NOT_OF_THE_FILE, f"{path or 'the file'}: {rest} does not exist in it")
    key = _key(node.value, rest)
    place = f"{path}.{key}" if path else key
    further = rest[len(key) + 1 :]
    old = [value for name, value in node.value.members if name == key]
    if len(old) > 1:
        raise JsonError(
            NOT_OF_THE_FILE,
            f"{place}: occurs {len(old)} times: expected names that distinguish them, "
            f"such as {key}1 and {key}2",
        )
    if further and not old:
        keys = ", ".join(dict.fromkeys(name for name, _ in node.value.members))
        raise JsonError(
            NOT_OF_THE_FILE, f"{place}: unknown: {path or 'the file'} has {keys or 'no keys'}"
        )
    new = _replaced(old[0], further, text, place) if further else _value(text, place)
    members = (
        tuple((name, new if name == key else value) for name, value in node.value.members)
        if old
        else (*node.value.members, (key, new))
    )
    return Node(Object(members), node.line, node.path)


def _key(node: Object, rest: str) -> str:
    """Returns the longest matching key, because keys may contain dots; otherwise the first word."""
    matching = [key for key, _ in node.members if rest == key or rest.startswith(f"{key}.")]
    return max(matching, key=len) if matching else rest.partition(".")[0]


def _value(text: str, path: str) -> Node:
    """Parses JSON, or returns other text as it is, so that `5ticks` needs no quotation marks."""
    try:
        return _moved(parse(text), path)
    except JsonError:
        return Node(text, NOT_OF_THE_FILE, path)


def _moved(node: Node, path: str) -> Node:
    """Returns the node with its paths changed to `path`."""
    value: Value = node.value
    if isinstance(value, Object):
        value = Object(
            tuple((key, _moved(member, f"{path}.{key}")) for key, member in value.members)
        )
    elif isinstance(value, tuple):
        value = tuple(_moved(item, f"{path}.{place}") for place, item in enumerate(value))
    return Node(value, NOT_OF_THE_FILE, path)

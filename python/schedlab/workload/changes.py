# SPDX-License-Identifier: MIT
"""Other values for a workload file: `tasks.cpu.instance=40` (docs/workload-files.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from schedlab.base.files.json_lines import JsonError, Node, Object, Value, parse

Change = tuple[str, str]
"""Where, keys with dots between them; and the value, JSON or a text."""
NOT_OF_THE_FILE = 0
"""The line of what a change brings in."""


def parse_change(text: str) -> Change:
    """The change in a text such as "tasks.cpu.instance=40", or "tasks.cpu.run.values=@FILE".
    ValueError says what is wrong."""
    place, equals, value = text.partition("=")
    if not equals or not place.strip() or not value.strip():
        raise ValueError("expected PLACE=VALUE, such as tasks.cpu.instance=40")
    value = value.strip()
    return place.strip(), _content(Path(value[1:])) if value.startswith("@") else value


def _content(path: Path) -> str:
    """The value that a file holds: JSON, or else what stands on each of its lines, as an array."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"@{path}: expected a text that can be read: {error}") from None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    try:
        parse(text)
    except JsonError:
        return f"[{', '.join(map(_item, lines))}]"
    return text.strip() if len(lines) != 1 or text.lstrip()[:1] in "[{" else f"[{lines[0]}]"


def _item(line: str) -> str:
    return line if re.fullmatch(r"\d+(\.\d+)?", line) else json.dumps(line)


def checked(changes: Iterable[Change]) -> tuple[Change, ...]:
    """The changes in the order given. Raises ValueError if a place is named twice."""
    valid: dict[str, str] = {}
    for place, value in changes:
        if place in valid:
            raise ValueError(f"{place}: given more than once")
        valid[place] = value
    return tuple(valid.items())


def changes_text(changes: Iterable[Change]) -> str:
    """`tasks.cpu.instance=40 tasks.cpu.run=300`, for people; "": none."""
    return " ".join(f"{place}={value}" for place, value in changes)


def workload_title(manifest: Mapping[str, object]) -> str:
    """A run's workload, with what was changed in its file."""
    changes = manifest.get("with")
    changed = changes_text(changes.items()) if isinstance(changes, dict) else ""
    return f"{manifest['workload']} with {changed}" if changed else str(manifest["workload"])


def changed(top: Node, changes: Iterable[Change]) -> Node:
    """The file's value with these changes, one after another.

    A key that is not there is added, so that a task can be given what it has not; everything on
    the way to it must be there. Raises JsonError, which says what keys are.
    """
    for place, value in changes:
        top = _replaced(top, place, value, "")
    return top


def _replaced(node: Node, rest: str, text: str, path: str) -> Node:
    if not isinstance(node.value, Object):
        raise JsonError(NOT_OF_THE_FILE, f"{path or 'the file'}: there is no {rest} in it")
    key = _key(node.value, rest)
    place = f"{path}.{key}" if path else key
    further = rest[len(key) + 1 :]
    old = [value for name, value in node.value.members if name == key]
    if len(old) > 1:
        raise JsonError(
            NOT_OF_THE_FILE,
            f"{place}: there are {len(old)} of it: expected names that tell them apart, such as"
            f" {key}1 and {key}2",
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
    """The longest that is there, since keys may have dots in them; or the first word."""
    matching = [key for key, _ in node.members if rest == key or rest.startswith(f"{key}.")]
    return max(matching, key=len) if matching else rest.partition(".")[0]


def _value(text: str, path: str) -> Node:
    """JSON, or a text as it is: `5ticks` need not be in quotation marks."""
    try:
        return _moved(parse(text), path)
    except JsonError:
        return Node(text, NOT_OF_THE_FILE, path)


def _moved(node: Node, path: str) -> Node:
    """The node as if it stood at `path`."""
    value: Value = node.value
    if isinstance(value, Object):
        value = Object(
            tuple((key, _moved(member, f"{path}.{key}")) for key, member in value.members)
        )
    elif isinstance(value, tuple):
        value = tuple(_moved(item, f"{path}.{place}") for place, item in enumerate(value))
    return Node(value, NOT_OF_THE_FILE, path)

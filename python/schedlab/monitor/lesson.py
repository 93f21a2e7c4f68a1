# SPDX-License-Identifier: MIT
"""Reads lessons: what runs, where it pauses, and the texts and questions shown there.

A lesson is a JSON file, because the standalone page reads it, too; docs/monitor.md describes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedlab.base.files.json_lines import JsonError, Node, Object, parse
from schedlab.base.files.reading import read_text
from schedlab.base.toolchain.policies import PolicyChoice, parse_choices, unknown
from schedlab.errors import FileRefused, WrongUsage, parameter
from schedlab.units import parse_time
from schedlab.workload.values import by_key, integer, members, real, wrong

FOLDER = Path(__file__).parent / "lessons"
"""The built-in lessons."""
EVENTS = ("demotion", "boost", "choice", "starvation", "policy", "started", "ended")
BYTES_MAX = 1 << 20
_KEYS = ("title", "policies", "cpus", "tick", "seed", "settings", "workloads", "pace", "steps")
_STEP = ("text", "until", "act", "ask")
_ACTS = ("policy", "tunable", "value", "start", "pace")
_UNTIL = ("time", "event", "of")
_QUESTION = ("question", "options", "answer", "because")
_INTEGERS = (-(2**63), 2**63 - 1)


@dataclass(frozen=True)
class Lesson:
    """A lesson: the systems that it starts, and its complete content for the page."""

    policies: tuple[PolicyChoice, ...]
    cpus: int
    tick_ns: int
    seed: int
    settings: tuple[tuple[str, int], ...]
    workloads: tuple[str, ...]
    json_object: Mapping[str, Any]


def ready() -> list[str]:
    """Returns the names of the built-in lessons."""
    return sorted(file.stem for file in FOLDER.glob("*.json"))


def read_lesson(text: str) -> Lesson:
    """Returns the lesson of a name or a file. Raises WrongUsage if it is missing or invalid."""
    is_file = text.endswith(".json") or "/" in text
    if not is_file and text not in ready():
        raise WrongUsage(unknown("lesson", text, ready()), what=parameter("lesson", text))
    file = Path(text) if is_file else FOLDER / f"{text}.json"
    try:
        return _lesson(parse(read_text(file, BYTES_MAX)))
    except FileRefused as error:
        raise WrongUsage(error.why, what=parameter("lesson", file), fix=error.fix) from None
    except JsonError as error:
        raise WrongUsage(f"line {error.line}: {error}", what=parameter("lesson", file)) from None
    except ValueError as error:
        raise WrongUsage(str(error), what=parameter("lesson", file)) from None


def _lesson(node: Node) -> Lesson:
    """Converts JSON to a lesson. Raises ValueError if it is invalid."""
    node_fields = by_key(node, "an object with title, policies and steps", _KEYS)
    for key in ("title", "policies", "steps"):
        if key not in node_fields:
            raise wrong(node, f"an object with {key}")
    _text(node_fields["title"])
    for step in _list(node_fields["steps"], "an array of at least one step"):
        _check_step(step)
    if "pace" in node_fields:
        real(node_fields["pace"], 1e-9, 1000)
    settings = members(node_fields["settings"], "an object") if "settings" in node_fields else ()
    names = (
        _list(node_fields["workloads"], "an array of names", 0)
        if "workloads" in node_fields
        else ()
    )
    return Lesson(
        policies=parse_choices(_text(node_fields["policies"])),
        cpus=integer(node_fields["cpus"], 1, 1024) if "cpus" in node_fields else 1,
        tick_ns=parse_time(_text(node_fields["tick"]) if "tick" in node_fields else "10ms"),
        seed=integer(node_fields["seed"], 0, _INTEGERS[1]) if "seed" in node_fields else 1,
        settings=tuple((name, integer(value, *_INTEGERS)) for name, value in settings),
        workloads=tuple(_text(name) for name in names),
        json_object=_plain(node),
    )


def _check_step(step: Node) -> None:
    node_fields = by_key(step, "a step", _STEP)
    if "text" not in node_fields:
        raise wrong(step, "a step with text")
    _text(node_fields["text"])
    until = by_key(node_fields["until"], "an object", _UNTIL) if "until" in node_fields else {}
    if "time" in until:
        parse_time(_text(until["time"]))
    elif until and until.get("event", step).value not in EVENTS:
        raise wrong(until.get("event", step), f"a time, or an event of {', '.join(EVENTS)}")
    act = by_key(node_fields["act"], "an object", _ACTS) if "act" in node_fields else {}
    for key, value in act.items():
        if key == "value":
            integer(value, *_INTEGERS)
        elif key == "pace":
            real(value, 1e-9, 1000)
        else:
            _text(value)
    if "ask" in node_fields:
        _check_question(node_fields["ask"])


def _check_question(node: Node) -> None:
    node_fields = by_key(node, "a question", _QUESTION)
    for key in _QUESTION:
        if key not in node_fields:
            raise wrong(node, f"a question with {key}")
    texts = {key: _text(node_fields[key]) for key in _QUESTION if key != "options"}
    options = [_text(option) for option in _list(node_fields["options"], "an array of names")]
    if texts["answer"] not in options:
        raise wrong(node_fields["answer"], "one of the options")


def _text(node: Node) -> str:
    if not isinstance(node.value, str) or not node.value:
        raise wrong(node, "a text")
    return node.value


def _list(node: Node, expected: str, least: int = 1) -> tuple[Node, ...]:
    if not isinstance(node.value, tuple) or len(node.value) < least:
        raise wrong(node, expected)
    return node.value


def _plain(node: Node) -> Any:
    """Converts a node to plain Python values, as `json.loads` does."""
    if isinstance(node.value, Object):
        return {key: _plain(value) for key, value in node.value.members}
    return [*map(_plain, node.value)] if isinstance(node.value, tuple) else node.value

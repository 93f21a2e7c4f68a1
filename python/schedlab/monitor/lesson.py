# SPDX-License-Identifier: MIT
"""Reads lessons: what runs, where it pauses, and the texts and questions shown there.

A lesson is a JSON file, because the standalone page reads it, too; docs/monitor.md describes it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from schedlab.base.files.json_lines import JsonError, Node, Object, parse
from schedlab.base.files.reading import read_text
from schedlab.base.toolchain.policies import PolicyChoice, describe_unknown_name, parse_choices
from schedlab.errors import FileRefused, WrongUsage, format_parameter
from schedlab.units import parse_time
from schedlab.workload.values import (
    Fields,
    integer_reader,
    members_by_key,
    object_members,
    read_array,
    read_integer,
    read_nonblank_text,
    read_real,
    value_error,
)

LESSONS_FOLDER = Path(__file__).parent / "lessons"
"""The built-in lessons."""
LESSON_EVENTS = ("demotion", "boost", "choice", "starvation", "policy", "started", "ended")
LESSON_BYTES_MAX = 1 << 20
_LESSON_KEYS = (
    "title",
    "policies",
    "cpus",
    "tick",
    "seed",
    "settings",
    "workloads",
    "pace",
    "steps",
)
_REQUIRED_KEYS = ("title", "policies", "steps")
_STEP_KEYS = ("text", "until", "act", "ask")
_UNTIL_KEYS = ("time", "event", "of")
_QUESTION_KEYS = ("question", "options", "answer", "because")
_INTEGER_RANGE = (-(2**63), 2**63 - 1)
_NO_MEMBERS: dict[str, Node] = {}


@dataclass(frozen=True)
class Lesson:
    """A lesson: the systems that it starts, and its complete content as JSON for the page."""

    policies: tuple[PolicyChoice, ...]
    cpus: int
    tick_ns: int
    seed: int
    settings: tuple[tuple[str, int], ...]
    workloads: tuple[str, ...]
    json_object: Mapping[str, Any]


def built_in_lessons() -> list[str]:
    """Returns the names of the built-in lessons (files in FOLDER)."""
    return sorted(file.stem for file in LESSONS_FOLDER.glob("*.json"))


def read_lesson(text: str) -> Lesson:
    """Reads a built-in lesson by name, or a lesson file by path.

    Raises WrongUsage if the lesson does not exist or is invalid.
    """
    is_file = text.endswith(".json") or "/" in text
    if not is_file and text not in built_in_lessons():
        raise WrongUsage(
            describe_unknown_name("lesson", text, built_in_lessons()),
            what=format_parameter("lesson", text),
        )
    file = Path(text) if is_file else LESSONS_FOLDER / f"{text}.json"
    try:
        return _read_lesson_node(parse(read_text(file, LESSON_BYTES_MAX)))
    except FileRefused as error:
        raise WrongUsage(error.why, what=format_parameter("lesson", file), fix=error.fix) from None
    except JsonError as error:
        raise WrongUsage(
            f"line {error.line}: {error}", what=format_parameter("lesson", file)
        ) from None
    except ValueError as error:
        raise WrongUsage(str(error), what=format_parameter("lesson", file)) from None


def _read_lesson_node(node: Node) -> Lesson:
    """Converts parsed JSON to a lesson. Raises ValueError if a field is invalid."""
    fields = Fields(node, "an object with title, policies and steps", _LESSON_KEYS, _REQUIRED_KEYS)
    read_nonblank_text(fields["title"])
    for step in read_array(fields["steps"], "an array of at least one step", least=1):
        _check_step(step)
    fields.read("pace", _read_pace, 1.0)
    settings = fields.read("settings", partial(object_members, expected="an object"), ())
    workloads = fields.read("workloads", partial(read_array, expected="an array of names"), ())
    return Lesson(
        policies=parse_choices(read_nonblank_text(fields["policies"])),
        cpus=fields.read("cpus", integer_reader(1, 1024), 1),
        tick_ns=parse_time(fields.read("tick", read_nonblank_text, "10ms")),
        seed=fields.read("seed", integer_reader(0, _INTEGER_RANGE[1]), 1),
        settings=tuple((name, read_integer(value, *_INTEGER_RANGE)) for name, value in settings),
        workloads=tuple(map(read_nonblank_text, workloads)),
        json_object=_plain_value(node),
    )


def _read_pace(node: Node) -> float:
    return read_real(node, 1e-9, 1000)


def _check_step(step: Node) -> None:
    fields = Fields(step, "a step", _STEP_KEYS, ("text",))
    read_nonblank_text(fields["text"])
    until = fields.read(
        "until", partial(members_by_key, expected="an object", keys=_UNTIL_KEYS), _NO_MEMBERS
    )
    if "time" in until:
        parse_time(read_nonblank_text(until["time"]))
    elif until and until.get("event", step).value not in LESSON_EVENTS:
        raise value_error(
            until.get("event", step), f"a time, or an event of {', '.join(LESSON_EVENTS)}"
        )
    act = fields.read(
        "act", partial(members_by_key, expected="an object", keys=tuple(_ACT_READERS)), _NO_MEMBERS
    )
    for key, value in act.items():
        _ACT_READERS[key](value)
    if "ask" in fields:
        _check_question(fields["ask"])


_ACT_READERS: Mapping[str, Callable[[Node], object]] = {
    **dict.fromkeys(("policy", "tunable", "start"), read_nonblank_text),
    "value": integer_reader(*_INTEGER_RANGE),
    "pace": _read_pace,
}
"""The keys of an act, and the reader of each value."""


def _check_question(node: Node) -> None:
    fields = Fields(node, "a question", _QUESTION_KEYS, _QUESTION_KEYS)
    texts = {key: read_nonblank_text(fields[key]) for key in _QUESTION_KEYS if key != "options"}
    options = read_array(fields["options"], "an array of names", least=1)
    if texts["answer"] not in map(read_nonblank_text, options):
        raise value_error(fields["answer"], "one of the options")


def _plain_value(node: Node) -> Any:
    """Converts a node to plain Python values, as `json.loads` does."""
    if isinstance(node.value, Object):
        return {key: _plain_value(value) for key, value in node.value.members}
    return [*map(_plain_value, node.value)] if isinstance(node.value, tuple) else node.value

# SPDX-License-Identifier: MIT
"""Lessons: files that say what runs, where it stands still, and what is said and asked there.

A file is JSON, since the page without a server reads it, too. docs/monitor.md has what it says.
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
from schedlab.workload.values import by_key, members, real, whole, wrong

FOLDER = Path(__file__).parent / "lessons"
"""Those that are ready."""
EVENTS = ("demotion", "boost", "choice", "starvation", "policy", "started", "ended")
BYTES_MAX = 1 << 20
_KEYS = ("title", "policies", "cpus", "tick", "seed", "settings", "workloads", "pace", "steps")
_STEP = ("text", "until", "act", "ask")
_ACTS = ("policy", "tunable", "value", "start", "pace")
_UNTIL = ("time", "event", "of")
_QUESTION = ("question", "options", "answer", "because")
_WHOLE = (-(2**63), 2**63 - 1)


@dataclass(frozen=True)
class Lesson:
    """A lesson: what is started for it, and all of it as the page plays it."""

    policies: tuple[PolicyChoice, ...]
    cpus: int
    tick_ns: int
    seed: int
    settings: tuple[tuple[str, int], ...]
    workloads: tuple[str, ...]
    told: Mapping[str, Any]


def ready() -> list[str]:
    """Returns the names of the lessons that are ready."""
    return sorted(file.stem for file in FOLDER.glob("*.json"))


def read_lesson(wanted: str) -> Lesson:
    """Returns the lesson of a name, or of a file. WrongUsage: there is none, or it says what cannot be."""
    is_file = wanted.endswith(".json") or "/" in wanted
    if not is_file and wanted not in ready():
        raise WrongUsage(unknown("lesson", wanted, ready()), what=parameter("lesson", wanted))
    file = Path(wanted) if is_file else FOLDER / f"{wanted}.json"
    try:
        return _lesson(parse(read_text(file, BYTES_MAX)))
    except FileRefused as error:
        raise WrongUsage(error.why, what=parameter("lesson", file), fix=error.fix) from None
    except JsonError as error:
        raise WrongUsage(f"line {error.line}: {error}", what=parameter("lesson", file)) from None
    except ValueError as error:
        raise WrongUsage(str(error), what=parameter("lesson", file)) from None


def _lesson(node: Node) -> Lesson:
    """Raises ValueError."""
    found = by_key(node, "an object with title, policies and steps", _KEYS)
    for key in ("title", "policies", "steps"):
        if key not in found:
            raise wrong(node, f"an object with {key}")
    _text(found["title"])
    for step in _list(found["steps"], "an array of one step at least"):
        _check_step(step)
    if "pace" in found:
        real(found["pace"], 1e-9, 1000)
    settings = members(found["settings"], "an object") if "settings" in found else ()
    names = _list(found["workloads"], "an array of names", 0) if "workloads" in found else ()
    return Lesson(
        policies=parse_choices(_text(found["policies"])),
        cpus=whole(found["cpus"], 1, 1024) if "cpus" in found else 1,
        tick_ns=parse_time(_text(found["tick"]) if "tick" in found else "10ms"),
        seed=whole(found["seed"], 0, _WHOLE[1]) if "seed" in found else 1,
        settings=tuple((name, whole(value, *_WHOLE)) for name, value in settings),
        workloads=tuple(_text(each) for each in names),
        told=_plain(node),
    )


def _check_step(step: Node) -> None:
    found = by_key(step, "a step", _STEP)
    if "text" not in found:
        raise wrong(step, "a step with text")
    _text(found["text"])
    until = by_key(found["until"], "an object", _UNTIL) if "until" in found else {}
    if "time" in until:
        parse_time(_text(until["time"]))
    elif until and until.get("event", step).value not in EVENTS:
        raise wrong(until.get("event", step), f"a time, or an event of {', '.join(EVENTS)}")
    act = by_key(found["act"], "an object", _ACTS) if "act" in found else {}
    for key, value in act.items():
        if key == "value":
            whole(value, *_WHOLE)
        elif key == "pace":
            real(value, 1e-9, 1000)
        else:
            _text(value)
    if "ask" in found:
        _check_question(found["ask"])


def _check_question(node: Node) -> None:
    found = by_key(node, "a question", _QUESTION)
    for key in _QUESTION:
        if key not in found:
            raise wrong(node, f"a question with {key}")
    texts = {key: _text(found[key]) for key in _QUESTION if key != "options"}
    options = [_text(each) for each in _list(found["options"], "an array of names")]
    if texts["answer"] not in options:
        raise wrong(found["answer"], "one of the options")


def _text(node: Node) -> str:
    if not isinstance(node.value, str) or not node.value:
        raise wrong(node, "a text")
    return node.value


def _list(node: Node, expected: str, least: int = 1) -> tuple[Node, ...]:
    if not isinstance(node.value, tuple) or len(node.value) < least:
        raise wrong(node, expected)
    return node.value


def _plain(node: Node) -> Any:
    """The value, as JSON's reader of Python would give it."""
    if isinstance(node.value, Object):
        return {key: _plain(value) for key, value in node.value.members}
    return [*map(_plain, node.value)] if isinstance(node.value, tuple) else node.value

# SPDX-License-Identifier: MIT
"""Lessons: files that say what runs, where it stands still, and what is said and asked there.

A file is JSON, since the page without a server reads it, too. docs/monitor.md has what it says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedlab.base.files.reading import read_text
from schedlab.base.toolchain.policies import PolicyChoice, parse_choices, unknown
from schedlab.errors import FileRefused, WrongUsage, parameter
from schedlab.units import parse_time

FOLDER = Path(__file__).parent / "lessons"
"""Those that are ready."""
EVENTS = ("demotion", "boost", "choice", "starvation", "policy", "started", "ended")
BYTES_MAX = 1 << 20
_ACTS = {"policy": str, "tunable": str, "value": int, "start": str, "pace": (int, float)}
_KEYS = {"title", "policies", "cpus", "tick", "seed", "settings", "workloads", "pace", "steps"}
_STEP = {"text", "until", "act", "ask"}
_QUESTION = ("question", "answer", "because")


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
        return _lesson(json.loads(read_text(file, BYTES_MAX)))
    except FileRefused as error:
        raise WrongUsage(error.why, what=parameter("lesson", file), fix=error.fix) from None
    except (ValueError, RecursionError, _Wrong) as error:
        raise WrongUsage(str(error), what=parameter("lesson", file)) from None


class _Wrong(Exception):
    """What is wrong in a lesson."""


def _lesson(told: Any) -> Lesson:
    lesson = _object(told, "the lesson", _KEYS)
    _text(lesson, "title")
    policies = _text(lesson, "policies")
    steps = lesson.get("steps")
    if not isinstance(steps, list) or not steps:
        raise _Wrong("steps: a list is expected, with one step at least")
    for number, step in enumerate(steps, 1):
        _check_step(step, f"step {number}")
    _number(lesson, "pace", 0.1)
    settings = _object(lesson.get("settings", {}), "settings")
    names = lesson.get("workloads", [])
    _check_texts(names, "workloads")
    return Lesson(
        policies=parse_choices(policies),
        cpus=_whole(lesson, "cpus", 1),
        tick_ns=parse_time(_text({"tick": "10ms"} | lesson, "tick")),
        seed=_whole(lesson, "seed", 1),
        settings=tuple((name, _whole(settings, name, 0)) for name in settings),
        workloads=tuple(names),
        told=lesson,
    )


def _check_step(step: Any, where: str) -> None:
    step = _object(step, where, _STEP)
    _text(step, "text", where)
    until = _object(step.get("until", {}), f"{where}: until", {"time", "event", "of"})
    if "time" in until:
        parse_time(_text(until, "time", f"{where}: until"))
    elif until and until.get("event") not in EVENTS:
        raise _Wrong(f"{where}: until: a time, or an event of {', '.join(EVENTS)}, is expected")
    act = _object(step.get("act", {}), f"{where}: act", set(_ACTS))
    for key, value in act.items():
        if not isinstance(value, _ACTS[key]):  # type: ignore[arg-type]
            raise _Wrong(f"{where}: act: {key} cannot be {value!r}")
    if "ask" in step:
        question = _object(step["ask"], f"{where}: ask", {*_QUESTION, "options"})
        for key in _QUESTION:
            _text(question, key, f"{where}: ask")
        _check_texts(question.get("options"), f"{where}: ask: options")
        if question["answer"] not in question["options"]:
            raise _Wrong(f"{where}: ask: the answer is none of the options")


def _object(value: Any, where: str, known: Iterable[str] | None = None) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Wrong(f"{where}: an object is expected, not {value!r}")
    for key in value:
        if known is not None and key not in known:
            raise _Wrong(f"{where}: {unknown('entry', key, sorted(known))}")
    return value


def _text(of: dict[str, Any], key: str, where: str = "the lesson") -> str:
    value = of.get(key)
    if not isinstance(value, str) or not value:
        raise _Wrong(f"{where}: {key}: a text is expected, not {value!r}")
    return value


def _whole(of: dict[str, Any], key: str, given: int) -> int:
    value = of.get(key, given)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _Wrong(f"{key}: a whole number is expected, not {value!r}")
    return value


def _number(of: dict[str, Any], key: str, given: float) -> None:
    value = of.get(key, given)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1000:
        raise _Wrong(f"{key}: a number from 0 to 1000 is expected, not {value!r}")


def _check_texts(values: Any, where: str) -> None:
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise _Wrong(f"{where}: a list of names is expected, not {values!r}")

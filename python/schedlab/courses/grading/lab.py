# SPDX-License-Identifier: MIT
"""Reads labs: folders with a text for students, an initial file, a solution and tests (docs/grading.md)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import cycle
from pathlib import Path
from typing import Any

from schedlab.base.display.numbers import TIME, milliseconds
from schedlab.base.files.json_lines import JsonError, Node, Object, parse
from schedlab.base.files.reading import read_bytes
from schedlab.courses.submissions.trial import BEGINS_NS, CPUS_MAX, PROCESSES_MAX, Form, Trial
from schedlab.errors import FileRefused, WrongUsage
from schedlab.metrics.registry import METRICS
from schedlab.paths import ROOT
from schedlab.units import parse_time
from schedlab.workload import workload_files
from schedlab.workload.model import WorkloadFile
from schedlab.workload.values import by_key, integer, is_number, members, wrong

FILE, TEXT, START, SOLUTION = "lab.json", "README.md", "start.c", "solution.c"
LAWS = {
    "ends": "the run ends, with all processes",
    "work-conserving": "no CPU idles for longer than a tick while a process waits for one",
}
COSTS = ("none", "textbook", "kernel")
_NAME = re.compile(r"[a-z][a-z0-9-]{0,23}")
_HEADER = re.compile(r"[a-z_]+\.h")
_KINDS = ("law", "order", "levels", "figure", "instructions", "kernel")
_POINTS_MAX = 1000


@dataclass(frozen=True)
class Expectation:
    """What a test expects and how many points it gives; `kind` is one of _KINDS."""

    kind: str
    points: Fraction
    law: str = ""
    """A key of `LAWS`."""
    figure: str = ""
    """A column of the metrics without its suffix `_ns`."""
    of: str = ""
    """A group of processes; empty for the whole workload."""
    at_least: float | None = None
    at_most: float | None = None
    """Nanoseconds for times; a multiple of the solution's for instructions."""
    levels: tuple[int, ...] = ()
    all_or_nothing: bool = False
    """True to give no partial credit for an order."""

    @property
    def title(self) -> str:
        """A description of the expectation."""
        if self.kind == "law":
            return LAWS[self.law]
        if self.kind == "order":
            return "the same decisions as the solution's"
        if self.kind == "levels":
            return f"levels of {self.of}: {', '.join(map(str, self.levels))}"
        if self.kind == "kernel":
            return "the kernel, too, runs it to the end, in the same order"
        if self.kind == "instructions":
            return f"instructions of all hooks at most {self.at_most:g} times the solution's"
        return f"{self.figure} of {self.of or 'the workload'}{self._bounds()}"

    def _bounds(self) -> str:
        least = "" if self.at_least is None else f" at least {self.shown(self.at_least)}"
        most = "" if self.at_most is None else f" at most {self.shown(self.at_most)}"
        return f"{least},{most}" if least and most else least or most

    def shown(self, value: float) -> str:
        """Formats a value of the figure with its unit."""
        if self.is_time:
            return milliseconds(value)
        return f"{value:,.4f}" if isinstance(value, float) else f"{value:,}"

    @property
    def is_time(self) -> bool:
        return FIGURES[self.figure]


@dataclass(frozen=True)
class LabTest(Trial):
    """A run and its expectations."""

    title: str
    hidden: bool
    expectations: tuple[Expectation, ...]

    @property
    def points(self) -> Fraction:
        """The maximum number of points."""
        return sum((expectation.points for expectation in self.expectations), Fraction(0))


@dataclass(frozen=True)
class Lab:
    """A lab, read from its folder."""

    folder: Path
    title: str
    form: Form
    """The policy that submissions must define."""
    tests: tuple[LabTest, ...]
    sha256: str
    """Hash of its tests and its solution."""

    @property
    def points(self) -> Fraction:
        """The maximum number of points."""
        return sum((test.points for test in self.tests), Fraction(0))

    @property
    def solution(self) -> Path:
        return self.folder / SOLUTION


FIGURES = {
    metric.column.removesuffix("_ns"): metric.kind.quantity is TIME
    for metric in METRICS
    if not metric.derived
} | {"remark_max": False}
"""Figures that tests may limit, and whether each is a time."""


def labs_folder() -> Path:
    """Returns the folder of the built-in labs."""
    return ROOT / "labs"


def find_lab(name: str) -> Lab:
    """Returns the lab of a folder or the built-in lab of a name. Raises WrongUsage, FileRefused."""
    for folder in (Path(name), labs_folder() / name):
        if (folder / FILE).is_file():
            return read(folder)
    ready = ", ".join(sorted(file.parent.name for file in labs_folder().glob(f"*/{FILE}")))
    raise WrongUsage(f"{name}: contains no {FILE}; name a lab's folder, or one of: {ready}")


def read(folder: Path) -> Lab:
    """Reads a lab's folder. Raises FileRefused with the line and the expected content."""
    file = folder / FILE
    with _refusing(file):
        content, solution = read_bytes(file), read_bytes(folder / SOLUTION)
        return _Reader(folder, hashlib.sha256(content + b"\0" + solution).hexdigest()).lab(
            parse(content.decode())
        )


def read_tests(file: Path) -> tuple[LabTest, ...]:
    """Reads tests without a lab. Raises FileRefused."""
    with _refusing(file):
        content = read_bytes(file)
        return _Reader(file.parent, hashlib.sha256(content).hexdigest()).tests(
            parse(content.decode())
        )


def made_test(made: Mapping[str, Any]) -> LabTest:
    """Returns a test from a program's data in the form of lab.json. Raises JsonError."""
    return _Reader(Path(), "").test("made", parse(json.dumps(made)))


@contextmanager
def _refusing(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileRefused(f"{error.filename or file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise FileRefused(f"{file}: expected UTF-8: {error.reason}") from None
    except JsonError as error:
        raise FileRefused(f"{file}:{error.line}: {error}") from None


class _Reader:
    def __init__(self, folder: Path, sha256: str) -> None:
        self.folder = folder
        self.sha256 = sha256

    def lab(self, node: Node) -> Lab:
        keys = ("title", "policy", "headers", "tests", "mistakes")
        top = by_key(node, "an object with title, policy and tests", keys)
        for needed in ("title", "policy", "tests"):
            if needed not in top:
                raise wrong(node, f"`{needed}` in it")
        return Lab(
            self.folder,
            _text(top["title"]),
            Form(
                _matching(top["policy"], _NAME, "a name of a-z, 0-9 and -"),
                _list(
                    top.get("headers"), lambda node: _matching(node, _HEADER, "such as task_list.h")
                ),
            ),
            self.tests(top["tests"]),
            self.sha256,
        )

    def tests(self, node: Node) -> tuple[LabTest, ...]:
        lab_tests = members(node, "an object whose keys are the names of tests")
        if not lab_tests:
            raise wrong(node, "at least one test in it")
        names = [name for name, _ in lab_tests]
        if len(set(names)) < len(names):
            raise wrong(node, "each name of a test once")
        return tuple(
            replace(self.test(name, test_node), policy_clock_ns=clock, policy_run_time_ns=run_time)
            for (name, test_node), (clock, run_time) in zip(
                lab_tests, cycle(BEGINS_NS), strict=False
            )
        )

    def test(self, name: str, node: Node) -> LabTest:
        keys = ("says", "workload", "cpus", "seed", "tick", "limit", "costs", "set", "hidden")
        node_keys = by_key(node, "an object with workload and expect", (*keys, "expect"))
        for needed in ("workload", "expect"):
            if needed not in node_keys:
                raise wrong(node, f"`{needed}` in it")
        tick_ns = _time(node_keys.get("tick"), 1_000_000, 1)
        expectations = _list(node_keys["expect"], lambda fields: _expectation(fields, tick_ns))
        if not expectations:
            raise wrong(node_keys["expect"], "at least one expectation in it")
        return LabTest(
            name,
            self.workload(node_keys["workload"]),
            _bounded_integer(node_keys.get("cpus"), 1, 1, CPUS_MAX),
            _bounded_integer(node_keys.get("seed"), 1, 0, 2**63 - 1),
            tick_ns,
            _time(node_keys.get("limit"), 10_000_000_000, tick_ns),
            _one_of(node_keys["costs"], COSTS) if "costs" in node_keys else "none",
            _settings(node_keys.get("set")),
            _text(node_keys["says"]) if "says" in node_keys else "",
            _truth(node_keys.get("hidden")),
            expectations,
        )

    def workload(self, node: Node) -> WorkloadFile:
        """Returns a workload defined in the lab, or read from a file of its folder."""
        if isinstance(node.value, Object):
            workload = workload_files.from_node(node, self.sha256)
        else:
            name = _text(node)
            file = (self.folder / name).resolve()
            if self.folder.resolve() not in file.parents:
                raise wrong(node, "a workload, or the name of a file in the lab's folder")
            workload = workload_files.read(file)
            workload_files.check_known_keys(node, workload)
        if workload.total() + 3 > PROCESSES_MAX:
            raise wrong(node, f"a workload of at most {PROCESSES_MAX - 3} processes")
        return workload


def _expectation(node: Node, tick_ns: int) -> Expectation:
    bounds = ("of", "at_least", "at_most", "are", "credit")
    node_fields = by_key(node, "an object", ("points", *_KINDS, *bounds))
    kinds = [kind for kind in _KINDS if kind in node_fields]
    if len(kinds) != 1:
        raise wrong(node, f"one of {', '.join(_KINDS)} in it")
    if "points" not in node_fields:
        raise wrong(node, "`points` in it")
    points = Fraction(_bounded_integer(node_fields["points"], 0, 0, _POINTS_MAX))
    return _MADE[kinds[0]](node_fields, node_fields[kinds[0]], points, tick_ns)


_Fields = Mapping[str, Node]


def _law(fields: _Fields, node: Node, points: Fraction, _tick_ns: int) -> Expectation:
    return Expectation("law", points, law=_one_of(node, tuple(LAWS)))


def _order(node_fields: _Fields, node: Node, points: Fraction, _tick_ns: int) -> Expectation:
    _one_of(node, ("solution",))
    credit = (
        _one_of(node_fields["credit"], ("beginning", "all"))
        if "credit" in node_fields
        else "beginning"
    )
    return Expectation("order", points, all_or_nothing=credit == "all")


def _levels(node_fields: _Fields, node: Node, points: Fraction, _tick_ns: int) -> Expectation:
    levels = _list(node_fields.get("are"), lambda fields: integer(fields, 0, 2**31))
    if not levels:
        raise wrong(node, "beside it `are`: the levels in their order")
    return Expectation("levels", points, of=_text(node), levels=levels)


def _figure(node_fields: _Fields, node: Node, points: Fraction, tick_ns: int) -> Expectation:
    figure = _one_of(node, tuple(sorted(FIGURES)))
    if "at_least" not in node_fields and "at_most" not in node_fields:
        raise wrong(node, "beside it `at_least` or `at_most`")

    def bound(name: str) -> float | None:
        if name not in node_fields:
            return None
        if FIGURES[figure]:
            return _time(node_fields[name], 0, tick_ns)
        if not is_number(node_fields[name].value):
            raise wrong(node_fields[name], "a number")
        value: Any = node_fields[name].value
        return float(value) if isinstance(value, float) else int(value)

    of = _text(node_fields["of"]) if "of" in node_fields else ""
    return Expectation(
        "figure",
        points,
        figure=figure,
        of=of,
        at_least=bound("at_least"),
        at_most=bound("at_most"),
    )


def _instructions(node_fields: _Fields, node: Node, points: Fraction, _tick_ns: int) -> Expectation:
    _one_of(node, ("solution",))
    most = node_fields["at_most"].value if "at_most" in node_fields else None
    if not isinstance(most, int | float) or isinstance(most, bool) or most < 1:
        raise wrong(node, "beside it `at_most`: how often the solution's, from 1 on")
    return Expectation("instructions", points, at_most=float(most))


def _kernel(fields: _Fields, node: Node, points: Fraction, _tick_ns: int) -> Expectation:
    if node.value is not True:
        raise wrong(node, "true")
    return Expectation("kernel", points)


_MADE: Mapping[str, Callable[[_Fields, Node, Fraction, int], Expectation]] = {
    "law": _law,
    "order": _order,
    "levels": _levels,
    "figure": _figure,
    "instructions": _instructions,
    "kernel": _kernel,
}


def _text(node: Node) -> str:
    if not isinstance(node.value, str) or not node.value.strip():
        raise wrong(node, "a text")
    return node.value


def _matching(node: Node, form: re.Pattern[str], expected: str) -> str:
    text = _text(node)
    if not form.fullmatch(text):
        raise wrong(node, expected)
    return text


def _one_of(node: Node, choices: tuple[str, ...]) -> str:
    if node.value not in choices:
        raise wrong(node, f"one of {', '.join(choices)}")
    return str(node.value)


def _bounded_integer(node: Node | None, standard: int, least: int, most: int) -> int:
    return standard if node is None else integer(node, least, most)


def _truth(node: Node | None) -> bool:
    if node is not None and not isinstance(node.value, bool):
        raise wrong(node, "true or false")
    return bool(node and node.value)


def _time(node: Node | None, standard: int, tick_ns: int) -> int:
    """Converts "3ms" or "5ticks" to nanoseconds."""
    if node is None:
        return standard
    text = _text(node)
    ticks = re.fullmatch(r"(\d{1,6})ticks?", text)
    try:
        return int(ticks[1]) * tick_ns if ticks else parse_time(text)
    except ValueError as error:
        raise wrong(node, f"a time such as 3ms or 5ticks ({error})") from None


def _settings(node: Node | None) -> dict[str, int]:
    if node is None:
        return {}
    entries = members(node, "an object of tunables")
    return {name: integer(item, -(2**63), 2**63 - 1) for name, item in entries}


def _list(node: Node | None, read_one: Callable[[Node], Any]) -> tuple[Any, ...]:
    if node is None:
        return ()
    if not isinstance(node.value, tuple):
        raise wrong(node, "an array")
    return tuple(read_one(item) for item in node.value)


def mistakes(folder: Path) -> dict[str, dict[str, float]]:
    """Returns the points by test that the solution should get with each common mistake."""
    node = dict(members(parse((folder / FILE).read_text()), "an object")).get("mistakes")
    if node is None:
        return {}
    return {
        name: {test: float(points.value) for test, points in members(points_node, "points by test")}  # type: ignore[arg-type]
        for name, points_node in members(node, "an object")
    }

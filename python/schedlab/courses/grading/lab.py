# SPDX-License-Identifier: MIT
"""Reads labs: folders with a text for students, an initial file, a solution and tests (docs/grading.md)."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

from schedlab.base.display.numbers import TIME, milliseconds
from schedlab.base.files.json_lines import JsonError, Node, Object, parse
from schedlab.base.files.reading import read_bytes
from schedlab.courses.submissions.trial import (
    CPUS_MAX,
    INITIAL_TIMES_NS,
    PROCESSES_MAX,
    PolicyForm,
    Trial,
)
from schedlab.errors import FileRefused, WrongUsage
from schedlab.metrics.registry import METRICS
from schedlab.paths import ROOT
from schedlab.units import parse_time
from schedlab.workload import workload_files
from schedlab.workload.model import WorkloadFile
from schedlab.workload.values import (
    Fields,
    integer_reader,
    is_number,
    object_members,
    read_array,
    read_choice,
    read_integer,
    read_nonblank_text,
    value_error,
)

LAB_FILE, TEXT_FILE, START_FILE, SOLUTION_FILE = "lab.json", "README.md", "start.c", "solution.c"
INVARIANTS = {
    "ends": "the run ends, with all processes",
    "work-conserving": "no CPU idles for longer than a tick while a process waits for one",
}
COST_MODELS = ("none", "textbook", "kernel")
_NAME_PATTERN = re.compile(r"[a-z][a-z0-9-]{0,23}")
_HEADER_PATTERN = re.compile(r"[a-z_]+\.h")
_EXPECTATION_KINDS = ("law", "order", "levels", "figure", "instructions", "kernel")
_POINTS_MAX = 1000


@dataclass(frozen=True)
class Expectation:
    """What a test expects and how many points it gives; `kind` is one of _EXPECTATION_KINDS."""

    kind: str
    points: Fraction
    invariant: str = ""
    """A key of `INVARIANTS`."""
    figure: str = ""
    """A column of the metrics without its suffix `_ns`."""
    group: str = ""
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
            return INVARIANTS[self.invariant]
        if self.kind == "order":
            return "the same decisions as the solution's"
        if self.kind == "levels":
            return f"levels of {self.group}: {', '.join(map(str, self.levels))}"
        if self.kind == "kernel":
            return "the kernel, too, runs it to the end, in the same order"
        if self.kind == "instructions":
            return f"instructions of all hooks at most {self.at_most:g} times the solution's"
        return f"{self.figure} of {self.group or 'the workload'}{self._limits_text()}"

    def _limits_text(self) -> str:
        """Returns the limits of the figure in words."""
        lower = "" if self.at_least is None else f" at least {self.format_value(self.at_least)}"
        upper = "" if self.at_most is None else f" at most {self.format_value(self.at_most)}"
        return f"{lower},{upper}" if lower and upper else lower or upper

    def format_value(self, value: float) -> str:
        """Formats a value of the figure with its unit."""
        if self.is_time:
            return milliseconds(value)
        return f"{value:,.4f}" if isinstance(value, float) else f"{value:,}"

    @property
    def is_time(self) -> bool:
        """Returns whether the figure is a time."""
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
    form: PolicyForm
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
        """Returns the path of the solution's source."""
        return self.folder / SOLUTION_FILE


FIGURES = {
    metric.column.removesuffix("_ns"): metric.kind.quantity is TIME
    for metric in METRICS
    if not metric.derived
} | {"remark_max": False}
"""Figures that tests may limit, and whether each is a time."""


def built_in_labs_folder() -> Path:
    """Returns the folder of the built-in labs."""
    return ROOT / "labs"


def built_in_labs() -> list[str]:
    """Returns the names of the built-in labs."""
    return sorted(file.parent.name for file in built_in_labs_folder().glob(f"*/{LAB_FILE}"))


def find_lab(name: str) -> Lab:
    """Returns the lab of a folder or the built-in lab of a name. Raises WrongUsage, FileRefused."""
    for folder in (Path(name), built_in_labs_folder() / name):
        if (folder / LAB_FILE).is_file():
            return read(folder)
    lab_names = ", ".join(built_in_labs())
    raise WrongUsage(f"{name}: contains no {LAB_FILE}; name a lab's folder, or one of: {lab_names}")


def read(folder: Path) -> Lab:
    """Reads a lab's folder. Raises FileRefused with the line and the expected content."""
    file = folder / LAB_FILE
    with _as_file_refused(file):
        content, solution = read_bytes(file), read_bytes(folder / SOLUTION_FILE)
        return _LabReader(folder, hashlib.sha256(content + b"\0" + solution).hexdigest()).lab(
            parse(content.decode())
        )


def read_tests(file: Path) -> tuple[LabTest, ...]:
    """Reads tests without a lab. Raises FileRefused."""
    with _as_file_refused(file):
        content = read_bytes(file)
        return _LabReader(file.parent, hashlib.sha256(content).hexdigest()).tests(
            parse(content.decode())
        )


def parse_test(content: Mapping[str, Any]) -> LabTest:
    """Returns a test from a program's data in the form of lab.json. Raises JsonError."""
    return _LabReader(Path(), "").test("made", parse(json.dumps(content)))


@contextmanager
def _as_file_refused(file: Path) -> Iterator[None]:
    """Converts errors of the block to FileRefused with the file's name."""
    try:
        yield
    except OSError as error:
        raise FileRefused(f"{error.filename or file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise FileRefused(f"{file}: not UTF-8 ({error.reason}); save it as UTF-8") from None
    except JsonError as error:
        raise FileRefused(f"{file}:{error.line}: {error}") from None


class _LabReader:
    """Reads the tests of lab.json."""

    def __init__(self, folder: Path, sha256: str) -> None:
        """Prepares to read. `folder`: the lab's folder; `sha256`: the hash of the lab."""
        self.folder = folder
        self.sha256 = sha256

    def lab(self, node: Node) -> Lab:
        required_keys = ("title", "policy", "tests")
        keys = (*required_keys, "headers", "mistakes")
        fields = Fields(node, "an object with title, policy and tests", keys, required_keys)
        headers = fields.read("headers", read_array, ())
        return Lab(
            self.folder,
            read_nonblank_text(fields["title"]),
            PolicyForm(
                _read_matching(fields["policy"], _NAME_PATTERN, "a name of a-z, 0-9 and -"),
                tuple(
                    _read_matching(header, _HEADER_PATTERN, "such as task_list.h")
                    for header in headers
                ),
            ),
            self.tests(fields["tests"]),
            self.sha256,
        )

    def tests(self, node: Node) -> tuple[LabTest, ...]:
        lab_tests = object_members(node, "an object whose keys are the names of tests")
        if not lab_tests:
            raise value_error(node, "at least one test in it")
        names = [name for name, _ in lab_tests]
        if len(set(names)) < len(names):
            raise value_error(node, "each name of a test once")
        return tuple(
            replace(self.test(name, test_node), policy_clock_ns=clock, policy_run_time_ns=run_time)
            for (name, test_node), (clock, run_time) in zip(
                lab_tests, cycle(INITIAL_TIMES_NS), strict=False
            )
        )

    def test(self, name: str, node: Node) -> LabTest:
        required_keys = ("workload", "expect")
        keys = (*required_keys, "says", "cpus", "seed", "tick", "limit", "costs", "set", "hidden")
        fields = Fields(node, "an object with workload and expect", keys, required_keys)
        tick_ns = fields.read("tick", partial(_read_time, tick_ns=1), 1_000_000)
        expected = read_array(fields["expect"], "an array of at least one expectation", least=1)
        return LabTest(
            name,
            self.workload(fields["workload"]),
            fields.read("cpus", integer_reader(1, CPUS_MAX), 1),
            fields.read("seed", integer_reader(0, 2**63 - 1), 1),
            tick_ns,
            fields.read("limit", partial(_read_time, tick_ns=tick_ns), 10_000_000_000),
            fields.read("costs", partial(read_choice, choices=COST_MODELS), "none"),
            fields.read("set", _read_tunables, {}),
            fields.read("says", read_nonblank_text, ""),
            fields.read("hidden", _read_boolean, False),
            tuple(_read_expectation(item, tick_ns) for item in expected),
        )

    def workload(self, node: Node) -> WorkloadFile:
        """Returns a workload defined in the lab, or read from a file of its folder."""
        if isinstance(node.value, Object):
            workload = workload_files.parse_workload_node(node, self.sha256)
        else:
            name = read_nonblank_text(node)
            file = (self.folder / name).resolve()
            if self.folder.resolve() not in file.parents:
                raise value_error(node, "a workload, or the name of a file in the lab's folder")
            workload = workload_files.read_workload_file(file)
            workload_files.check_known_keys(node, workload)
        if workload.total() + 3 > PROCESSES_MAX:
            raise value_error(node, f"a workload of at most {PROCESSES_MAX - 3} processes")
        return workload


def _read_expectation(node: Node, tick_ns: int) -> Expectation:
    """Reads an expectation. `tick_ns`: the length of a tick, the unit of its times."""
    bounds = ("of", "at_least", "at_most", "are", "credit")
    fields = Fields(node, "an object", ("points", *_EXPECTATION_KINDS, *bounds), ("points",))
    kinds = [kind for kind in _EXPECTATION_KINDS if kind in fields]
    if len(kinds) != 1:
        raise value_error(node, f"one of {', '.join(_EXPECTATION_KINDS)} in it")
    kind = kinds[0]
    points = Fraction(read_integer(fields["points"], 0, _POINTS_MAX))
    return Expectation(kind, points, **_EXPECTATION_READERS[kind](fields, fields[kind], tick_ns))


_Fields = dict[str, Any]
"""Fields of an Expectation."""


def _read_rule(_fields: Fields, node: Node, _tick_ns: int) -> _Fields:
    """Reads an expectation of a rule in INVARIANTS."""
    return {"invariant": read_choice(node, tuple(INVARIANTS))}


def _read_order(fields: Fields, node: Node, _tick_ns: int) -> _Fields:
    """Reads an expectation of an order of time slices."""
    read_choice(node, ("solution",))
    credit = fields.read("credit", partial(read_choice, choices=("beginning", "all")), "beginning")
    return {"all_or_nothing": credit == "all"}


def _read_levels(fields: Fields, node: Node, _tick_ns: int) -> _Fields:
    """Reads an expectation that tasks are on certain levels."""
    levels = tuple(map(integer_reader(0, 2**31), fields.read("are", read_array, ())))
    if not levels:
        raise value_error(node, "the key `are`, too: the levels in their order")
    return {"group": read_nonblank_text(node), "levels": levels}


def _read_figure(fields: Fields, node: Node, tick_ns: int) -> _Fields:
    """Reads an expectation of a metric's limits."""
    figure = read_choice(node, tuple(sorted(FIGURES)))
    if "at_least" not in fields and "at_most" not in fields:
        raise value_error(node, "the key `at_least` or `at_most`, too")
    bound = partial(_read_time, tick_ns=tick_ns) if FIGURES[figure] else _read_bound
    return {
        "figure": figure,
        "group": fields.read("of", read_nonblank_text, ""),
        "at_least": fields.read("at_least", bound, None),
        "at_most": fields.read("at_most", bound, None),
    }


def _read_bound(node: Node) -> float:
    """Returns a limit of a figure that is no time."""
    if not is_number(node.value):
        raise value_error(node, "a number")
    return node.value


def _read_instructions(fields: Fields, node: Node, _tick_ns: int) -> _Fields:
    read_choice(node, ("solution",))
    most = fields["at_most"].value if "at_most" in fields else None
    if not isinstance(most, int | float) or isinstance(most, bool) or most < 1:
        raise value_error(
            node, "the key `at_most`, too: a multiple of the solution's count, from 1 on"
        )
    return {"at_most": float(most)}


def _read_kernel(_fields: Fields, node: Node, _tick_ns: int) -> _Fields:
    """Reads the expectation that the kernel decides like the simulator."""
    if node.value is not True:
        raise value_error(node, "true")
    return {}


_EXPECTATION_READERS: Mapping[str, Callable[[Fields, Node, int], _Fields]] = {
    "law": _read_rule,
    "order": _read_order,
    "levels": _read_levels,
    "figure": _read_figure,
    "instructions": _read_instructions,
    "kernel": _read_kernel,
}


def _read_matching(node: Node, pattern: re.Pattern[str], expected: str) -> str:
    """Returns a text that matches the pattern. Raises JsonError with `expected`."""
    text = read_nonblank_text(node)
    if not pattern.fullmatch(text):
        raise value_error(node, expected)
    return text


def _read_boolean(node: Node) -> bool:
    """Returns a boolean. Raises JsonError."""
    if not isinstance(node.value, bool):
        raise value_error(node, "true or false")
    return node.value


def _read_time(node: Node, tick_ns: int) -> int:
    """Converts "3ms" or "5ticks" to nanoseconds."""
    text = read_nonblank_text(node)
    ticks = re.fullmatch(r"(\d{1,6})ticks?", text)
    try:
        return int(ticks[1]) * tick_ns if ticks else parse_time(text)
    except ValueError as error:
        raise value_error(node, f"a time such as 3ms or 5ticks ({error})") from None


def _read_tunables(node: Node) -> dict[str, int]:
    entries = object_members(node, "an object of tunables")
    return {name: read_integer(item, -(2**63), 2**63 - 1) for name, item in entries}


def read_mistakes(folder: Path) -> dict[str, dict[str, float]]:
    """Returns the points by test that the solution should get with each common mistake."""
    node = dict(object_members(parse((folder / LAB_FILE).read_text()), "an object")).get("mistakes")
    if node is None:
        return {}
    return {
        name: {
            test: float(points.value)  # type: ignore[arg-type]
            for test, points in object_members(points_node, "points by test")
        }
        for name, points_node in object_members(node, "an object")
    }

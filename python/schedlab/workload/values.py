# SPDX-License-Identifier: MIT
"""Reads and checks single values of a workload file."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from fractions import Fraction
from functools import partial
from typing import TypeGuard, TypeVar

from schedlab.base.files.json_lines import JsonError, Node, Object, Value
from schedlab.workload.changes import CHANGE_LINE
from schedlab.workload.distributions import (
    Constant,
    Distribution,
    Exponential,
    IntegerDistribution,
    LogNormal,
    Mixture,
    Pareto,
    UniformTimes,
)
from schedlab.workload.model import (
    CPUS_MAX,
    FILE_ATTRIBUTES,
    ROOT_PROGRAM,
    TASKGROUP,
    Attribute,
    CpuSet,
)
from schedlab.workload.times import RandomTime, Time

T = TypeVar("T")
Default = TypeVar("Default")

NAME_MAX = 26
"""Maximum characters of a name. The simulator allows 31, including a prefix for the kind."""
PROCESS_NAME_MAX = 15
"""Number of characters of a process's name that the schedlab kernel and Linux keep."""
COUNT_MAX = 2**32 - 1
NANOSECONDS_MAX = 10**18

NAME = re.compile(rf"[A-Za-z0-9_.+/:-]{{1,{NAME_MAX}}}")
_TIME = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)(ns|us|ms|s|ticks?)")
_UNIT_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


def value_error(node: Node, expected: str) -> JsonError:
    """Returns an error that names the value and what was expected."""
    place = f"{node.path}: " if node.path else ""
    return JsonError(node.line, f"{place}{_abbreviate(node)}: expected {expected}")


class Notes:
    """Collects warnings about parts of a workload file that are ignored or changed, one per reason."""

    _SHOWN = 4
    """Maximum number of places in the file that a warning names."""
    _LABEL_MAX = 100
    """Maximum characters of a place's name."""

    def __init__(self) -> None:
        self._places: dict[str, list[tuple[int, str]]] = {}

    def add(self, node: Node, warning: str, label: str = "") -> None:
        """Adds a warning about a value, such as "ignored: ...".

        `label`: name of the place instead of its path.
        """
        self._places.setdefault(warning, []).append(
            (node.line, (label or node.path)[: self._LABEL_MAX])
        )

    def given_again(self, node: Node) -> None:
        """Adds a warning that a key is repeated, and that its last value counts."""
        self.add(node, GIVEN_AGAIN_NOTE)

    def unknown(self, key: str, node: Node, known: Iterable[str]) -> None:
        """Adds a warning that a key is ignored.

        Raises JsonError if the key comes from a change, which must be valid.
        """
        if node.line == CHANGE_LINE:
            raise JsonError(node.line, f"{node.path}: unknown: expected one of {', '.join(known)}")
        shown = len(self._places.get(UNKNOWN_NOTE, ())) < self._SHOWN and len(key) <= NAME_MAX
        close = get_close_matches(key, known, 1, 0.75) if shown else ()
        suggestion = f" (did you mean {close[0]}?)" if close else ""
        self.add(node, UNKNOWN_NOTE, f"{node.path}{suggestion}")

    def all(self) -> tuple[str, ...]:
        """Returns the warnings, sorted by the first line that they concern."""
        return tuple(
            f"line {places[0][0]}: {', '.join(label for _, label in places[: self._SHOWN])}"
            f"{f' and {len(places) - self._SHOWN} more' if len(places) > self._SHOWN else ''}: {what}"
            for what, places in sorted(self._places.items(), key=lambda item: item[1][0][0])
        )


UNKNOWN_NOTE = "ignored: unknown key"
GIVEN_AGAIN_NOTE = "dropped: the key comes again, and its last value counts, as in rt-app"


def _abbreviate(node: Node) -> str:
    if isinstance(node.value, Object):
        return "an object"
    if isinstance(node.value, tuple):
        return "an array"
    return json.dumps(node.value, ensure_ascii=False)[:40]


def object_members(node: Node, expected: str) -> tuple[tuple[str, Node], ...]:
    """Returns the members of an object. Raises JsonError for another value."""
    if not isinstance(node.value, Object):
        raise value_error(node, expected)
    return node.value.members


def members_by_key(
    node: Node, expected: str, keys: tuple[str, ...], notes: Notes | None = None
) -> dict[str, Node]:
    """Returns the members of an object by key.

    Raises JsonError for unknown or repeated keys. With `notes`, adds warnings instead; the last
    value of a repeated key then counts.
    """
    by_name: dict[str, Node] = {}
    for key, value in object_members(node, expected):
        if key not in keys and notes:
            notes.unknown(key, value, keys)
            continue
        if key not in keys:
            raise JsonError(value.line, f"{value.path}: unknown: expected one of {', '.join(keys)}")
        if key in by_name and notes:
            notes.given_again(by_name[key])
        elif key in by_name:
            raise JsonError(value.line, f"{value.path}: given twice; remove one of the two")
        by_name[key] = value
    return by_name


class Fields(dict[str, Node]):
    """The members of an object by key."""

    def __init__(
        self, node: Node, expected: str, keys: tuple[str, ...], needed: tuple[str, ...] = ()
    ) -> None:
        """Raises JsonError for unknown and repeated keys, and if one of `needed` is missing."""
        super().__init__(members_by_key(node, expected, keys))
        for key in needed:
            _required_field(node, self, key)

    def read(self, key: str, reader: Callable[[Node], T], default: Default) -> T | Default:
        """Returns what `reader` makes of a member's value, or the default without this member."""
        return reader(self[key]) if key in self else default


def integer_reader(least: int, most: int) -> Callable[[Node], int]:
    """Returns a reader of whole numbers between the bounds."""
    return partial(read_integer, least=least, most=most)


def read_any_text(node: Node) -> str:
    """Returns a text, which may be empty."""
    if not isinstance(node.value, str):
        raise value_error(node, "a text")
    return node.value


def read_nonblank_text(node: Node) -> str:
    """Returns a text that is not blank."""
    if not read_any_text(node).strip():
        raise value_error(node, "a text")
    return read_any_text(node)


def read_choice(node: Node, choices: tuple[str, ...]) -> str:
    """Returns a text that is one of the choices."""
    if node.value not in choices:
        raise value_error(node, f"one of {', '.join(choices)}")
    return str(node.value)


def read_array(node: Node, expected: str = "an array", least: int = 0) -> tuple[Node, ...]:
    """Returns the items of an array that has at least `least` items."""
    if not isinstance(node.value, tuple) or len(node.value) < least:
        raise value_error(node, expected)
    return node.value


def read_integer(node: Node, least: int, most: int, expected: str | None = None) -> int:
    """Returns a whole number within bounds."""
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise value_error(node, expected or f"a whole number from {least} to {most}")
    return value


def is_number(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def read_time(node: Node) -> Time:
    """Returns a time: a number of microseconds, as in rt-app, or text with a unit."""
    value = node.value
    if isinstance(value, str) and (match := _TIME.fullmatch(value)):
        number = Fraction(match[1]) if "." in match[1] else int(match[1])
        if match[2].startswith("tick"):
            if number <= COUNT_MAX:
                return Time(number, in_ticks=True)
        elif (nanoseconds := number * _UNIT_NS[match[2]]) <= NANOSECONDS_MAX:
            if nanoseconds != int(nanoseconds):
                raise value_error(node, "a time that is a whole number of nanoseconds")
            return Time(int(nanoseconds))
    if is_number(value) and 0 <= value <= NANOSECONDS_MAX // 1000:
        return Time(round(value * 1000))
    raise value_error(node, 'a time: a number of microseconds, or a text such as "3ms" or "5ticks"')


def read_time_or_distribution(node: Node) -> Time | RandomTime | Distribution:
    """Returns a fixed time, or a distribution of times (which rt-app does not have)."""
    if not isinstance(node.value, Object):
        return read_time(node)
    if any(key == "distribution" for key, _ in node.value.members):
        return read_distribution(node)
    fields = members_by_key(node, _RANDOM_TIME_EXPECTED, ("from", "to", "below", "step"))
    if ("to" in fields) == ("below" in fields):
        raise value_error(node, f"{_RANDOM_TIME_EXPECTED}, or with `below` instead of `to`")
    end = fields.get("to") or fields["below"]
    last = read_time(end)
    first = read_time(fields["from"]) if "from" in fields else Time(0, last.in_ticks)
    step = read_time(fields["step"]) if "step" in fields else Time(1)
    if step.number == 0:
        raise value_error(fields["step"], "a step longer than 0")
    if first.in_ticks == last.in_ticks and first.number > last.number:
        raise value_error(end, "a time that is not before `from`")
    return RandomTime(first, last, step, end_counts="to" in fields)


_RANDOM_TIME_EXPECTED = 'a time, or an object such as {"from": 0, "to": "1tick", "step": "10ns"}'


# --- distributions

_DISTRIBUTION_KEYS = {
    "constant": ("mean",),
    "uniform": ("mean",),
    "exponential": ("mean",),
    "lognormal": ("mean", "sigma"),
    "pareto": ("mean", "least", "most", "shape"),
    "hyperexponential": ("means", "weights"),
    "values": ("values", "weights"),
}
"""Names of each distribution's parameters."""
_DISTRIBUTION_EXPECTED = 'an object such as {"distribution": "exponential", "mean": 1000}'
VALUES_MAX = 1_000_000
_SIGMA_MAX = 10
_SHAPE_MAX = 1000


def read_distribution(node: Node, others: tuple[str, ...] = ()) -> Distribution:
    """Returns a distribution of times. `others`: names of further keys that the object may have."""
    members = dict(object_members(node, _DISTRIBUTION_EXPECTED))
    kind = members["distribution"].value if "distribution" in members else None
    if not isinstance(kind, str) or kind not in _DISTRIBUTION_KEYS:
        raise value_error(
            members.get("distribution", node),
            f"a `distribution`: {', '.join(_DISTRIBUTION_KEYS)}",
        )
    fields = members_by_key(
        node, _DISTRIBUTION_EXPECTED, ("distribution", *_DISTRIBUTION_KEYS[kind], *others)
    )
    if kind == "pareto":
        return _pareto(node, fields)
    if kind in ("hyperexponential", "values"):
        key, part = ("means", Exponential) if kind == "hyperexponential" else ("values", Constant)
        times = tuple(
            part(read_time(item)) for item in _read_items(_required_field(node, fields, key))
        )
        return Mixture(times, read_weights(fields.get("weights"), len(times)))
    mean = read_time(_required_field(node, fields, "mean"))
    if kind == "lognormal":
        return LogNormal(mean, read_real(_required_field(node, fields, "sigma"), 0, _SIGMA_MAX))
    return {"constant": Constant, "uniform": UniformTimes, "exponential": Exponential}[kind](mean)


def _pareto(node: Node, fields: Mapping[str, Node]) -> Pareto:
    """Reads a Pareto distribution, whose mean or minimum is given."""
    shape = read_real(_required_field(node, fields, "shape"), 0.01, _SHAPE_MAX)
    if "mean" in fields and not fields.keys() & {"least", "most"}:
        if shape <= 1:
            raise value_error(
                fields["shape"], "a number above 1, because otherwise there is no mean"
            )
        return Pareto(_read_length_ns(fields["mean"]) * (shape - 1) / shape, shape)
    least = _read_length_ns(_required_field(node, fields, "least"))
    most = _read_length_ns(fields["most"]) if "most" in fields else math.inf
    if "mean" in fields or least >= most:
        raise value_error(node, "either `mean`, or `least` and a `most` above it, with `shape`")
    if math.isinf(most) and shape <= 1:
        raise value_error(
            fields["shape"], "a number above 1, or a `most`, because otherwise there is no mean"
        )
    return Pareto(least, shape, most)


def _read_length_ns(node: Node) -> int:
    """Returns a length of time in nanoseconds."""
    length = read_time(node)
    if length.in_ticks or length.number == 0:
        raise value_error(node, "a time longer than 0, and not in ticks")
    return int(length.number)


def _required_field(node: Node, fields: Mapping[str, Node], key: str) -> Node:
    if key not in fields:
        raise value_error(node, f"`{key}` in it")
    return fields[key]


def _read_items(node: Node) -> tuple[Node, ...]:
    if not isinstance(node.value, tuple) or not 1 <= len(node.value) <= VALUES_MAX:
        raise value_error(node, f"an array of 1 to {VALUES_MAX} values")
    return node.value


def read_real(node: Node, least: float, most: float) -> float:
    """Returns a number within bounds."""
    if not is_number(node.value) or not least <= node.value <= most:
        raise value_error(node, f"a number from {least} to {most}")
    return float(node.value)


def read_times(node: Node) -> tuple[Time, ...]:
    """Returns times in ascending order."""
    durations = tuple(read_time(item) for item in _read_items(node))
    if any(a.nanoseconds(10**6) > b.nanoseconds(10**6) for a, b in itertools.pairwise(durations)):
        raise value_error(node, "times in their order")
    return durations


def read_weights(node: Node | None, count: int) -> tuple[float, ...]:
    """Returns `count` weights; equal ones if the file has none."""
    if node is None:
        return (1.0,) * count
    numbers = tuple(read_real(item, 0, 10**12) for item in _read_items(node))
    if len(numbers) != count or sum(numbers) <= 0:
        raise value_error(node, f"{count} weights, not all of them 0: one for each value")
    return numbers


def read_integer_distribution(node: Node, least: int, most: int) -> IntegerDistribution:
    """Returns a whole number or a distribution of whole numbers, as a distribution."""
    if not isinstance(node.value, Object):
        return IntegerDistribution((read_integer(node, least, most),), (1.0,))
    expected = 'a whole number, or an object such as {"values": [1, 5], "weights": [9, 1]}'
    fields = members_by_key(node, expected, ("values", "weights", "from", "to"))
    if fields.keys() == {"from", "to"}:
        first = read_integer(fields["from"], least, most)
        last = read_integer(fields["to"], first, min(most, first + VALUES_MAX - 1))
        return IntegerDistribution(tuple(range(first, last + 1)), (1.0,) * (last - first + 1))
    values = tuple(
        read_integer(item, least, most)
        for item in _read_items(_required_field(node, fields, "values"))
    )
    return IntegerDistribution(values, read_weights(fields.get("weights"), len(values)))


def read_duration_ns(node: Node) -> int | None:
    """Returns rt-app's `duration` in ns.

    None if it is 0 or less: the run then lasts until all tasks have ended.
    """
    value = node.value
    if is_number(value) and value <= 0:
        return None
    if is_number(value) and 0 < value <= NANOSECONDS_MAX // 10**9:
        return round(value * 10**9)
    raise value_error(node, "-1 (until all tasks have ended), or a number of seconds")


class MachineNames:
    """Gives things in the file names that machines accept; different names stay different."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._fitting: dict[str, str] = {}
        self._renamed = 0

    def fitting(self, name: str, node: Node, is_distinct: bool = True) -> str:
        """Returns the name itself if machines accept it.

        Otherwise, returns its beginning, "~" and a number, and adds a warning. (A valid name
        contains no "~".) `is_distinct`: kernels truncate the name, so its beginning must be unique.
        """
        if name not in self._fitting:
            fitting = name
            if not NAME.fullmatch(name) or name == ROOT_PROGRAM or not is_distinct:
                self._renamed += 1
                end = f"~{self._renamed}"
                fitting = (
                    _INVALID_NAME_CHARACTERS.sub("_", name)[: PROCESS_NAME_MAX - len(end)] + end
                )
                self._notes.add(node, _RENAMED_NOTE, f"{name[:NAME_MAX]} ({fitting})")
            self._fitting[name] = fitting
        return self._fitting[name]


_INVALID_NAME_CHARACTERS = re.compile(r"[^A-Za-z0-9_.+/:-]")
_RENAMED_NOTE = (
    f"called as in brackets: a name has 1 to {NAME_MAX} letters, digits and _ . + / : -, is not"
    f" `{ROOT_PROGRAM}`, and differs from other tasks' in its first {PROCESS_NAME_MAX}"
)


def read_rounds(node: Node | None, standard: int) -> float:
    """Returns the number of rounds of rt-app's `loop`; infinite for −1."""
    if node is None:
        number = standard
    elif node.value == 0:
        raise value_error(node, "-1 (forever), or a number of at least 1")
    else:
        number = read_integer(node, -1, COUNT_MAX, "-1 (forever), or a number of at least 1")
    return math.inf if number == -1 else number


def read_attributes(properties: Mapping[str, Node]) -> dict[str, int]:
    """Returns the attributes that are numbers. (A group is a path instead.)"""
    return {
        name: _read_attribute(properties[key], attribute)
        for name, attribute in FILE_ATTRIBUTES.items()
        if name != TASKGROUP and (key := attribute.key or name) in properties
    }


def _read_cpus(node: Node) -> int:
    """Returns a set of CPUs, given as an array of numbers (as in rt-app) or in Linux's notation."""
    expected = f'CPUs from 0 to {CPUS_MAX - 1}: an array such as [0, 1], or a text such as "0-3,8"'
    value = node.value
    ranges: list[tuple[int, int]] = []
    if isinstance(value, tuple):
        numbers = [read_integer(item, 0, CPUS_MAX - 1, expected) for item in value]
        ranges = [(number, number) for number in numbers]
    elif isinstance(value, str) and _CPU_LIST.fullmatch(value):
        bounds = [part.partition("-") for part in value.split(",")]
        ranges = [(int(first), int(last or first)) for first, _, last in bounds]
    if not ranges or any(not first <= last < CPUS_MAX for first, last in ranges):
        raise value_error(node, expected)
    mask = 0
    for first, last in ranges:
        mask |= (1 << last - first + 1) - 1 << first
    return mask


_CPU_LIST = re.compile(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*")


def _read_attribute(node: Node, attribute: Attribute) -> int:
    if isinstance(attribute, CpuSet):
        return _read_cpus(node)
    if not attribute.is_time:
        return read_integer(node, attribute.least, attribute.most)
    value = read_time(node)
    if value.in_ticks or value.number > attribute.most:
        raise value_error(node, "a time of at most 1000 seconds, and not in ticks")
    return int(value.number)

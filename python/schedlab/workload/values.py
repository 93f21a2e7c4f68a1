# SPDX-License-Identifier: MIT
"""Reads and validates values of a workload file."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from fractions import Fraction
from typing import TypeGuard

from schedlab.base.files.json_lines import JsonError, Node, Object, Value
from schedlab.workload.changes import NOT_OF_THE_FILE
from schedlab.workload.distributions import (
    Constant,
    Distribution,
    Even,
    Exponential,
    IntegerDistribution,
    LogNormal,
    Mixture,
    Pareto,
)
from schedlab.workload.model import CPUS_MAX, GIVEN, ROOT, TASKGROUP, Attribute, CpuSet
from schedlab.workload.times import Drawn, Time

NAME_MAX = 26
"""Characters; the simulator's names have 31, including a prefix for the type."""
PROCESS_NAME_MAX = 15
"""Characters that the schedlab kernel and Linux keep of a process's name."""
COUNT_MAX = 2**32 - 1
NANOSECONDS_MAX = 10**18

NAME = re.compile(rf"[A-Za-z0-9_.+/:-]{{1,{NAME_MAX}}}")
_TIME = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)(ns|us|ms|s|ticks?)")
_NANOSECONDS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


def wrong(node: Node, expected: str) -> JsonError:
    """Returns an error that names the value and what was expected."""
    place = f"{node.path}: " if node.path else ""
    return JsonError(node.line, f"{place}{_shown(node)}: expected {expected}")


class Notes:
    """Collects warnings about ignored or changed parts of a workload file, one for each reason."""

    _SHOWN = 4
    """The most places that a warning names."""
    _LABEL_MAX = 100
    """Longest name of a place, in characters."""

    def __init__(self) -> None:
        self._places: dict[str, list[tuple[int, str]]] = {}

    def add(self, node: Node, what: str, label: str = "") -> None:
        """Adds a warning about a value, such as "ignored: ...". `label` replaces the value's path."""
        self._places.setdefault(what, []).append(
            (node.line, (label or node.path)[: self._LABEL_MAX])
        )

    def given_again(self, node: Node) -> None:
        """Adds a warning about a repeated key, whose last value counts."""
        self.add(node, GIVEN_AGAIN)

    def unknown(self, key: str, node: Node, known: Iterable[str]) -> None:
        """Adds a warning about an ignored key. Raises JsonError if the key comes from a change,
        because changes must be valid.
        """
        if node.line == NOT_OF_THE_FILE:
            raise JsonError(node.line, f"{node.path}: unknown: expected one of {', '.join(known)}")
        shown = len(self._places.get(UNKNOWN, ())) < self._SHOWN and len(key) <= NAME_MAX
        close = get_close_matches(key, known, 1, 0.75) if shown else ()
        suggestion = f" (did you mean {close[0]}?)" if close else ""
        self.add(node, UNKNOWN, f"{node.path}{suggestion}")

    def all(self) -> tuple[str, ...]:
        """Returns the warnings, in the order of their first lines."""
        return tuple(
            f"line {places[0][0]}: {', '.join(label for _, label in places[: self._SHOWN])}"
            f"{f' and {len(places) - self._SHOWN} more' if len(places) > self._SHOWN else ''}: {what}"
            for what, places in sorted(self._places.items(), key=lambda item: item[1][0][0])
        )


UNKNOWN = "ignored: unknown key"
GIVEN_AGAIN = "dropped: the key comes again, and its last value counts, as in rt-app"


def _shown(node: Node) -> str:
    if isinstance(node.value, Object):
        return "an object"
    if isinstance(node.value, tuple):
        return "an array"
    return json.dumps(node.value, ensure_ascii=False)[:40]


def members(node: Node, expected: str) -> tuple[tuple[str, Node], ...]:
    """Returns the members of an object. Raises JsonError for another value."""
    if not isinstance(node.value, Object):
        raise wrong(node, expected)
    return node.value.members


def by_key(
    node: Node, expected: str, keys: tuple[str, ...], notes: Notes | None = None
) -> dict[str, Node]:
    """Returns the members of an object by key. Raises JsonError for unknown or repeated keys.

    With `notes`, it ignores unknown keys instead, and the last value of a repeated key counts.
    """
    by_name: dict[str, Node] = {}
    for key, value in members(node, expected):
        if key not in keys and notes:
            notes.unknown(key, value, keys)
            continue
        if key not in keys:
            raise JsonError(value.line, f"{value.path}: unknown: expected {', '.join(keys)}")
        if key in by_name and notes:
            notes.given_again(by_name[key])
        elif key in by_name:
            raise JsonError(value.line, f"{value.path}: given twice: expected once")
        by_name[key] = value
    return by_name


def integer(node: Node, least: int, most: int, expected: str | None = None) -> int:
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise wrong(node, expected or f"a whole number from {least} to {most}")
    return value


def is_number(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def time(node: Node) -> Time:
    """Returns a time: a number of microseconds, as in rt-app, or text with a unit."""
    value = node.value
    if isinstance(value, str) and (match := _TIME.fullmatch(value)):
        number = Fraction(match[1]) if "." in match[1] else int(match[1])
        if match[2].startswith("tick"):
            if number <= COUNT_MAX:
                return Time(number, in_ticks=True)
        elif (nanoseconds := number * _NANOSECONDS[match[2]]) <= NANOSECONDS_MAX:
            if nanoseconds != int(nanoseconds):
                raise wrong(node, "a time that is a whole number of nanoseconds")
            return Time(int(nanoseconds))
    if is_number(value) and 0 <= value <= NANOSECONDS_MAX // 1000:
        return Time(round(value * 1000))
    raise wrong(node, 'a time: a number of microseconds, or a text such as "3ms" or "5ticks"')


def drawn(node: Node) -> Time | Drawn | Distribution:
    """Returns a time, or the distribution of a time (not in rt-app)."""
    if not isinstance(node.value, Object):
        return time(node)
    if any(key == "distribution" for key, _ in node.value.members):
        return distribution(node)
    fields = by_key(node, _DRAWN, ("from", "to", "below", "step"))
    if ("to" in fields) == ("below" in fields):
        raise wrong(node, f"{_DRAWN}, or with `below` instead of `to`")
    end = fields.get("to") or fields["below"]
    last = time(end)
    first = time(fields["from"]) if "from" in fields else Time(0, last.in_ticks)
    step = time(fields["step"]) if "step" in fields else Time(1)
    if step.number == 0:
        raise wrong(fields["step"], "a step longer than 0")
    if first.in_ticks == last.in_ticks and first.number > last.number:
        raise wrong(end, "a time that is not before `from`")
    return Drawn(first, last, step, end_counts="to" in fields)


_DRAWN = 'a time, or an object such as {"from": 0, "to": "1tick", "step": "10ns"}'


# --- distributions

_KEYS = {
    "constant": ("mean",),
    "uniform": ("mean",),
    "exponential": ("mean",),
    "lognormal": ("mean", "sigma"),
    "pareto": ("mean", "least", "most", "shape"),
    "hyperexponential": ("means", "weights"),
    "values": ("values", "weights"),
}
"""The parameters of each distribution."""
_DISTRIBUTION = 'an object such as {"distribution": "exponential", "mean": 1000}'
VALUES_MAX = 1_000_000
_SIGMA_MAX = 10
_SHAPE_MAX = 1000


def distribution(node: Node, others: tuple[str, ...] = ()) -> Distribution:
    """Returns a distribution of times. `others`: further keys that the object may have."""
    given = dict(members(node, _DISTRIBUTION))
    kind = given["distribution"].value if "distribution" in given else None
    if not isinstance(kind, str) or kind not in _KEYS:
        raise wrong(given.get("distribution", node), f"a `distribution`: {', '.join(_KEYS)}")
    fields = by_key(node, _DISTRIBUTION, ("distribution", *_KEYS[kind], *others))
    if kind == "pareto":
        return _pareto(node, fields)
    if kind in ("hyperexponential", "values"):
        key, part = ("means", Exponential) if kind == "hyperexponential" else ("values", Constant)
        times = tuple(part(time(item)) for item in _several(_needed(node, fields, key)))
        return Mixture(times, weights(fields.get("weights"), len(times)))
    mean = time(_needed(node, fields, "mean"))
    if kind == "lognormal":
        return LogNormal(mean, real(_needed(node, fields, "sigma"), 0, _SIGMA_MAX))
    return {"constant": Constant, "uniform": Even, "exponential": Exponential}[kind](mean)


def _pareto(node: Node, fields: Mapping[str, Node]) -> Pareto:
    """Reads a Pareto distribution, given by its mean or by its minimum."""
    shape = real(_needed(node, fields, "shape"), 0.01, _SHAPE_MAX)
    if "mean" in fields and not fields.keys() & {"least", "most"}:
        if shape <= 1:
            raise wrong(fields["shape"], "a number above 1, because otherwise there is no mean")
        return Pareto(_length(fields["mean"]) * (shape - 1) / shape, shape)
    least = _length(_needed(node, fields, "least"))
    most = _length(fields["most"]) if "most" in fields else math.inf
    if "mean" in fields or least >= most:
        raise wrong(node, "either `mean`, or `least` and a `most` above it, with `shape`")
    if math.isinf(most) and shape <= 1:
        raise wrong(
            fields["shape"], "a number above 1, or a `most`, because otherwise there is no mean"
        )
    return Pareto(least, shape, most)


def _length(node: Node) -> int:
    """Returns nanoseconds."""
    length = time(node)
    if length.in_ticks or length.number == 0:
        raise wrong(node, "a time longer than 0, and not in ticks")
    return int(length.number)


def _needed(node: Node, fields: Mapping[str, Node], key: str) -> Node:
    if key not in fields:
        raise wrong(node, f"`{key}` in it")
    return fields[key]


def _several(node: Node) -> tuple[Node, ...]:
    if not isinstance(node.value, tuple) or not 1 <= len(node.value) <= VALUES_MAX:
        raise wrong(node, f"an array of 1 to {VALUES_MAX} values")
    return node.value


def real(node: Node, least: float, most: float) -> float:
    """Returns a number within bounds."""
    if not is_number(node.value) or not least <= node.value <= most:
        raise wrong(node, f"a number from {least} to {most}")
    return float(node.value)


def times(node: Node) -> tuple[Time, ...]:
    """Returns times in ascending order."""
    durations = tuple(time(item) for item in _several(node))
    if any(a.nanoseconds(10**6) > b.nanoseconds(10**6) for a, b in itertools.pairwise(durations)):
        raise wrong(node, "times in their order")
    return durations


def weights(node: Node | None, count: int) -> tuple[float, ...]:
    """Returns `count` weights; by default they are equal."""
    if node is None:
        return (1.0,) * count
    numbers = tuple(real(item, 0, 10**12) for item in _several(node))
    if len(numbers) != count or sum(numbers) <= 0:
        raise wrong(node, f"{count} weights, not all of them 0: one for each value")
    return numbers


def number(node: Node, least: int, most: int) -> IntegerDistribution:
    """Returns a whole number, or a distribution of whole numbers."""
    if not isinstance(node.value, Object):
        return IntegerDistribution((integer(node, least, most),), (1.0,))
    expected = 'a whole number, or an object such as {"values": [1, 5], "weights": [9, 1]}'
    fields = by_key(node, expected, ("values", "weights", "from", "to"))
    if fields.keys() == {"from", "to"}:
        first = integer(fields["from"], least, most)
        last = integer(fields["to"], first, min(most, first + VALUES_MAX - 1))
        return IntegerDistribution(tuple(range(first, last + 1)), (1.0,) * (last - first + 1))
    values = tuple(integer(item, least, most) for item in _several(_needed(node, fields, "values")))
    return IntegerDistribution(values, weights(fields.get("weights"), len(values)))


def seconds(node: Node) -> int | None:
    """Returns rt-app's `duration` in nanoseconds, or None (0 or less) for a run until all tasks have ended."""
    value = node.value
    if is_number(value) and value <= 0:
        return None
    if is_number(value) and 0 < value <= NANOSECONDS_MAX // 10**9:
        return round(value * 10**9)
    raise wrong(node, "-1 (until all tasks have ended), or a number of seconds")


class Names:
    """Assigns names that fit the machine's tables; distinct names stay distinct."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._fitting: dict[str, str] = {}
        self._renamed = 0

    def fitting(self, name: str, node: Node, is_distinct: bool = True) -> str:
        """Returns the name itself if it fits; otherwise its beginning, "~" and a number, with a warning.

        A valid name contains no "~". `is_distinct`: the name is unique within the characters that
        kernels keep.
        """
        if name not in self._fitting:
            fitting = name
            if not NAME.fullmatch(name) or name == ROOT or not is_distinct:
                self._renamed += 1
                end = f"~{self._renamed}"
                fitting = _NOT_OF_NAMES.sub("_", name)[: PROCESS_NAME_MAX - len(end)] + end
                self._notes.add(node, _RENAMED, f"{name[:NAME_MAX]} ({fitting})")
            self._fitting[name] = fitting
        return self._fitting[name]


_NOT_OF_NAMES = re.compile(r"[^A-Za-z0-9_.+/:-]")
_RENAMED = (
    f"called as in brackets: a name has 1 to {NAME_MAX} letters, digits and _ . + / : -, is not"
    f" `{ROOT}`, and differs from other tasks' in its first {PROCESS_NAME_MAX}"
)


def rounds(node: Node | None, standard: int) -> float:
    """Returns the number of rounds of rt-app's `loop`; −1 means infinitely many."""
    if node is None:
        number = standard
    elif node.value == 0:
        raise wrong(node, "-1 (forever), or a number of at least 1")
    else:
        number = integer(node, -1, COUNT_MAX, "-1 (forever), or a number of at least 1")
    return math.inf if number == -1 else number


def attributes(properties: Mapping[str, Node]) -> dict[str, int]:
    """Returns the numeric attributes; a group has a path instead."""
    return {
        name: _attribute(properties[key], attribute)
        for name, attribute in GIVEN.items()
        if name != TASKGROUP and (key := attribute.key or name) in properties
    }


def _cpus(node: Node) -> int:
    """Returns a set of CPUs: an array of numbers, as in rt-app, or text in Linux's notation."""
    expected = f'CPUs from 0 to {CPUS_MAX - 1}: an array such as [0, 1], or a text such as "0-3,8"'
    value = node.value
    ranges: list[tuple[int, int]] = []
    if isinstance(value, tuple):
        numbers = [integer(item, 0, CPUS_MAX - 1, expected) for item in value]
        ranges = [(number, number) for number in numbers]
    elif isinstance(value, str) and _CPU_LIST.fullmatch(value):
        bounds = [part.partition("-") for part in value.split(",")]
        ranges = [(int(first), int(last or first)) for first, _, last in bounds]
    if not ranges or any(not first <= last < CPUS_MAX for first, last in ranges):
        raise wrong(node, expected)
    mask = 0
    for first, last in ranges:
        mask |= (1 << last - first + 1) - 1 << first
    return mask


_CPU_LIST = re.compile(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*")


def _attribute(node: Node, attribute: Attribute) -> int:
    if isinstance(attribute, CpuSet):
        return _cpus(node)
    if not attribute.is_time:
        return integer(node, attribute.least, attribute.most)
    value = time(node)
    if value.in_ticks or value.number > attribute.most:
        raise wrong(node, "a time of at most 1000 seconds, and not in ticks")
    return int(value.number)

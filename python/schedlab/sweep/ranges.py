# SPDX-License-Identifier: MIT
"""Values of a dimension, for grids and for samples."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from schedlab.base.files.json_lines import JsonError, Node, Object
from schedlab.sweep.yaml_lines import scalar_of
from schedlab.units import RANGE_PATTERN, expand_range
from schedlab.workload.values import members_by_key, read_integer, value_error

VALUES_MAX = 100_000
"""Maximum number of values of a grid's dimension."""
NUMBER_MAX = 10**18
_KEYS = ("from", "to", "step", "factor", "log")
_ANY_VALUE_RANGE = re.compile(RANGE_PATTERN.pattern.replace("-|", "", 1))
"""The range syntax for arbitrary values, where 1-4 is a text."""
EXPECTED_VALUES = (
    "a whole number; several, [1, 2, 4]; a range: 1-8, 1-32+4, 60-3840*2; both: 1-3,7;"
    " or {from: 60, to: 3840, factor: 2} or, for samples, {from: 1, to: 1000, log: true}"
)

Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class Listed:
    """Values that are listed one by one."""

    values: tuple[Scalar, ...]

    def at(self, place: float) -> Scalar:
        """Returns the value at a position in [0, 1); all values have equal shares."""
        return self.values[min(int(place * len(self.values)), len(self.values) - 1)]


@dataclass(frozen=True)
class Logarithmic:
    """Integers from `first` to `last` with equal shares for each power of ten; only for samples."""

    first: int
    last: int

    def at(self, place: float) -> Scalar:
        """Returns the value at a position in [0, 1)."""
        value = math.floor(self.first * math.exp(place * math.log((self.last + 1) / self.first)))
        return min(max(value, self.first), self.last)


@dataclass(frozen=True)
class Span:
    """Integers from `first` to `last` (inclusive), stored as a range."""

    first: int
    last: int
    step: int = 1

    @property
    def count(self) -> int:
        """Returns the number of values."""
        return (self.last - self.first) // self.step + 1

    @property
    def values(self) -> tuple[Scalar, ...]:
        """Returns all values."""
        return tuple(range(self.first, self.last + 1, self.step))

    def at(self, place: float) -> Scalar:
        """Returns the value at a position in [0, 1)."""
        return self.first + self.step * min(int(place * self.count), self.count - 1)


Values = Listed | Span | Logarithmic


def smallest_and_largest(values: Values) -> tuple[Scalar, Scalar]:
    """Returns the smallest and largest integer."""
    if isinstance(values, Listed):
        numbers = [value for value in values.values if isinstance(value, int)]
        return min(numbers), max(numbers)
    return values.first, values.last


def count_values(values: Values) -> int:
    """Returns the number of values in a grid, or in a logarithmic range."""
    if isinstance(values, Listed):
        return len(values.values)
    return values.count if isinstance(values, Span) else values.last - values.first + 1


# --- reading


def read_integers(node: Node) -> Values:
    """Reads integers. Raises JsonError for other values."""
    return _read_values(node, _read_integer, EXPECTED_VALUES, RANGE_PATTERN)


def read_scalars(node: Node) -> Values:
    """Reads numbers, texts and booleans, as in workload files; ranges are of integers."""
    expected = "a value; several, in [ ]; or a range of whole numbers: 1..8"
    return _read_values(node, _read_scalar, expected, _ANY_VALUE_RANGE)


def _read_values(
    node: Node, read: Callable[[Node], Scalar], expected: str, pattern: re.Pattern[str]
) -> Values:
    """Reads values: one, several, or a range. Raises JsonError with `expected`."""
    value = node.value
    if isinstance(value, Object):
        return _read_range_object(node)
    if isinstance(value, tuple):
        if not value:
            raise value_error(node, expected)
        return Listed(_check_distinct(node, [read(item) for item in value]))
    if isinstance(value, str) and (match := pattern.fullmatch(value.strip())):
        return _make_range(node, int(match[1]), int(match[2]), match[3], int(match[4] or 1))
    if isinstance(value, str) and "," in value:
        items = [Node(scalar_of(part.strip()), node.line, node.path) for part in value.split(",")]
        part_values = [_read_values(part, read, expected, pattern) for part in items]
        if sum(map(count_values, part_values)) > VALUES_MAX:
            raise value_error(node, f"at most {VALUES_MAX} values")
        return Listed(
            _check_distinct(node, [one for fields in part_values for one in list_values(fields)])
        )
    return Listed((read(node),))


def list_values(values: Values) -> tuple[Scalar, ...]:
    """Returns the values of a grid's dimension. Grids have no logarithmic ranges: the reader
    refuses them.
    """
    assert not isinstance(values, Logarithmic)
    return values.values


def _read_integer(node: Node) -> Scalar:
    """Reads an integer. Raises JsonError."""
    return read_integer(node, -NUMBER_MAX, NUMBER_MAX, EXPECTED_VALUES)


def _read_scalar(node: Node) -> Scalar:
    """Reads a number, text, boolean or null. Raises JsonError."""
    if isinstance(node.value, Object | tuple):
        raise value_error(node, "a value: a number, a text, true or false")
    return node.value


def _check_distinct(node: Node, values: list[Scalar]) -> tuple[Scalar, ...]:
    """Returns the values. Raises JsonError if one occurs twice."""
    for number, value in enumerate(values):
        if any(type(value) is type(other) and value == other for other in values[:number]):
            raise JsonError(node.line, f"{node.path}: {value} occurs twice: expected each once")
    return tuple(values)


def _read_range_object(node: Node) -> Values:
    """Reads an object such as {from: 60, to: 3840, factor: 2}. Raises JsonError."""
    fields = members_by_key(node, EXPECTED_VALUES, _KEYS)
    if "from" not in fields or "to" not in fields or len(fields) > 3:
        raise value_error(node, "a range: {from: 1, to: 8}, with at most one of step, factor, log")
    first = read_integer(fields["from"], -NUMBER_MAX, NUMBER_MAX)
    last = read_integer(fields["to"], -NUMBER_MAX, NUMBER_MAX)
    if "log" in fields and fields["log"].value is not False:
        if fields["log"].value is not True:
            raise value_error(fields["log"], "true or false")
        if not 1 <= first <= last:
            raise value_error(
                fields["from"],
                "a number of at least 1, not above `to`, because the range is logarithmic",
            )
        return Logarithmic(first, last)
    if "factor" in fields:
        return _make_range(
            fields["factor"], first, last, "*", read_integer(fields["factor"], 2, NUMBER_MAX)
        )
    step = read_integer(fields["step"], 1, NUMBER_MAX) if "step" in fields else 1
    return _make_range(node, first, last, "+", step)


def _make_range(node: Node, first: int, last: int, sign: str | None, by: int) -> Values:
    """Returns a range of integers.

    `sign`: `+` or `*`, how `by` leads from one value to the next.
    """
    try:
        numbers = expand_range(first, last, sign, by)
    except ValueError as error:
        raise value_error(node, str(error)) from None
    if isinstance(numbers, range):
        return Span(numbers[0], numbers[-1], by)
    return Listed(tuple(numbers))

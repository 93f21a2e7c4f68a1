# SPDX-License-Identifier: MIT
"""Describes invalid records found by checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from schedlab.trace.cpu_records import CpuRecords, Mask
from schedlab.trace.model import Integers


class Breach(NamedTuple):
    """An invalid record, and what was expected instead."""

    row: int
    problem: str


def first_of(rows: Integers, wrong: Mask, problem: Callable[[int], str]) -> Iterator[Breach]:
    """Yields the first of `rows` (ascending) where `wrong` is true; `problem` gets its index."""
    if wrong.any():
        index = int(wrong.argmax())
        yield Breach(int(rows[index]), problem(index))


def first_in(begin: int, wrong: Mask, problem: Callable[[int], str]) -> Iterator[Breach]:
    """Like `first_of`, for all rows starting at `begin`."""
    if wrong.any():
        index = int(wrong.argmax())
        yield Breach(begin + index, problem(index))


def earliest(
    cpu_records: CpuRecords, bad: Integers, problem: Callable[[int], str]
) -> Iterator[Breach]:
    """Like `first_of`, for invalid records given by their positions in `cpu_records`; `problem` gets the position.

    Records of earlier parts are skipped, because they were checked with their part.
    """
    bad = bad[cpu_records.row[bad] >= cpu_records.begin]
    if len(bad):
        place = int(bad[cpu_records.row[bad].argmin()])
        yield Breach(int(cpu_records.row[place]), problem(place))


def always(problem: str) -> Callable[[int], str]:
    """Returns a function that gives the same problem for any position."""
    return lambda _: problem

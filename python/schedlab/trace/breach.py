# SPDX-License-Identifier: MIT
"""Describes invalid records that the checks of a trace find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from schedlab.trace.cpu_records import CpuRecords, Mask
from schedlab.trace.model import Integers


class Breach(NamedTuple):
    """An invalid record: its row, and what is wrong."""

    row: int
    problem: str


def first_breach_of(
    rows: Integers, is_invalid: Mask, problem: Callable[[int], str]
) -> Iterator[Breach]:
    """Yields a breach for the first of `rows` where `is_invalid` is true; `problem` describes it by index."""
    if is_invalid.any():
        index = int(is_invalid.argmax())
        yield Breach(int(rows[index]), problem(index))


def first_breach(begin: int, is_invalid: Mask, problem: Callable[[int], str]) -> Iterator[Breach]:
    """Yields a breach for the first row where `is_invalid` is true; row `begin` has index 0."""
    if is_invalid.any():
        index = int(is_invalid.argmax())
        yield Breach(begin + index, problem(index))


def earliest_breach(
    cpu_records: CpuRecords, invalid: Integers, problem: Callable[[int], str]
) -> Iterator[Breach]:
    """Yields a breach for the first of the records with the indices `invalid` in `cpu_records`.

    Records of earlier parts were checked with their part, and are skipped. `problem` describes a
    record by its index.
    """
    invalid = invalid[cpu_records.row[invalid] >= cpu_records.begin]
    if len(invalid):
        place = int(invalid[cpu_records.row[invalid].argmin()])
        yield Breach(int(cpu_records.row[place]), problem(place))


def constant_text(problem: str) -> Callable[[int], str]:
    """Returns a function that returns the same description for every index."""
    return lambda _: problem

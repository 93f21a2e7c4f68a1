# SPDX-License-Identifier: MIT
"""A record that cannot be: how a check tells of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from schedlab.trace.model import Integers
from schedlab.trace.stories import Mask, Stories


class Breach(NamedTuple):
    """A record that cannot be, and what should have been instead."""

    row: int
    problem: str


def first_of(rows: Integers, wrong: Mask, problem: Callable[[int], str]) -> Iterator[Breach]:
    """The first of `rows` (ascending) at which `wrong` is true; `problem` gets its index."""
    if wrong.any():
        index = int(wrong.argmax())
        yield Breach(int(rows[index]), problem(index))


def first_in(begin: int, wrong: Mask, problem: Callable[[int], str]) -> Iterator[Breach]:
    """Like `first_of`, of all rows from `begin` on."""
    if wrong.any():
        index = int(wrong.argmax())
        yield Breach(begin + index, problem(index))


def earliest(stories: Stories, bad: Integers, problem: Callable[[int], str]) -> Iterator[Breach]:
    """Like `first_of`, of bad records given by their places in `stories`: `problem` gets the place.
    Those of earlier parts have been judged."""
    bad = bad[stories.row[bad] >= stories.begin]
    if len(bad):
        place = int(bad[stories.row[bad].argmin()])
        yield Breach(int(stories.row[place]), problem(place))


def always(problem: str) -> Callable[[int], str]:
    """The same problem at any place."""
    return lambda _: problem

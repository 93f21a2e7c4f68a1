# SPDX-License-Identifier: MIT
"""Half of all combinations each time, and the other half with `--long`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet


def chessboard(*axes: Sequence[Any]) -> list[ParameterSet]:
    """All combinations, as fields of a board; the black ones are marked `long`.

    Of three axes or more, each value of one still meets each of any other, with two values at
    least on a third.
    """
    found = []
    for places in product(*(range(len(axis)) for axis in axes)):
        marks = [pytest.mark.long] if sum(places) % 2 else []
        values = (axis[place] for axis, place in zip(axes, places, strict=True))
        found.append(pytest.param(*values, marks=marks))
    return found

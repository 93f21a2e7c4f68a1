# SPDX-License-Identifier: MIT
"""What programs told of themselves: figures by name, as marks in the trace."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from schedlab.metrics.lives import LifeTable, last_before
from schedlab.trace import Facts, Kind, MarkKind, mark_text
from schedlab.trace.model import Integers

VALUES_SCHEMA = {
    "pid": pl.Int64,
    "group": pl.String,
    "time_ns": pl.Int64,
    "name": pl.String,
    "value": pl.Int64,
}


def told_values(trace: Facts, who: LifeTable, groups: Sequence[str]) -> pl.DataFrame:
    """Each MARK_VALUE of the whole trace, in order, with the name that its process gave last.

    `groups`: of each life. The name is null where the trace does not hold it.
    """
    marks = trace.rows(Kind.MARK)
    kind = trace.at("first", marks)
    values, names = marks[kind == MarkKind.VALUE], marks[kind == MarkKind.NAME]
    teller = _tellers(trace, who, values)
    index = last_before(_tellers(trace, who, names), names, teller, values)
    texts = [mark_text(value) for value in trace.at("second", names).tolist()]
    return pl.DataFrame(
        {
            "pid": trace.at("process", values),
            "group": [groups[life] if life >= 0 else None for life in teller.tolist()],
            "time_ns": trace.at("time_ns", values),
            "name": [texts[at] if at >= 0 else None for at in index.tolist()],
            "value": trace.at("second", values).astype(np.int64),
        },
        schema=VALUES_SCHEMA,
    )


def _tellers(trace: Facts, who: LifeTable, rows: Integers) -> Integers:
    """The lives that made these records."""
    return who.life_at(trace.at("process", rows).astype(np.int64), rows)

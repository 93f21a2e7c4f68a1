# SPDX-License-Identifier: MIT
"""Collects values that programs reported, annotations of policies, and notes about the run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from schedlab.base.display.numbers import duration, milliseconds, percent
from schedlab.metrics.lives import LifeTable, last_before
from schedlab.metrics.window import Window
from schedlab.trace import Facts, Kind, MarkKind, annotation_text, mark_text
from schedlab.trace.model import Integers

LATE = "late"
"""Name of the value that contains by how many nanoseconds an arrival was late."""
LATE_PART = 10
"""An arrival is late if it is delayed by more than a tick ÷ LATE_PART. A fork in the kernel takes some time."""
ANNOTATION_SCHEMA = {"words": pl.String, "times": pl.Int64, "last_ns": pl.Int64, "last": pl.String}


def remarks(trace: Facts, window: Window) -> pl.DataFrame:
    """Returns the policy's annotations in the window: one row per text, in the order of first appearance.

    `words`: the text with {} for numbers; `times`: how often it appeared; `last_ns` and `last`:
    time and full text of the last one.
    """
    rows = trace.rows(Kind.SAID)
    rows = rows[window.holds(rows)]
    if not len(rows):
        return pl.DataFrame(schema=ANNOTATION_SCHEMA)
    annotation_texts = trace.texts.filter(pl.Series(np.isin(trace.texts["row"].to_numpy(), rows)))
    at = annotation_texts["row"].to_numpy()
    annotations = pl.DataFrame(
        {
            "words": annotation_texts["text"],
            "time_ns": trace.at("time_ns", at).astype(np.int64),
            "first": trace.at("first", at).astype(np.int64),
            "second": trace.at("second", at).astype(np.uint64),
        }
    )
    grouped = annotations.group_by("words", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("times"), pl.col("time_ns", "first", "second").last()
    )
    return pl.DataFrame(
        [
            (words, times, time_ns, annotation_text(words, first, second))
            for words, times, time_ns, first, second in grouped.iter_rows()
        ],
        schema=ANNOTATION_SCHEMA,
        orient="row",
    )


def unrecorded(trace: Facts, window: Window, processes: pl.DataFrame, cpu_ns: int) -> pl.DataFrame:
    """Returns a row like those of `remarks` if activity of CPUs or processes is partly unknown, else none.

    `processes`: needs `role` and `unknown_ns`; `cpu_ns`: unknown time of all CPUs.
    """
    workload = processes.filter((pl.col("role") == "workload") & (pl.col("unknown_ns") > 0))
    if not cpu_ns and workload.is_empty():
        return pl.DataFrame(schema=ANNOTATION_SCHEMA)
    total_ns = max(trace.header.cpus * window.elapsed_ns, 1)
    unknown_ns = int(workload["unknown_ns"].sum())
    words = (
        f"{milliseconds(cpu_ns)} of the CPUs' time ({percent(cpu_ns / total_ns)}),"
        f" {milliseconds(unknown_ns)} of processes' time ({len(workload)} of them)"
    )
    annotation = ("unknown, since it was not recorded", 1, window.end_ns, words)
    return pl.DataFrame([annotation], schema=ANNOTATION_SCHEMA, orient="row")


def late_arrivals(values: pl.DataFrame, window: Window, tick_ns: int) -> pl.DataFrame:
    """Returns a row like those of `remarks` if processes arrived late, else none. `values`: reported values."""
    if values.is_empty():
        return pl.DataFrame(schema=ANNOTATION_SCHEMA)
    root = 0 if window.root_pid is None else window.root_pid
    late = values.filter(
        (pl.col("name") == LATE) & (pl.col("pid") == root) & (pl.col("value") * LATE_PART > tick_ns)
    )
    if late.is_empty():
        return pl.DataFrame(schema=ANNOTATION_SCHEMA)
    mean, most = late.select(pl.col("value").mean(), pl.col("value").max().alias("most")).row(0)
    words = f"{duration(mean)} on the mean, {duration(most)} at most"
    annotation = ("arrivals that came late", len(late), late["time_ns"][-1], words)
    return pl.DataFrame([annotation], schema=ANNOTATION_SCHEMA, orient="row")


VALUES_SCHEMA = {
    "pid": pl.Int64,
    "group": pl.String,
    "time_ns": pl.Int64,
    "name": pl.String,
    "value": pl.Int64,
}


def printed_values_of(trace: Facts, life_table: LifeTable, groups: Sequence[str]) -> pl.DataFrame:
    """Returns each MARK_VALUE of the whole trace in order, with the last name that its process gave.

    `groups`: the group of each life. The name is null if the trace does not contain it.
    """
    marks = trace.rows(Kind.MARK)
    kind = trace.at("first", marks)
    values, names = marks[kind == MarkKind.VALUE], marks[kind == MarkKind.NAME]
    teller = _tellers(trace, life_table, values)
    index = last_before(_tellers(trace, life_table, names), names, teller, values)
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


def _tellers(trace: Facts, life_table: LifeTable, rows: Integers) -> Integers:
    """Returns the lives that made these records."""
    return life_table.life_at(trace.at("process", rows).astype(np.int64), rows)

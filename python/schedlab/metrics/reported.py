# SPDX-License-Identifier: MIT
"""Collects values that programs reported, the policy's annotations, and warnings about the run."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from schedlab.base.display.numbers import duration, milliseconds, percent
from schedlab.metrics.lives import LifeTable, last_before
from schedlab.metrics.window import Window
from schedlab.trace import Kind, MarkKind, TraceFacts, annotation_text, mark_text
from schedlab.trace.joined import RunFacts
from schedlab.trace.model import Integers

LATE_VALUE_NAME = "late"
"""Name that a workload uses to report how many ns late it created an arrival."""
LATE_TICK_DIVISOR = 10
"""An arrival counts as late if the delay is more than a tick ÷ LATE_TICK_DIVISOR.

Smaller delays are normal, because a fork takes some time.
"""
ANNOTATION_SCHEMA = {"words": pl.String, "times": pl.Int64, "last_ns": pl.Int64, "last": pl.String}


def remarks(trace: TraceFacts, window: Window) -> pl.DataFrame:
    """Returns the policy's annotations in the window: a row per text, in order of first appearance.

    `words`: the text with {} for numbers; `times`: how often it appeared; `last_ns` and `last`:
    time and complete text of the last one.
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


def unknown_activity_note(
    trace: TraceFacts, window: Window, processes_ns: Integers, cpu_ns: int
) -> pl.DataFrame:
    """Returns a warning, in the form of `remarks`, if the activity of CPUs or processes is partly
    unknown.

    `processes_ns`: unknown time of each of the workload's processes; `cpu_ns`: of all CPUs together.
    """
    affected = int((processes_ns > 0).sum())
    if not cpu_ns and not affected:
        return pl.DataFrame(schema=ANNOTATION_SCHEMA)
    total_ns = max(trace.header.cpus * window.elapsed_ns, 1)
    unknown_ns = int(processes_ns.sum())
    amounts = (
        f"{milliseconds(cpu_ns)} of the CPUs' time ({percent(cpu_ns / total_ns)}),"
        f" {milliseconds(unknown_ns)} of processes' time ({affected} of them)"
    )
    annotation = ("unknown, since it was not recorded", 1, window.end_ns, amounts)
    return pl.DataFrame([annotation], schema=ANNOTATION_SCHEMA, orient="row")


def late_arrivals_note(values: pl.DataFrame, window: Window, tick_ns: int) -> pl.DataFrame:
    """Returns a warning, in the form of `remarks`, if processes arrived late.

    `values`: the reported values.
    """
    if LATE_VALUE_NAME not in values["name"].to_list():
        return pl.DataFrame(schema=ANNOTATION_SCHEMA)
    root = 0 if window.root_pid is None else window.root_pid
    late = values.filter(
        (pl.col("name") == LATE_VALUE_NAME)
        & (pl.col("pid") == root)
        & (pl.col("value") * LATE_TICK_DIVISOR > tick_ns)
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


def printed_values_of(
    trace: TraceFacts, runs: RunFacts, life_table: LifeTable, groups: Sequence[str]
) -> pl.DataFrame:
    """Returns every value that a program reported, in order, over the whole trace, with its run.

    A value's name is the last name that its process reported before; null without one. `groups`:
    the group of each life.
    """
    marks = trace.rows(Kind.MARK)
    kind = trace.at("first", marks)
    values, names = marks[kind == MarkKind.VALUE], marks[kind == MarkKind.NAME]
    teller = _reporting_lives(trace, life_table, values)
    index = last_before(_reporting_lives(trace, life_table, names), names, teller, values)
    texts = [mark_text(value) for value in trace.at("second", names).tolist()]
    run = runs.of_rows(values)
    return pl.DataFrame(
        {
            "run": run,
            "pid": trace.at("process", values) - run * runs.pids,
            "group": [groups[life] if life >= 0 else None for life in teller.tolist()],
            "time_ns": trace.at("time_ns", values),
            "name": [texts[at] if at >= 0 else None for at in index.tolist()],
            "value": trace.at("second", values).astype(np.int64),
        },
        schema={"run": pl.Int64, **VALUES_SCHEMA},
    )


def _reporting_lives(trace: TraceFacts, life_table: LifeTable, rows: Integers) -> Integers:
    """Returns the lives of the processes that wrote these records."""
    return life_table.life_at(trace.at("process", rows).astype(np.int64), rows)

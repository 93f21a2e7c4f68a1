# SPDX-License-Identifier: MIT
"""Draws which task ran at each moment, on its level of a multi-level queue."""

from typing import Any

import altair as alt
import numpy as np
import polars as pl

from schedlab.base.display.numbers import duration
from schedlab.base.toolchain.policies import Policy, known_policies
from schedlab.report.charts.parts import (
    NothingToDraw,
    Styles,
    chart_with_data,
    join_sentences,
    legend_selection,
    opacity_if,
    zoom_along_time,
)
from schedlab.report.charts.processes import (
    ChartProcesses,
    Span,
    TimeAxis,
    chart_processes,
    chart_span,
    merge_for_page,
    row_axis,
)
from schedlab.report.charts.theme import ANNOTATION, PALETTE, WIDTH
from schedlab.report.model import Chart
from schedlab.trace import Kind, Trace

NO_POLICY = "policy unknown"
LEVEL_HEIGHT, PROCESS_HEIGHT = 26, 11


def _level_policies() -> list[tuple[str, Policy]]:
    """Returns the policies whose annotations are levels.

    The kernel records no annotation of 0, so level 0 has no DECISION record.
    """
    return [policy for policy in known_policies().items() if policy[1].remark_kind == "level"]


def _policy_name() -> pl.Expr:
    """Returns an expression for the active policy's name without preset."""
    return pl.col("policy").str.split(":").list.first()


def _serving_order(stays: pl.DataFrame) -> str:
    """Returns which level is served first: "lowest first", "highest
    first", or "" without levels.
    """
    first = str(stays["policy"][0]).partition(":")[0] if len(stays) else ""
    return next((policy.level_order for name, policy in _level_policies() if name == first), "")


def serves_highest_first(stays: pl.DataFrame) -> bool:
    """Returns whether the first policy serves higher numbers before lower ones."""
    return _serving_order(stays) == "highest first"


def levels(
    name: str,
    trace: Trace,
    *,
    title: str,
    caption: str,
    begin_ns: int | None = None,
    end_ns: int | None = None,
) -> Chart:
    """Draws a row for each level, the first served on top, and in it a line for each task that ran.

    A policy without levels has one row. Boosts and changes of the policy are marked. `data`: each
    stay on a CPU from one scheduler exit to the next entry.
    """
    processes = chart_processes(trace)
    span = chart_span(processes.window, begin_ns, end_ns)
    stays = find_stays(processes)
    marks = marks_in_span(pl.concat([find_boosts(stays), find_policy_changes(processes)]), span)
    shown = span.clip(stays.filter(pl.col("role") == "workload"))
    if shown.is_empty():
        raise NothingToDraw(
            f"chart {name}: no process of the workload ran in the drawn time; draw a later or a longer part"
        )
    drawn, merged = merge_for_page(_add_rows(shown), ["row", "line", "series"], span)
    axis = TimeAxis(span, processes.window.begin_ns, "ticks", trace.header.tick_ns)
    return Chart(
        name,
        title,
        _draw(shown, drawn, marks, axis),
        shown.drop("life", "role", "row"),
        join_sentences(caption, *_caption_notes(shown, marks), merged),
        _describe(shown, marks, span),
    )


def find_stays(processes: ChartProcesses) -> pl.DataFrame:
    """Returns each time from SCHEDULER_EXIT to SCHEDULER_ENTER that a
    task had a CPU, by CPU and time.

    Columns: cpu, life, pid, label, group, role, level (null under a policy without levels), policy,
    begin_ns, end_ns, left (how the task left the CPU by itself: "blocked", "yielded"; else ""), row
    (of the trace's events, at the beginning).
    """
    trace = processes.trace
    kind, cpu = trace.column("kind"), trace.column("cpu")
    rows = trace.rows(
        Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT, Kind.DECISION, Kind.YIELD, Kind.BLOCK
    )
    rows = rows[np.argsort(cpu[rows], kind="stable")]
    table = pl.DataFrame(
        {
            "row": rows,
            "cpu": cpu[rows],
            "kind": kind[rows],
            "pid": trace.column("process")[rows].astype(np.int64),
            "second": trace.column("second")[rows],
            "time_ns": trace.column("time_ns")[rows],
        }
    )
    is_exit = pl.col("kind") == int(Kind.SCHEDULER_EXIT)
    before, after = pl.col("kind").shift(1).over("cpu"), pl.col("kind").shift(-1).over("cpu")
    level = pl.when(before == int(Kind.DECISION)).then(pl.col("second").shift(1).over("cpu"))
    reason = (
        pl.when(after == int(Kind.BLOCK))
        .then(pl.lit("blocked"))
        .when(after == int(Kind.YIELD))
        .then(pl.lit("yielded"))
        .otherwise(pl.lit(""))
    )
    enters = pl.when(pl.col("kind") == int(Kind.SCHEDULER_ENTER)).then("time_ns")
    stays = table.with_columns(
        level=level.otherwise(0).cast(pl.Int64),
        left=reason,
        end_ns=enters.backward_fill().over("cpu").fill_null(trace.end_ns),
    ).filter(is_exit & (pl.col("pid") != 0))
    policies = _policies_by_row(processes)
    life = processes.life_table.steps.life_at(stays["pid"].to_numpy(), stays["row"].to_numpy())
    has_levels = _policy_name().is_in([name for name, _ in _level_policies()])
    return (
        stays.with_columns(life=pl.Series(life), begin_ns=pl.col("time_ns"))
        .join(processes.names.drop("pid"), on="life", how="left", maintain_order="left")
        .sort("row")
        .join_asof(policies, on="row", strategy="backward", check_sortedness=False)
        .with_columns(
            level=pl.when(has_levels).then("level"), policy=pl.col("policy").fill_null(NO_POLICY)
        )
        .sort("cpu", "row")
        .select(
            "cpu", "life", "pid", "label", "group", "role", "level", "policy", "begin_ns",
            "end_ns", "left", "row",
        )
    )  # fmt: skip


def _policies_by_row(processes: ChartProcesses) -> pl.DataFrame:
    """Returns the policies of the trace: row (the first with this policy), policy."""
    trace = processes.trace
    rows = pl.DataFrame({"row": trace.rows(Kind.POLICY)})
    return rows.join(trace.texts, on="row").sort("row").select("row", policy="text")


MARK_SCHEMA = {"time_ns": pl.Int64, "what": pl.String}


def find_boosts(stays: pl.DataFrame) -> pl.DataFrame:
    """Returns the times of boosts (time_ns, what), as visible in the trace.

    If a task is picked at a higher level than before and has not left the CPU by itself since, the
    policy raised it. The first raise marks the boost, at most one time slice late. When a task is
    raised again, the next boost begins.
    """
    last_levels: dict[int, tuple[int, str]] = {}
    raised_lives: set[int] = set()
    times: list[int] = []
    policies_with_boost = [name for name, policy in _level_policies() if policy.boost]
    level_stays = stays.filter(_policy_name().is_in(policies_with_boost)).sort("begin_ns")
    for life, level, left, begin in level_stays.select(
        "life", "level", "left", "begin_ns"
    ).iter_rows():
        before, why = last_levels.get(life, (level, ""))
        if level > before and not why:
            if not times or life in raised_lives:
                times.append(begin)
                raised_lives.clear()
            raised_lives.add(life)
        last_levels[life] = (level, left)
    return pl.DataFrame({"time_ns": times, "what": ["boost"] * len(times)}, schema=MARK_SCHEMA)


def find_policy_changes(processes: ChartProcesses) -> pl.DataFrame:
    """Returns the times of policy changes after the first policy (time_ns, what)."""
    policies = _policies_by_row(processes)[1:]
    times = processes.trace.column("time_ns")[policies["row"].to_numpy()]
    return pl.DataFrame({"time_ns": times, "what": policies["policy"]}, schema=MARK_SCHEMA)


def marks_in_span(marks: pl.DataFrame, span: Span) -> pl.DataFrame:
    """Returns the marks within the span, by time."""
    return marks.filter(pl.col("time_ns").is_between(span.begin_ns, span.end_ns)).sort("time_ns")


def _add_rows(stays: pl.DataFrame) -> pl.DataFrame:
    """Adds the row and the line of each interval, and the series of its colour."""
    has_few_tasks = _has_few_tasks(stays)
    return stays.with_columns(
        row=_row_name(),
        line=pl.col("label") if has_few_tasks else pl.format("CPU {}", "cpu"),
        series=pl.col("label" if has_few_tasks else "group"),
    )


def _draw(stays: pl.DataFrame, drawn: pl.DataFrame, marks: pl.DataFrame, axis: TimeAxis) -> Any:
    rows = _level_rows(stays)
    labels = _labels_by_pid(stays)
    has_few_tasks = _has_few_tasks(stays)
    series = labels if has_few_tasks else sorted(stays["group"].unique())
    shown_labels = labels if has_few_tasks else sorted(drawn["line"].unique())
    styles = Styles(series, policies=False)
    chosen = legend_selection()
    height = max(LEVEL_HEIGHT, PROCESS_HEIGHT * len(shown_labels)) * len(rows)
    line_offset = alt.YOffset("line:N", sort=shown_labels, scale=alt.Scale(domain=shown_labels))
    bars = axis.bars(
        drawn,
        ["row", "series", "line", "pid", "group", "cpu", "merged"],
        row_axis("row", rows, 0.2),
        line_offset,
        styles.colour(symbolType="square"),
        opacity=opacity_if(chosen),
        tooltip=[
            alt.Tooltip("pid:Q", title="PID", format="d"),
            alt.Tooltip("group:N"),
            alt.Tooltip("row:N", title="at"),
            alt.Tooltip("cpu:Q", title="on CPU", format="d"),
            *axis.tooltips(),
        ],
    )
    return alt.layer(
        bars.add_params(chosen, zoom_along_time()), *_mark_layers(marks, axis)
    ).properties(width=WIDTH, height=height)


def _has_few_tasks(stays: pl.DataFrame) -> bool:
    """Returns whether tasks are few enough for a colour and a line each."""
    return stays["label"].n_unique() <= len(PALETTE)


def _labels_by_pid(stays: pl.DataFrame) -> list[str]:
    """Returns the tasks' labels in the order of their PIDs."""
    labels = stays.group_by("life").agg(pl.col("pid", "label").first()).sort("pid", "life")
    return list(dict.fromkeys(labels["label"].to_list()))


def _row_name() -> pl.Expr:
    """Returns an expression for the name of an interval's row: its level, or `policy` without
    levels.
    """
    return (
        pl.when(pl.col("level").is_null()).then("policy").otherwise(pl.format("level {}", "level"))
    )


def _level_rows(stays: pl.DataFrame) -> list[str]:
    """Returns the rows: levels, the first served on top, then policies without levels."""
    levels_present = stays["level"].drop_nulls().to_list()
    rows = []
    if levels_present:
        rows = [
            f"level {level}"
            for level in sorted(set(levels_present), reverse=serves_highest_first(stays))
        ]
    return (
        rows
        + stays.filter(pl.col("level").is_null())["policy"].unique(maintain_order=True).to_list()
    )


def _mark_layers(marks: pl.DataFrame, axis: TimeAxis) -> list[Any]:
    """Returns the layers that draw boosts and changes of the policy."""
    if marks.is_empty():
        return []
    drawn = chart_with_data(marks.select("what", *axis.embed("time_ns"))).transform_calculate(
        at=axis.in_units("time")
    )
    rule = drawn.mark_rule(style=ANNOTATION, strokeDash=[3, 3], clip=True).encode(axis.x("at"))
    # Placed at the bottom right of the line, since boosted tasks are not on the lowest level.
    label = drawn.mark_text(style=ANNOTATION, align="left", dx=4, dy=-3, baseline="bottom").encode(
        axis.x("at"), y=alt.value({"expr": "height"}), text="what:N"
    )
    return [rule, label]


def _caption_notes(stays: pl.DataFrame, marks: pl.DataFrame) -> list[str]:
    """Returns the sentences of the caption on rows, colours and marks."""
    order = _serving_order(stays).replace(" ", " number ")
    boosted = bool((marks["what"] == "boost").any())
    return [
        f"Levels: {order}." if order else "",
        "" if _has_few_tasks(stays) else "Within a level, a line for each CPU.",
        "A boost is marked at the time of its first raised process." if boosted else "",
    ]


def _describe(stays: pl.DataFrame, marks: pl.DataFrame, span: Span) -> str:
    """Returns the chart's description for readers who cannot see it."""
    length = (pl.col("end_ns") - pl.col("begin_ns")).sum()
    sums = stays.group_by(_row_name().alias("row")).agg(length).sort("row")
    texts = [f"{row} {duration(time)}" for row, time in sums.iter_rows()]
    boosted = int((marks["what"] == "boost").sum())
    return (
        f"Levels of the running processes over {duration(span.length_ns)}: "
        + ", ".join(texts)
        + (f"; {boosted} boosts." if boosted else ".")
    )

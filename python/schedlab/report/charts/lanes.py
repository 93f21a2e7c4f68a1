# SPDX-License-Identifier: MIT
"""Draws a lane for each task: when it runs, waits for a CPU, or is blocked."""

from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import polars as pl

from schedlab.base.display.numbers import duration, format_count, percent
from schedlab.report.charts.levels import find_stays, serves_highest_first
from schedlab.report.charts.parts import (
    NothingToDraw,
    Styles,
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
    readable_span,
    row_axis,
)
from schedlab.report.charts.theme import ANNOTATION, PALETTE, WIDTH
from schedlab.report.charts.waits import (
    READY_MIN,
    STARVING_TICKS,
    Activity,
    find_activity,
    find_inversions,
    find_starvation,
)
from schedlab.report.model import Chart
from schedlab.trace import Trace

LANES_MAX = 40
LANE_HEIGHT = 14
READABLE_PER_CPU = 800
"""Number of run intervals per CPU that are drawn if no end is given."""
WAIT_OPACITY = 0.28
"""The opacity of a wait."""
OTHERS_LABEL = "other groups"
_GROUPS_NAMED = 7


def lanes(
    name: str,
    trace: Trace,
    *,
    title: str,
    caption: str,
    length_ns: int | None = None,
) -> Chart:
    """Draws a lane for each task of the workload: runs in full colour, waits for a CPU pale.

    The colour is the level at the pick if the policy annotates levels; otherwise it is the group.
    Starvation and priority inversions are marked. If there are more than LANES_MAX tasks, the
    marked ones are drawn, then the longest waiters of each group in turn.

    The first `length_ns` of the measured window are drawn; by default, the readable part. `data`:
    all intervals of the drawn part, of all tasks, with their marks.
    """
    processes = chart_processes(trace)
    activity = find_activity(processes)
    begin, end = processes.window.begin_ns, processes.window.end_ns
    span = chart_span(processes.window, begin, min(end, begin + (length_ns or end - begin)))
    span = span if length_ns else readable_span(processes, span, READABLE_PER_CPU)
    shown = span.clip(activity.intervals)
    if shown.is_empty():
        raise NothingToDraw(
            f"chart {name}: the workload had no process in the drawn time; draw a later or a longer part"
        )
    series, colours = _lane_series(activity, processes)
    shown = shown.with_columns(series=series)
    marks = {
        "starves": find_starvation(processes),
        "inversion": find_inversions(processes, activity),
    }
    order, left_out = _choose_lanes(shown, marks)
    drawn, merged = merge_for_page(
        shown.filter(pl.col("label").is_in(order) & (pl.col("state") != "blocked")),
        ["label", "state", "series"],
        span,
    )
    axis = TimeAxis(span, processes.window.begin_ns, "ms", trace.header.tick_ns)
    remarks = [
        processes.drawn_part_text(span),
        "Full colour: it runs; pale: it waits for a CPU; nothing: it is blocked.",
        _colour_note(activity),
        *_mark_notes(processes, activity, marks),
        left_out,
        merged,
    ]
    return Chart(
        name,
        title,
        _draw(drawn, _marks_in_lanes(marks, processes, span, order), order, colours, axis),
        _mark_intervals(shown, marks),
        join_sentences(caption, *remarks),
        _describe(shown, marks, span),
    )


def readable_length_ns(traces: Iterable[Trace]) -> int | None:
    """Returns how many ns of each trace a chart can show without becoming unreadable.

    The length is the same for all traces. None: every window can be shown whole.
    """
    lengths = []
    for trace in traces:
        processes = chart_processes(trace)
        full_span = Span(processes.window.begin_ns, processes.window.end_ns)
        shown = readable_span(processes, full_span, READABLE_PER_CPU)
        lengths += [shown.length_ns] if shown != full_span else []
    return min(lengths, default=None)


def _lane_series(activity: Activity, processes: ChartProcesses) -> tuple[pl.Expr, list[str]]:
    """Returns the series of each interval, and their order: levels, the
    first served first, or groups.

    Series without a colour of the palette are merged into one.
    """
    levels = activity.intervals["level"].drop_nulls().unique().to_list()
    colour_count = len(PALETTE)
    if levels:
        ordered = sorted(levels, reverse=serves_highest_first(find_stays(processes)))
        names = [f"level {level}" for level in ordered]
        level_text = pl.format("level {}", "level").fill_null("level unknown")
        others_label = "later levels"
    else:
        names = sorted(activity.intervals["group"].unique())
        level_text, others_label = pl.col("group"), OTHERS_LABEL
    coloured = names if len(names) <= colour_count else names[: colour_count - 1]
    return pl.when(level_text.is_in(coloured)).then(level_text).otherwise(pl.lit(others_label)), [
        *coloured,
        others_label,
    ]


def _choose_lanes(shown: pl.DataFrame, marks: dict[str, pl.DataFrame]) -> tuple[list[str], str]:
    """Returns the labels with a lane, by group and PID, and a note on the other tasks."""
    length = pl.col("end_ns") - pl.col("begin_ns")
    marked = pl.concat([mark_rows.select("life") for mark_rows in marks.values()])["life"]
    rows = (
        shown.group_by("label")
        .agg(
            pl.col("group", "pid").first(),
            marked=pl.col("life").is_in(marked.implode()).any(),
            waited=length.filter(pl.col("state") == "runnable").max().fill_null(0),
        )
        .sort("marked", "waited", "pid", descending=[True, True, False])
        .with_columns(turn=pl.int_range(pl.len()).over("group"))
        .sort("marked", "turn", "group", descending=[True, False, False], maintain_order=True)
    )
    shown_labels = rows.head(LANES_MAX).sort("group", "pid")["label"].to_list()
    missing = rows[LANES_MAX:].group_by("group").len().sort("group").rows()
    texts = ", ".join(f"{count} of {group}" for group, count in missing)
    if len(missing) > _GROUPS_NAMED:
        texts = f"{len(rows) - len(shown_labels)} of {len(rows)} processes"
    return (
        shown_labels,
        f"Not shown, because they waited less than others of their group: {texts}."
        if texts
        else "",
    )


def _marks_in_lanes(
    marks: dict[str, pl.DataFrame], processes: ChartProcesses, span: Span, order: Sequence[str]
) -> dict[str, pl.DataFrame]:
    """Returns the marks within the drawn lanes and time, with labels."""
    names = processes.names.select("life", "label")
    return {
        what: span.clip(frame.join(names, on="life", maintain_order="left")).filter(
            pl.col("label").is_in(list(order))
        )
        for what, frame in marks.items()
    }


def _mark_intervals(shown: pl.DataFrame, marks: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Returns the intervals with the time of starvation and of inversion in each."""
    marked = shown.sort("life", "begin_ns").with_row_index("at")
    for name, marked_spans in marks.items():
        spans = marked_spans.select("life", since="begin_ns", until="end_ns")
        overlap = pl.min_horizontal("end_ns", "until") - pl.max_horizontal("begin_ns", "since")
        overlap_ns = (
            marked.join(spans, on="life")
            .select("at", overlap.clip(0).alias(f"{name}_ns"))
            .group_by("at")
            .agg(pl.col(f"{name}_ns").sum())
        )
        marked = marked.join(overlap_ns, on="at", how="left", maintain_order="left")
    columns = (
        "pid", "name", "group", "state", "cause", "why", "level", "cpu", "begin_ns", "end_ns",
        "starves_ns", "inversion_ns",
    )  # fmt: skip
    return marked.select(columns).with_columns(pl.col("starves_ns", "inversion_ns").fill_null(0))


# --- drawing


def _draw(
    drawn: pl.DataFrame,
    marks: dict[str, pl.DataFrame],
    order: list[str],
    colours: list[str],
    axis: TimeAxis,
) -> Any:
    """Draws the lanes with the marks above them."""
    present = set(drawn["series"])
    styles = Styles(
        [name for name in colours if name in present], policies=False, muted=colours[-1:]
    )
    y = row_axis("label", order, 0.15)
    chosen = legend_selection()
    waits, runs = (
        axis.bars(
            drawn.filter(pl.col("state") == state),
            ["label", "series", "cpu", "why", "merged"],
            y,
            styles.colour(symbolType="square"),
            opacity=opacity_if(chosen, opacity),
            tooltip=[
                alt.Tooltip("label:N", title=what),
                alt.Tooltip("series:N", title="colour"),
                *([alt.Tooltip("cpu:Q", title="on CPU", format="d")] if state == "running" else []),
                *axis.tooltips(),
                *([alt.Tooltip("why:N", title="why it left")] if state == "running" else []),
                alt.Tooltip("merged:Q", title="intervals drawn as one"),
            ],
        )
        for state, opacity, what in (
            ("runnable", WAIT_OPACITY, "waits for a CPU"),
            ("running", 1, "runs"),
        )
    )
    layers = [waits, runs.add_params(chosen, zoom_along_time()), *_draw_marks(marks, axis, y)]
    return alt.layer(*layers).properties(width=WIDTH, height=LANE_HEIGHT * len(order) + 4)


def _draw_marks(marks: dict[str, pl.DataFrame], axis: TimeAxis, y: alt.Y) -> list[Any]:
    """Draws the marks of starvation and of priority inversion."""
    styles: dict[str, tuple[str, dict[str, Any]]] = {
        "starves": ("starves", {"filled": False, "strokeWidth": 1.5, "height": {"band": 1}}),
        "inversion": ("priority inversion", {"height": 3, "yOffset": LANE_HEIGHT * 0.38}),
    }
    layers = []
    for what, (label, look) in styles.items():
        frame = marks[what]
        if frame.is_empty():
            continue
        extra = [name for name in ("behind",) if name in frame.columns]
        tooltip = [
            alt.Tooltip("label:N", title=label),
            *[alt.Tooltip("behind:N", title="blocked on") for _ in extra],
            *axis.tooltips(),
        ]
        bars = axis.bars(frame, ["label", *extra], y, style=ANNOTATION, tooltip=tooltip, **look)
        layers.append(bars)
    return layers


# --- texts


def _colour_note(activity: Activity) -> str:
    """Returns the caption's sentence on the meaning of colours."""
    if not activity.intervals["level"].count():
        return "Colours are groups."
    return "Colours are levels: the level at the pick, for a run; the level at the next pick, for a wait."


def _mark_notes(
    processes: ChartProcesses, activity: Activity, marks: dict[str, pl.DataFrame]
) -> list[str]:
    """Returns texts on the marks in the whole window, and on the longest wait."""
    starves, inverted = marks["starves"], marks["inversion"]
    tick_ns = processes.trace.header.tick_ns
    texts = []
    if len(starves):
        texts.append(
            f"Framed: starvation, {format_count(len(starves), 'time')} in all: a wait of more than"
            f" {STARVING_TICKS} ticks for each process that is ready on a CPU (at least"
            f" {READY_MIN} of them)."
        )
    waits = activity.intervals.filter(pl.col("state") == "runnable")
    if len(waits):
        length = pl.col("end_ns") - pl.col("begin_ns")
        row = waits.sort(length, "begin_ns", descending=[True, False]).row(0, named=True)
        longest = row["end_ns"] - row["begin_ns"]
        since = duration(row["begin_ns"] - processes.window.begin_ns)
        none = "" if len(starves) else ", not long enough for starvation"
        texts.append(
            f"The longest wait: {duration(longest)}, of {row['label']} from {since} on{none}."
        )
    if len(inverted):
        length_ns = (inverted["end_ns"] - inverted["begin_ns"]).sum()
        texts.append(
            f"Line below a lane: priority inversion, {format_count(len(inverted), 'time')},"
            f" {duration(length_ns)} in all. For longer than a tick ({duration(tick_ns)}), a"
            f" process of worse {activity.criterion} runs while this process, or the process that"
            " blocks it, waits."
        )
    return texts


def _describe(shown: pl.DataFrame, marks: dict[str, pl.DataFrame], span: Span) -> str:
    """Returns the chart's description for readers who cannot see it."""
    length = (pl.col("end_ns") - pl.col("begin_ns")).sum()
    sums = shown.group_by("group", "state").agg(length.alias("sum")).sort("group", "state")
    count = dict(shown.group_by("group").agg(pl.col("life").n_unique()).iter_rows())
    by_group: dict[str, list[str]] = {}
    for group, state, time in sums.iter_rows():
        fraction = time / (span.length_ns * count[group])
        by_group.setdefault(f"{count[group]} of {group}", []).append(f"{state} {percent(fraction)}")
    texts = "; ".join(
        f"{group}: {', '.join(parts)}" for group, parts in list(by_group.items())[:_GROUPS_NAMED]
    )
    marked = (
        f" {len(marks['starves'])} times starvation, {len(marks['inversion'])} times inversion."
    )
    return f"A lane for each process over {duration(span.length_ns)}. On average, {texts}.{marked}"

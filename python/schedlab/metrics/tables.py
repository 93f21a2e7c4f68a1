# SPDX-License-Identifier: MIT
"""What a person sees after a run: the metrics of one or several runs, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import polars as pl
from rich import box
from rich.table import Table
from rich.text import Text

from schedlab.metrics.model import Metrics
from schedlab.metrics.steady import steady
from schedlab.metrics.tails import tails

Row = dict[str, Any]
Format = Callable[[Row], Text | str]

_NOTHING = "–"
_COARSE_STEP_NS = 1000
_GROUPS_SHOWN = 12
_NOTABLE_POINTS = 1.0
"""A share is shown as off its ideal from this many percentage points."""


def tables(runs: list[tuple[str, Metrics]], *, narrow: bool = False) -> list[Table]:
    """Tables with one column per run: the workload as a whole, its groups, and what policies said, if they
    did.

    `runs` are headings ("2 CPUs", "lottery") and metrics. Without runs there are
    no tables; without groups there is no second one. `narrow`: with what rows have in common in a row of its own above
    them, and each part of a heading in a line.
    """
    if not runs:
        return []
    whole = _workload_table(runs, narrow)
    several = any(len(run.groups) for _, run in runs)
    said = [_said_table(runs, narrow)] if any(len(run.said) for _, run in runs) else []
    return [whole, *([_group_table(runs, narrow)] if several else []), *said]


def duration(nanoseconds: float | None) -> str:
    """A time with three significant digits and a fitting unit."""
    if nanoseconds is None:
        return _NOTHING
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        # What would be rounded up to 1000 of a unit is 1 of the next.
        if abs(nanoseconds) >= 0.9995 * factor:
            return f"{three_digits(nanoseconds / factor)} {unit}"
    return f"{nanoseconds:.0f} ns"


def three_digits(value: float | None) -> str:
    """A number with three significant digits, and never as a power of ten."""
    if value is None:
        return _NOTHING
    size = abs(value)
    if size >= 99.95 or size == 0:
        return f"{value:,.0f}"
    decimals = 1 if size >= 9.995 else 2 if size >= 0.9995 else 3 if size >= 0.09995 else 4
    return f"{value:.{decimals}f}"


def percent(share: float | None) -> str:
    """A share in percent."""
    if share is None:
        return _NOTHING
    return f"{share * 100:.{1 if share * 100 >= 9.95 else 2}f} %"


def _time(column: str) -> Format:
    return lambda row: duration(row[column])


def _number(column: str) -> Format:
    return lambda row: three_digits(row[column])


def _count(column: str) -> Format:
    return lambda row: f"{row[column]:,}"


def _percent(column: str) -> Format:
    return lambda row: percent(row[column])


def _index(column: str) -> Format:
    return lambda row: _NOTHING if row[column] is None else f"{row[column]:.3f}"


def _finished(row: Row) -> Text:
    finished, all_of_them = row["finished"], row["processes"]
    style = "" if finished == all_of_them else "yellow"
    return Text(f"{finished:,} of {all_of_them:,}", style)


_TAILS = {
    "p95": "95th percentile",
    "p99": "99th percentile",
    "p999": "99.9th percentile",
}


def _tail_lines(of: str, unit: str, show: Callable[[str], Format]) -> Iterator[tuple[str, Format]]:
    """A line for each quantile that is told of enough processes."""
    for part, title in _TAILS.items():
        yield title, show(f"{of}_{part}{unit}")


_WORKLOAD: list[tuple[str, list[tuple[str, Format]]]] = [
    (
        "processes",
        [
            ("finished", _finished),
            ("time measured", _time("elapsed_ns")),
            ("CPU time", _time("running_ns")),
            (
                "of root and others",
                lambda row: duration(row["root_running_ns"] + row["other_running_ns"]),
            ),
        ],
    ),
    (
        "turnaround",
        [
            ("mean", _time("turnaround_mean_ns")),
            ("median", _time("turnaround_median_ns")),
            *_tail_lines("turnaround", "_ns", _time),
            ("maximum", _time("turnaround_max_ns")),
        ],
    ),
    (
        "slowdown",
        [("mean", _number("slowdown_mean")), *_tail_lines("slowdown", "", _number)],
    ),
    (
        "response",
        [
            ("mean", _time("response_mean_ns")),
            ("median", _time("response_median_ns")),
            *_tail_lines("response", "_ns", _time),
            ("maximum", _time("response_max_ns")),
        ],
    ),
    (
        "waiting",
        [
            ("mean", _time("waiting_mean_ns")),
            ("median", _time("waiting_median_ns")),
            ("maximum", _time("waiting_max_ns")),
        ],
    ),
    (
        "wake-up latency",
        [
            ("median", _time("wakeup_latency_median_ns")),
            ("99th percentile", _time("wakeup_latency_p99_ns")),
            ("maximum", _time("wakeup_latency_max_ns")),
        ],
    ),
    (
        "throughput",
        [
            ("per second", _number("throughput_per_second")),
            ("per million cycles", _number("throughput_per_million_cycles")),
        ],
    ),
    (
        "overhead",
        [
            ("scheduler", _percent("overhead_share")),
            ("idle counted in", _percent("overhead_with_idle_share")),
        ],
    ),
    (
        "context switches",
        [
            ("process to process", _count("context_switches")),
            ("to idle", _count("switches_to_idle")),
            ("from idle", _count("switches_from_idle")),
        ],
    ),
    (
        "fairness (Jain)",
        [
            ("of turnaround", _index("fairness_turnaround")),
            ("of share ÷ ideal", _index("fairness_share")),
        ],
    ),
]


def _missed(row: Row) -> Text:
    if not row["jobs"]:
        return Text(_NOTHING)
    missed, jobs = row["misses"], row["jobs"]
    return Text(f"{missed:,} of {jobs:,}", "yellow" if missed else "green")


_DEADLINES: tuple[str, list[tuple[str, Format]]] = (
    "deadlines",
    [
        ("missed, of jobs", _missed),
        ("lateness, mean", _time("lateness_mean_ns")),
        ("lateness, maximum", _time("lateness_max_ns")),
        ("tardiness, mean", _time("tardiness_mean_ns")),
    ],
)
"""Shown where a run has jobs."""


def _within(column: str, show: Callable[[float | None], str]) -> Format:
    """A mean with half its interval, by batch means."""
    ends = "_ns" if column.endswith("_ns") else ""
    error = f"{column.removesuffix(ends).removesuffix('_mean')}_error{ends}"
    return lambda row: (
        _NOTHING if row[error] is None else f"{show(row[column])} ± {show(row[error])}"
    )


_STEADY: tuple[str, list[tuple[str, Format]]] = (
    "after the warm-up",
    [
        ("processes", _count("steady_jobs")),
        ("turnaround, mean", _within("steady_turnaround_mean_ns", duration)),
        ("slowdown, mean", _within("steady_slowdown_mean", three_digits)),
        ("response, mean", _within("steady_response_mean_ns", duration)),
    ],
)
"""Shown where a run has jobs enough for batch means."""


def _steady(metrics: Metrics) -> Row:
    """What comes of the workload's processes without those that came first."""
    return steady(metrics.processes.filter(pl.col("role") == "workload"))


def _tails(metrics: Metrics) -> Row:
    """High quantiles of the workload's processes, by their columns; None where none has such a value."""
    found = tails(metrics.processes.with_columns(all=pl.lit("")), ("all",))
    return found.row(0, named=True) if len(found) else dict.fromkeys(found.columns)


def _workload_table(runs: list[tuple[str, Metrics]], narrow: bool) -> Table:
    table = _table("Workload", "metric", (heading for heading, _ in runs), narrow)
    rows = [
        {**metrics.summary.row(0, named=True), **_tails(metrics), **_steady(metrics)}
        for _, metrics in runs
    ]
    several = any(row["steady_turnaround_error_ns"] is not None for row in rows)
    deadlines = [_DEADLINES] if any(row["jobs"] for row in rows) else []
    for metric, lines in (*_WORKLOAD, *([_STEADY] if several else []), *deadlines):
        told = [each for each in lines if not _is_untold(metric, each, rows)]
        _add_section(table, metric, told, rows, narrow)
    table.caption = Text("\n").join(_remarks([heading for heading, _ in runs], rows)) or None
    return table


def _is_untold(metric: str, line: tuple[str, Format], rows: Sequence[Row]) -> bool:
    """Is it a tail, of which no run has enough processes?"""
    is_tail = metric in ("turnaround", "response", "slowdown") and line[0] in _TAILS.values()
    return is_tail and all(line[1](row) == _NOTHING for row in rows)


def _remarks(headings: list[str], rows: list[Row]) -> Iterator[Text]:
    """What one should know before one believes the table."""
    cut = [heading for heading, row in zip(headings, rows, strict=True) if row["truncated"]]
    if cut:
        yield Text(f"The trace was cut off: {', '.join(cut)}.", "yellow")
    for heading, row in zip(headings, rows, strict=True):
        if row["lost_records"]:
            lost = f"{row['lost_records']:,} records of {heading} were lost"
            yield Text(f"{lost}: its figures are near the truth at best.", "yellow")
    unknown = [
        heading
        for heading, row in zip(headings, rows, strict=True)
        if row["processes"] and row["waiting_mean_ns"] is None
    ]
    if unknown:
        yield Text(
            f"Waiting is not known of {'; '.join(unknown)}: nothing in the trace tells when processes became"
            " runnable. Nor is what follows from it: time blocked, wake-up latency, ideal shares.",
            "yellow",
        )
    untold = [h for h, row in zip(headings, rows, strict=True) if row["overhead_share"] is None]
    if untold:
        yield Text(
            f"Overhead is not told of {'; '.join(untold)}: the trace has no visits to the scheduler. Where"
            " emulated CPUs take turns, a visit's time would have the other CPUs' work in it."
        )
    step = max(row["clock_step_ns"] for row in rows)
    if step >= _COARSE_STEP_NS:
        yield Text(f"The machine's clock moves in steps of {duration(step)}.")


def _share(row: Row) -> Text:
    if row["share"] is None:
        return Text(_NOTHING)
    error = row["share_error_points"]
    if error is None:
        return Text(percent(row["share"]))
    style = "yellow" if abs(error) >= _NOTABLE_POINTS else "green"
    off = f"{error:+.1f}" if round(error, 1) else "0.0"
    return Text.assemble(percent(row["share"]), (f" {off}", style))


_GROUP: list[tuple[str, Format]] = [
    ("finished", _finished),
    ("CPU share, off its ideal", _share),
    ("ideal share", _percent("ideal_share")),
    ("selections", _count("selections")),
    ("turnaround, median", _time("turnaround_median_ns")),
    ("response, median", _time("response_median_ns")),
    ("waiting, median", _time("waiting_median_ns")),
    ("wake-up latency, median", _time("wakeup_latency_median_ns")),
    ("wake-up latency, 99th", _time("wakeup_latency_p99_ns")),
]


_GROUP_DEADLINES: list[tuple[str, Format]] = [
    ("missed, of jobs", _missed),
    ("lateness, maximum", _time("lateness_max_ns")),
]


def _group_table(runs: list[tuple[str, Metrics]], narrow: bool) -> Table:
    table = _table("Groups", "group", (heading for heading, _ in runs), narrow)
    running: Counter[str] = Counter()
    for _, metrics in runs:
        running.update(dict(metrics.groups.select("group", "running_ns").iter_rows()))
    names = sorted(name for name, _ in running.most_common(_GROUPS_SHOWN))
    if len(running) > len(names):
        table.caption = f"{len(running) - len(names)} groups that ran less are not shown."
    by_name = [{row["group"]: row for row in metrics.groups.to_dicts()} for _, metrics in runs]
    any_jobs = any(row["jobs"] for rows in by_name for row in rows.values())
    shown = [*_GROUP, *_GROUP_DEADLINES] if any_jobs else _GROUP
    for name in names:
        _add_section(table, name, shown, [rows.get(name) for rows in by_name], narrow)
    return table


def _said_table(runs: list[tuple[str, Metrics]], narrow: bool) -> Table:
    """How often each remark was made, and with which numbers last."""
    table = _table("Remarks", "remark", (heading for heading, _ in runs), narrow)
    by_words = [{row["words"]: row for row in metrics.said.to_dicts()} for _, metrics in runs]
    lines: list[tuple[str, Format]] = [
        ("times", _count("times")),
        ("last", lambda row: row["last"]),
    ]
    for words in dict.fromkeys(words for rows in by_words for words in rows):
        _add_section(table, words, lines, [rows.get(words) for rows in by_words], narrow)
    return table


def _table(title: str, first: str, headings: Iterable[str], narrow: bool) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    table.caption_justify = "left"
    if not narrow:
        table.add_column(first, style="bold", no_wrap=True)
    table.add_column(first if narrow else "", style="dim", no_wrap=True)
    for heading in headings:
        told = heading.replace(", ", ",\n") if narrow else heading
        table.add_column(Text(told), justify="right", no_wrap=True)
    return table


def _add_section(
    table: Table,
    title: str,
    lines: list[tuple[str, Format]],
    rows: Sequence[Row | None],
    narrow: bool,
) -> None:
    if narrow:
        table.add_row(Text(title, "bold not dim"))
    for number, (name, show) in enumerate(lines):
        cells = [_NOTHING if row is None else show(row) for row in rows]
        last = number == len(lines) - 1 and not narrow
        begins = (f"  {name}",) if narrow else ("" if number else Text(title), name)
        table.add_row(*begins, *cells, end_section=last)

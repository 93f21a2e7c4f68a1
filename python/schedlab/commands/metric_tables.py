# SPDX-License-Identifier: MIT
"""Prints tables of metrics on the terminal, for one run or several side
by side, with no figure cut off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl
from rich import box
from rich.table import Table
from rich.text import Text

from schedlab.base.display.numbers import NO_VALUE, duration, percent, three_digits
from schedlab.base.display.terminal import full_width, new_table, print_full_width, result_console
from schedlab.metrics.registry import AFTER_WARM_UP, METRICS, Metric
from schedlab.metrics.steady import steady
from schedlab.metrics.tails import tails

if TYPE_CHECKING:
    from schedlab.base.outputs import Figures
    from schedlab.metrics import Metrics

Row = dict[str, Any]
RowFormatter = Callable[[Row], Text | str]
Line = tuple[str, RowFormatter]

_COARSE_STEP_NS = 1000
_GROUPS_MAX = 12
_NOTABLE_POINTS = 1.0
"""Smallest deviation from the ideal share, in percentage points, that is marked."""


def print_metrics(columns: Sequence[tuple[str, Metrics]]) -> None:
    """Prints runs side by side, in several tables if the terminal is too narrow for one.

    A file gets a single table of any width. `columns`: headings and metrics.
    """
    for table in _fitting_tables(columns):
        print_full_width(table)


def print_figures(columns: Sequence[tuple[str, Figures]]) -> None:
    """Prints the figures that benchmarks reported, one row each; nothing if there are none."""

    if not columns:
        return
    table = new_table("Reported by the workload", "figure", *(f">{head}" for head, _ in columns))
    for name in dict.fromkeys(name for _, figures in columns for name in figures):
        cells = (three_digits(figures[name]) if name in figures else "–" for _, figures in columns)
        table.add_row(name, *cells)
    print_full_width(table)


def _fitting_tables(columns: Sequence[tuple[str, Metrics]]) -> list[Table]:
    """Returns tables that fit the terminal, with equal numbers of
    columns and at least one column each.
    """
    all_tables = tables(list(columns))
    if not result_console().is_terminal or _all_fit(all_tables):
        return all_tables
    for size in range(len(columns), 0, -1):
        groups = (list(columns[index : index + size]) for index in range(0, len(columns), size))
        narrow = [table for group in groups for table in tables(group, narrow=True)]
        if size == 1 or _all_fit(narrow):
            return narrow
    return []


def _all_fit(metric_tables: Sequence[Table]) -> bool:
    """Returns whether all tables fit the width of the terminal."""
    return all(full_width(table) <= result_console().width for table in metric_tables)


def tables(runs: list[tuple[str, Metrics]], *, narrow: bool = False) -> list[Table]:
    """Returns tables with one column per run: workload totals, groups, and annotations of policies.

    `runs`: headings ("2 CPUs", "lottery") and metrics. Without runs there are no tables; without
    groups there is no table of groups. `narrow`: values that the rows share are in a row above
    them, and each part of a heading has its own line.
    """
    if not runs:
        return []
    workload_table = _workload_table(runs, narrow)
    has_several_groups = any(len(run.groups) for _, run in runs)
    annotation_tables = (
        [_annotation_table(runs, narrow)] if any(len(run.said) for _, run in runs) else []
    )
    return [
        workload_table,
        *([_group_table(runs, narrow)] if has_several_groups else []),
        *annotation_tables,
    ]


def _finished_text(row: Row) -> Text:
    """Returns how many tasks finished, as a warning if some did not."""
    finished, all_of_them = row["finished"], row["processes"]
    style = "" if finished == all_of_them else "yellow"
    return Text(f"{finished:,} of {all_of_them:,}", style)


def _longest_waiter(row: Row) -> str:
    """Returns the task with the longest wait and the length of this wait."""
    return str(row["longest_wait_of"] or "–")


def _missed_text(row: Row) -> Text:
    """Returns how many deadlines were missed, out of how many jobs."""
    if not row["jobs"]:
        return Text(NO_VALUE)
    missed, jobs = row["misses"], row["jobs"]
    return Text(f"{missed:,} of {jobs:,}", "yellow" if missed else "green")


def _steady_metrics(metrics: Metrics) -> Row:
    """Returns the workload's metrics without the tasks of the warm-up."""
    return steady(metrics.processes.filter(pl.col("role") == "workload"))


def _tail_metrics(metrics: Metrics) -> Row:
    """Returns high quantiles of the workload's tasks by column;
    None if no task has such a value.
    """
    tail_rows = tails(metrics.processes.with_columns(all=pl.lit("")), ("all",))
    return tail_rows.row(0, named=True) if len(tail_rows) else dict.fromkeys(tail_rows.columns)


def _other_cpu_time(row: Row) -> str:
    """Returns the CPU time of root and of tasks outside the workload."""
    return duration(row["root_running_ns"] + row["other_running_ns"])


_LEADING_LINES: Mapping[str, Sequence[Line]] = {
    "processes": [("finished", _finished_text)],
    "deadlines": [("missed, of jobs", _missed_text)],
}
_TRAILING_LINES: Mapping[str, Sequence[Line]] = {
    "processes": [("CPU time of root and others", _other_cpu_time)],
    "waiting": [("by process", _longest_waiter)],
}
"""Lines of a family of metrics that combine several columns, before and after the metrics."""


def _workload_table(runs: list[tuple[str, Metrics]], narrow: bool) -> Table:
    table = _new_run_table("Workload", "metric", (heading for heading, _ in runs), narrow)
    rows = [
        {**metrics.summary.row(0, named=True), **_tail_metrics(metrics), **_steady_metrics(metrics)}
        for _, metrics in runs
    ]
    for family, lines in _sections(rows):
        _add_section(table, family, lines, rows, narrow)
    table.caption = Text("\n").join(_warnings([heading for heading, _ in runs], rows)) or None
    return table


def _sections(rows: Sequence[Row]) -> Iterator[tuple[str, list[Line]]]:
    shown = [metric for metric in METRICS if _is_shown(metric, rows)]
    for family in dict.fromkeys(metric.family for metric in shown):
        family_columns = [
            (metric.short, _formatter(metric)) for metric in shown if metric.family == family
        ]
        yield (
            family,
            [*_LEADING_LINES.get(family, ()), *family_columns, *_TRAILING_LINES.get(family, ())],
        )


def _is_shown(metric: Metric, rows: Sequence[Row]) -> bool:
    """False for metrics of jobs, tails and the time after the warm-up, if no run has them."""
    if not metric.family or not metric.in_tables or metric.scope == "group":
        return False
    if metric.family == "deadlines":
        return any(row["jobs"] for row in rows)
    if metric.family == AFTER_WARM_UP:
        return any(row["steady_turnaround_error_ns"] is not None for row in rows)
    return not metric.derived or any(row[metric.column] is not None for row in rows)


def _formatter(metric: Metric) -> RowFormatter:
    """Returns the formatter of a metric in a row. A mean by batches includes half its interval."""
    column, error, show = metric.column, metric.error, metric.kind.show
    if not error:
        return lambda row: NO_VALUE if row[column] is None else show(row[column])
    return lambda row: (
        NO_VALUE if row[error] is None else f"{show(row[column])} ± {show(row[error])}"
    )


def _warnings(headings: list[str], rows: list[Row]) -> Iterator[Text]:
    """Yields warnings that limit how far the table can be trusted."""
    cut = [heading for heading, row in zip(headings, rows, strict=True) if row["truncated"]]
    if cut:
        yield Text(f"The trace was cut off: {', '.join(cut)}.", "yellow")
    for heading, row in zip(headings, rows, strict=True):
        if row["lost_records"]:
            lost = f"{row['lost_records']:,} records of {heading} were lost"
            yield Text(f"{lost}: the metrics of this run are approximate at best.", "yellow")
    unknown = [
        heading
        for heading, row in zip(headings, rows, strict=True)
        if row["processes"] and row["waiting_mean_ns"] is None
    ]
    if unknown:
        yield Text(
            f"Waiting is unknown for {'; '.join(unknown)}: the trace does not record wake-ups, or"
            " lacks many records. So are blocked times, wake-up latencies and ideal shares.",
            "yellow",
        )
    without_overhead = [
        h for h, row in zip(headings, rows, strict=True) if row["overhead_share"] is None
    ]
    if without_overhead:
        yield Text(
            f"Overhead is unknown for {'; '.join(without_overhead)}: the trace has no scheduler"
            " records. If CPUs are emulated in turn, such a time would include the other CPUs'"
            " work."
        )
    step = max(row["clock_step_ns"] for row in rows)
    if step >= _COARSE_STEP_NS:
        yield Text(f"The resolution of the machine's clock is {duration(step)}.")


def _share_text(row: Row) -> Text:
    """Returns a group's share of the CPUs with its ideal, marked if it deviates."""
    if row["share"] is None:
        return Text(NO_VALUE)
    error = row["share_error_points"]
    if error is None:
        return Text(percent(row["share"]))
    style = "yellow" if abs(error) >= _NOTABLE_POINTS else "green"
    deviation = f"{error:+.1f}" if round(error, 1) else "0.0"
    return Text.assemble(percent(row["share"]), (f" {deviation}", style))


def _group_table(runs: list[tuple[str, Metrics]], narrow: bool) -> Table:
    """Returns the table of groups: share, ideal and times."""
    table = _new_run_table("Groups", "group", (heading for heading, _ in runs), narrow)
    running: Counter[str] = Counter()
    for _, metrics in runs:
        running.update(dict(metrics.groups.select("group", "running_ns").iter_rows()))
    names = sorted(name for name, _ in running.most_common(_GROUPS_MAX))
    if len(running) > len(names):
        table.caption = f"{len(running) - len(names)} groups that ran less are not shown."
    by_name = [{row["group"]: row for row in metrics.groups.to_dicts()} for _, metrics in runs]
    any_jobs = any(row["jobs"] for rows in by_name for row in rows.values())
    shown: list[Line] = [
        ("finished", _finished_text),
        ("CPU share, error", _share_text),
        *(
            (metric.title, _formatter(metric))
            for metric in METRICS
            if metric.in_groups and (any_jobs or metric.rows != "jobs")
        ),
        *([("missed, of jobs", _missed_text)] if any_jobs else []),
    ]
    for name in names:
        _add_section(table, name, shown, [rows.get(name) for rows in by_name], narrow)
    return table


def _annotation_table(runs: list[tuple[str, Metrics]], narrow: bool) -> Table:
    """Returns how often each annotation occurred, and its last numbers."""
    table = _new_run_table("Remarks", "remark", (heading for heading, _ in runs), narrow)
    by_words = [{row["words"]: row for row in metrics.said.to_dicts()} for _, metrics in runs]
    lines: list[Line] = [
        ("times", lambda row: f"{row['times']:,}"),
        ("last", lambda row: row["last"]),
    ]
    for words in dict.fromkeys(words for rows in by_words for words in rows):
        _add_section(table, words, lines, [rows.get(words) for rows in by_words], narrow)
    return table


def _new_run_table(title: str, first: str, headings: Iterable[str], narrow: bool) -> Table:
    """Returns an empty table with a column per run. `first`: the heading of the first column."""
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    table.caption_justify = "left"
    if not narrow:
        table.add_column(first, style="bold", no_wrap=True)
    table.add_column(first if narrow else "", style="dim", no_wrap=True)
    for heading in headings:
        column_title = heading.replace(", ", ",\n") if narrow else heading
        table.add_column(Text(column_title), justify="right", no_wrap=True)
    return table


def _add_section(
    table: Table,
    title: str,
    lines: Sequence[Line],
    rows: Sequence[Row | None],
    narrow: bool,
) -> None:
    if narrow:
        table.add_row(Text(title, "bold not dim"))
    for number, (name, show) in enumerate(lines):
        cells = [NO_VALUE if row is None else show(row) for row in rows]
        last = number == len(lines) - 1 and not narrow
        begins = (f"  {name}",) if narrow else ("" if number else Text(title), name)
        table.add_row(*begins, *cells, end_section=last)

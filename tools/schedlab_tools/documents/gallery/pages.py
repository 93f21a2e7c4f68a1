# SPDX-License-Identifier: MIT
"""Generates the parts of the gallery's pages between marks; handwritten text remains."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import altair as alt
import polars as pl

from schedlab import trace
from schedlab.base.display.numbers import three_digits, with_fitting_unit
from schedlab.base.toolchain.policies import known_policies
from schedlab.errors import SchedlabError
from schedlab.paths import ROOT
from schedlab.report.charts.parts import Styles, chart_with_data
from schedlab.report.charts.processes import (
    Span,
    TimeAxis,
    chart_processes,
    merge_for_page,
    row_axis,
)
from schedlab.report.charts.theme import PALETTE, SLATE, policy_look
from schedlab.report.model import Chart
from schedlab.report.specifications import paper_specification
from schedlab.sweep.objectives import parse_objective
from schedlab.trace import Trace
from schedlab_tools.documents.gallery import trials
from schedlab_tools.documents.gallery.code import with_marks
from schedlab_tools.documents.gallery.extremes import PolicyComparison, extremes
from schedlab_tools.documents.marked_parts import with_marked, wrapped, write

FOLDER = ROOT / "docs" / "gallery"
INDEX = FOLDER / "README.md"
TRACES = FOLDER / "traces.txt"
"""Hashes of the traces that the pictures were drawn from."""
_LINES = re.compile(r"<!-- lines\n(.*?)\n-->", re.DOTALL)
_WIDTH = 120
_NO_DIFFERENCE_TEXTS = {
    "good": "In no contest of the sweep is it surely better than the typical policy.",
    "fails": "In no contest of the sweep is it surely worse than the typical policy.",
}


@dataclass(frozen=True)
class PolicySide:
    """One side of a policy: a comparison, or None if it never differs from the typical policy."""

    policy: str
    side: str
    """"good" or "fails"."""
    comparison: PolicyComparison | None

    @property
    def file(self) -> Path:
        """The file of its picture."""
        return FOLDER / f"{self.policy}-{self.side}.svg"


def page_of(policy: str) -> Path:
    """Returns the file of a policy's page."""
    return FOLDER / f"{policy}.md"


def files() -> tuple[Path, ...]:
    """Returns all files that `make` writes."""
    pictures = (
        PolicySide(name, side, None).file
        for name in trials.policies()
        for side in _NO_DIFFERENCE_TEXTS
    )
    return (INDEX, TRACES, *map(page_of, trials.policies()), *pictures)


def make() -> None:
    """Runs the sweep, and writes pages and pictures. Raises SchedlabError if a page lacks its marks, or a run fails."""
    with TemporaryDirectory(prefix="schedlab-") as temporary:
        runs_folder = Path(temporary)
        comparisons = trials.run(runs_folder / "sweep")
        shown = [side for name in trials.policies() for side in _sides(comparisons, name)]
        needed = {
            (side.comparison.workload, side.comparison.cpus, policy)
            for side in shown
            if side.comparison
            for policy in (side.policy, side.comparison.typical)
        }
        trace_folders = trials.traces(runs_folder / "traces", needed)
        _draw(shown, trace_folders)
        write(TRACES, trials.hashes_text(trace_folders))
    for name in trials.policies():
        sides = {side.side: side for side in shown if side.policy == name}
        write(
            page_of(name),
            page(page_of(name).read_text("utf-8"), name, sides["good"], sides["fails"]),
        )
    write(INDEX, with_marked(INDEX.read_text("utf-8"), "policies", _table(shown)))


def make_code() -> None:
    """Writes the code's part of all pages, which needs no run. Raises SchedlabError as `code` does."""
    for name in trials.policies():
        text = page_of(name).read_text("utf-8")
        write(page_of(name), with_marked(text, "code", code(text, name)))


def page(text: str, policy: str, good: PolicySide, fails: PolicySide) -> str:
    """Returns a page's text with its parts regenerated. Raises SchedlabError if a mark is missing."""
    text = with_marked(text, "source", _source(policy))
    for side in (good, fails):
        text = with_marked(text, side.side, _summary(side))
    return with_marked(text, "code", code(text, policy))


def code(text: str, policy: str) -> str:
    """Returns the part `code` of a page, from the lines that it names and the policy's file.

    Raises SchedlabError if the page names no lines, or an unknown line.
    """
    named = _LINES.search(text)
    if not named:
        raise SchedlabError(f"the gallery's page of {policy} names no lines: <!-- lines")
    source = (ROOT / "policies" / f"{policy}.c").read_text("utf-8")
    return f"\n```c\n{with_marks(source, named[1].splitlines())}\n```\n"


def _sides(comparisons: Sequence[PolicyComparison], policy: str) -> tuple[PolicySide, PolicySide]:
    """Returns the best and the worst side of a policy."""
    sides = extremes(comparisons, policy)
    return PolicySide(policy, "good", sides.best), PolicySide(policy, "fails", sides.worst)


def _draw(shown: Sequence[PolicySide], traces: dict[tuple[str, int, str], Path]) -> None:
    """Draws the pictures of these sides."""
    from schedlab.report.drawing import render_svg

    for side in shown:
        comparison = side.comparison
        if not comparison:
            side.file.unlink(missing_ok=True)
            continue
        policy_trace, rival = (
            trace.read(traces[comparison.workload, comparison.cpus, policy])
            for policy in (side.policy, comparison.typical)
        )
        write(
            side.file,
            render_svg(
                paper_specification(
                    draw_comparison(side.side, comparison, side.policy, policy_trace, rival)
                )
            )
            + "\n",
        )


def _source(policy: str) -> str:
    """Returns the sentence that names the policy's origin and links to its file."""
    entry = known_policies()[policy]
    return f"{entry.source}. [policies/{policy}.c](../../policies/{policy}.c) has all of it."


def _summary(shown: PolicySide) -> str:
    """Returns the sentences about a side, with its picture."""
    comparison = shown.comparison
    if not comparison:
        return f"\n{_NO_DIFFERENCE_TEXTS[shown.side]}\n"
    workload = f"[{Path(comparison.workload).stem}](../../{comparison.workload})"
    caption = (
        f"All policies by {parse_objective(comparison.measure).title}, and below it what {shown.policy} and "
        f"{comparison.typical} did with the processes."
    )
    figures = _figures(shown.policy, comparison)
    return "\n\n".join(
        (
            f"\n![{caption}]({shown.file.name})",
            wrapped(f"Under {workload} on {_cpus(comparison.cpus)}: {figures}.", width=_WIDTH),
            f"    {_command(shown.policy, comparison)}\n",
        )
    )


def _figures(policy: str, comparison: PolicyComparison) -> str:
    """Returns the value and rank of the policy, and the value of the typical policy, in words."""
    objective = parse_objective(comparison.measure)
    policy_mean, usual = comparison.mean(policy), comparison.mean(comparison.typical)
    shown = with_fitting_unit(objective.quantity, max(policy_mean, usual))
    unit = f" {shown.unit}" if shown.unit else ""
    place = sorted(map(comparison.mean, comparison.values)).index(policy_mean) + 1
    return (
        f"{objective.title}, {three_digits(policy_mean * shown.factor)}{unit}, where the policy in the middle, "
        f"`{comparison.typical}`, has {three_digits(usual * shown.factor)}{unit}; "
        f"place {place} of {len(comparison.values)}"
    )


def _command(policy: str, comparison: PolicyComparison) -> str:
    """Returns the command that repeats the runs."""
    return (
        f"./schedlab run --machine sim --workload {comparison.workload}"
        f" --policy {policy},{comparison.typical} --cpus {comparison.cpus}"
    )


def _table(shown: Sequence[PolicySide]) -> str:
    return "\n" + "\n".join(_rows(shown)) + "\n"


def _rows(shown: Sequence[PolicySide]) -> Iterator[str]:
    yield "| policy | idea | at its best | at its worst |"
    yield "|---|---|---|---|"
    for good, fails in zip(shown[::2], shown[1::2], strict=True):
        texts = (_side_text(side) for side in (good, fails))
        idea = known_policies()[good.policy].meaning
        yield f"| [`{good.policy}`]({good.policy}.md) | {idea} | {' | '.join(texts)} |"


def _side_text(shown: PolicySide) -> str:
    """Returns a side in a few words, for the table."""
    comparison = shown.comparison
    if not comparison:
        return "nowhere apart"
    factor = comparison.factor(shown.policy)
    times = f"{three_digits(factor)} times" if factor > 1 else f"1/{three_digits(1 / factor)} of"
    place = f"`{Path(comparison.workload).stem}`, {_cpus(comparison.cpus)}"
    return f"{parse_objective(comparison.measure).title} {times} the middle's: {place}"


def _cpus(count: int) -> str:
    return "1 CPU" if count == 1 else f"{count} CPUs"


WIDTH = 560
"""Pixels of each plot."""
_RANK_HEIGHT, _LANE_HEIGHT = 14, 13
_LANES_MAX = 8
_DRAWN_RUNS_MAX = 120
"""The most runs on all CPUs of a time line, averaged over both policies; more could not be distinguished."""
_LOG_AXIS_RATIO = 20
"""If the largest value exceeds the smallest by this factor, the axis is logarithmic."""
_WAIT_CAUSES = {"wakeup-99th": "woken", "response": "forked"}
"""The cause of the waits that a measure covers; other measures cover all waits."""
_LONG_TERM_MEASURES = ("share-error",)
"""Measures that no single wait shows."""
_WAIT_OPACITY = 0.28
"""The opacity of a wait."""


def draw_comparison(
    name: str, comparison: PolicyComparison, policy: str, policy_trace: Trace, rival: Trace
) -> Chart:
    """Draws the comparison for a policy. `policy_trace`, `rival`: traces of the policy and of the typical one.

    Both time lines show the same interval: around the longest relevant wait of either policy, or
    for shares the second half.
    """
    activities = [_activity(policy_trace), _activity(rival)]
    span_shown = (
        _second_half(activities)
        if comparison.measure in _LONG_TERM_MEASURES
        else _around_longest_wait(activities, _WAIT_CAUSES.get(comparison.measure))
    )
    span = _readable_part(activities, span_shown, policy_trace.header.cpus)
    lanes = _lanes(activities, span)
    groups = sorted({group for activity in activities for group in activity["group"]})
    titles = (policy, comparison.typical)
    lines = [
        _time_line(title, activity, span, lanes, groups, policy_trace.header.tick_ns)
        for title, activity in zip(titles, activities, strict=True)
    ]
    return Chart(
        name,
        "",
        alt.vconcat(_draw_ranking(comparison, policy), *lines, spacing=18).resolve_scale(
            color="independent"
        ),
        pl.DataFrame(),
        "",
        "",
    )


def _draw_ranking(comparison: PolicyComparison, policy: str) -> Any:
    objective = parse_objective(comparison.measure)
    shown = with_fitting_unit(objective.quantity, max(map(max, comparison.values.values())))
    drawn_min = comparison.noticeable * shown.factor or 1e-9
    rows = pl.DataFrame(
        [
            {
                "policy": name,
                "mean": max(comparison.mean(name) * shown.factor, drawn_min),
                "low": max(min(values) * shown.factor, drawn_min),
                "high": max(max(values) * shown.factor, drawn_min),
                "own": name == policy,
            }
            for name, values in comparison.values.items()
        ]
    ).sort("mean", "policy")
    from_least = rows["high"].max() / rows["low"].min() > _LOG_AXIS_RATIO  # type: ignore[operator]
    title = f"{objective.title} ({shown.unit})" if shown.unit else objective.title
    scale = alt.Scale(type="log") if from_least else alt.Scale(zero=True)
    x = alt.X("mean:Q", title=title, scale=scale, axis=alt.Axis(tickCount=6))
    y = alt.Y("policy:N", title=None, sort=rows["policy"].to_list(),
              axis=alt.Axis(ticks=False, domain=False, grid=True, labelOverlap=False))  # fmt: skip
    colour = alt.Color("own:N", legend=None,
                       scale=alt.Scale(domain=[True, False], range=[policy_look(policy).colour, SLATE]))  # fmt: skip
    base = chart_with_data(rows)
    low_bound = x.copy()
    low_bound["shorthand"] = "low:Q"
    return alt.layer(
        base.mark_rule(strokeWidth=1.5, aria=False).encode(low_bound, alt.X2("high:Q"), y, colour),
        base.mark_point(filled=True, size=55, opacity=1, aria=False).encode(x, y, colour),
    ).properties(width=WIDTH, height=_RANK_HEIGHT * len(rows))


def _activity(trace: Trace) -> pl.DataFrame:
    """Returns the states of the workload's processes in the window: label, group, state, begin_ns,
    end_ns since its begin.
    """
    processes = chart_processes(trace)
    window = Span(processes.window.begin_ns, processes.window.end_ns)
    begin = processes.window.begin_ns
    return (
        window.clip(processes.intervals())
        .filter(pl.col("role") == "workload", pl.col("state").is_in(["running", "runnable"]))
        .select(
            "label",
            "pid",
            "group",
            "state",
            pl.col("cause").cast(pl.String),
            pl.col("begin_ns", "end_ns") - begin,
        )
    )


def _second_half(activities: Sequence[pl.DataFrame]) -> Span:
    """Returns the second half of the time when there are processes under both policies."""
    end = min(int(activity.select(pl.col("end_ns").max()).item()) for activity in activities)
    return Span(end // 2, end)


def _around_longest_wait(activities: Sequence[pl.DataFrame], cause: str | None) -> Span:
    """Returns the longest wait with this cause, extended by a quarter of its length on both sides."""
    all_activity = pl.concat(activities)
    length = pl.col("end_ns") - pl.col("begin_ns")
    of_measure = pl.lit(True) if cause is None else pl.col("cause") == cause
    waits = all_activity.filter(pl.col("state") == "runnable", of_measure)
    wait = waits.sort(length, "begin_ns", descending=[True, False]).row(0, named=True)
    quarter = max((wait["end_ns"] - wait["begin_ns"]) // 4, 5_000_000)
    return Span(max(wait["begin_ns"] - quarter, 0), wait["end_ns"] + quarter)


def _readable_part(activities: Sequence[pl.DataFrame], span_shown: Span, cpus: int) -> Span:
    """Returns the beginning of the interval, if the whole interval has too many runs to distinguish."""
    runs = span_shown.clip(pl.concat(activities).filter(pl.col("state") == "running")).sort(
        "begin_ns"
    )
    most = 2 * _DRAWN_RUNS_MAX * cpus
    return (
        span_shown if len(runs) <= most else Span(span_shown.begin_ns, int(runs["begin_ns"][most]))
    )


def _lanes(activities: Sequence[pl.DataFrame], span: Span) -> list[str]:
    """Returns the processes with the longest waits, alternating between groups, sorted by group and PID."""
    shown = span.clip(pl.concat(activities))
    length = pl.col("end_ns") - pl.col("begin_ns")
    rows = (
        shown.group_by("label")
        .agg(
            pl.col("group", "pid").first(),
            waited=length.filter(pl.col("state") == "runnable").max().fill_null(0),
        )
        .sort("waited", "pid", descending=[True, False])
        .with_columns(turn=pl.int_range(pl.len()).over("group"))
        .sort("turn", "waited", "pid", descending=[False, True, False])
    )
    return rows.head(_LANES_MAX).sort("group", "pid")["label"].to_list()


def _time_line(
    title: str,
    activity: pl.DataFrame,
    span: Span,
    lanes: list[str],
    groups: list[str],
    tick_ns: int,
) -> Any:
    """Draws the runs and waits of these processes in the interval."""
    axis = TimeAxis(span, 0, "ms", tick_ns)
    drawn, _ = merge_for_page(
        span.clip(activity).filter(pl.col("label").is_in(lanes)), ["label", "state", "group"], span
    )
    loud = groups[: len(PALETTE) - 1]
    series = pl.when(pl.col("group").is_in(loud)).then("group").otherwise(pl.lit("others"))
    drawn = drawn.with_columns(series=series)
    styles = Styles(
        [*loud, *(["others"] if len(groups) > len(loud) else [])], policies=False, muted=["others"]
    )
    colour = styles.colour()
    colour["legend"] = None  # the rows show their groups
    y = row_axis("label", lanes, 0.15)
    layers = [
        axis.bars(
            drawn.filter(pl.col("state") == state),
            ["label", "series"],
            y,
            colour,
            opacity=opacity,
            aria=False,
        )
        for state, opacity in (("runnable", _WAIT_OPACITY), ("running", 1.0))
    ]
    return alt.layer(*layers).properties(
        width=WIDTH, height=_LANE_HEIGHT * len(lanes), title=alt.TitleParams(title, anchor="start")
    )

# SPDX-License-Identifier: MIT
"""The charts of the first page, drawn from the suites that the findings count.

They show the metric with the clearest differences, two metrics against each other, and shares of
the CPU or wake-up latencies.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from schedlab.analysis.comparison.measures import MEASURES_BY_NAME, Measure
from schedlab.analysis.comparison.suites import Suite
from schedlab.base.display.names import json_text, visible_in_chart
from schedlab.base.display.numbers import TIME, Quantity, with_fitting_unit
from schedlab.base.toolchain.policies import sort_policies
from schedlab.report.charts.parts import (
    CUT_NOTE,
    NUMBER_FORMAT,
    AxisRange,
    Styles,
    axis_range,
    chart_with_data,
    join_sentences,
)
from schedlab.report.charts.theme import ANNOTATION, BLUE, SMALL_TEXT_SIZE, WIDTH
from schedlab.report.findings import (
    clearest_suite,
    count_score,
    goal_measures,
    rankable_suites,
    seeds_for_ties,
    suite_label,
    widely_run_policies,
)
from schedlab.report.model import Chart
from schedlab.report.wording import listed, policy_label

CHARTS_MAX = 3
_NAMED_POLICIES_MAX = 5
"""Maximum number of policies tied for best that a caption names."""
_ROW_HEIGHT = 22
_PLANE_HEIGHT = 250
"""Height of a chart of two metrics, in pixels."""
_LOG_AXIS_RATIO = 20.0
"""Smallest ratio of the worst mean to the best for a logarithmic axis."""
_POWERS_WITH_STEPS_MAX = 4
"""A logarithmic axis over more powers of ten has ticks only at the powers, not at 2 and 5 times them."""
_TIME_METRICS = ("turnaround", "response", "completion", "wakeup-99th", "wakeup-median")
"""Preferred goals of the first chart. If policies differ in none of these goals, the chart shows any other goal."""
_METRIC_PAIRS = (
    ("turnaround", "response"),
    ("turnaround", "wakeup-99th"),
    ("throughput", "wakeup-99th"),
    ("throughput", "response"),
)
"""Pairs of goals between which policies often trade."""
_SHARE_METRIC = "share-error"
"""The goal on shares: how close shares are to the tickets or weights."""


def headline_charts(suites: Sequence[Suite]) -> list[Chart]:
    """Returns up to three charts of different goals; none if nothing can be compared."""
    rankable = rankable_suites(suites)
    return list(_goal_charts(rankable))[:CHARTS_MAX] if rankable else []


def _goal_charts(rankable: Sequence[Suite]) -> Iterator[Chart]:
    """Yields the charts in order of interest."""
    order = _goals_by_interest(rankable)
    times = [measure for measure in order if measure.name in _TIME_METRICS] or order
    drawn_measures = set()
    if times:
        drawn_measures.add(times[0])
        yield _means_chart(rankable, times[0])
    pair = _pick_metric_pair(rankable)
    if pair:
        yield _trade_off_chart(rankable, *pair)
    other_measures = [
        measure
        for measure in order
        if measure not in drawn_measures and (not pair or measure not in pair)
    ]
    other_measures.sort(key=lambda measure: measure.name != _SHARE_METRIC)
    for measure in other_measures:
        yield _means_chart(rankable, measure)


def _goals_by_interest(rankable: Sequence[Suite]) -> list[Measure]:
    """Returns the goals by decreasing number of policies that are worse than the best."""

    def count_worse(measure: Measure) -> int:
        """Returns the largest number of policies that are worse than the best on a suite."""
        suites = [suite for suite in rankable if measure in suite.differing_measures]
        return sum(
            len(suite.policies_with(measure)) - len(suite.best_policies(measure))
            for suite in suites
        )

    return sorted(goal_measures(rankable), key=count_worse, reverse=True)


def _pick_metric_pair(rankable: Sequence[Suite]) -> tuple[Measure, Measure] | None:
    """Returns two goals of one suite where policies differ, or None if no suite has two."""
    for names in _METRIC_PAIRS:
        across, up = (MEASURES_BY_NAME[name] for name in names)
        if clearest_suite(rankable, across, up):
            return across, up
    order = _goals_by_interest(rankable)
    other_pairs = ((one, other) for one in order for other in order if one is not other)
    return next((measures for measures in other_pairs if clearest_suite(rankable, *measures)), None)


# --- one goal by policy


def _means_chart(rankable: Sequence[Suite], measure: Measure) -> Chart:
    """Draws the means of a metric on the suite with the clearest differences."""
    suite = clearest_suite(rankable, measure)
    assert suite, "a metric is a goal if policies differ in some suite"
    names = suite.policies_by_mean(measure)
    unit = _common_unit(suite, measure)
    data = pl.DataFrame(
        [{"series": policy, **_bounds(suite, policy, measure, unit)} for policy in names]
    )
    reach = _axis_reach(data, ("mean",))
    best_policies = suite.best_policies(measure)
    return Chart(
        f"headline-{measure.name}",
        f"{_capitalize(measure.title)}, by policy",
        _draw_means(data, names, reach, _axis_title(measure, unit)),
        data,
        join_sentences(
            f"{_capitalize(suite_label(suite))}. A point is a mean, a bar its 95 % interval; the best is at the"
            f" top. {_verdict_text(best_policies, names)}",
            CUT_NOTE if _cuts(reach, data, "low", "high") else "",
        ),
        f"{_capitalize(measure.title)}, {suite_label(suite)}: "
        + ", ".join(
            f"{policy_label(row['series'])} {row['mean']:,.4g}"
            for row in data.iter_rows(named=True)
        )
        + ".",
    )


def _verdict_text(best_policies: Sequence[str], names: Sequence[str]) -> str:
    """Returns in words which policies are best. `best_policies`: the winner, or those tied for best."""
    if len(best_policies) == len(names):
        return "All are tied for best."
    if len(best_policies) == 1:
        return "The first is the winner; all others are worse."
    if len(best_policies) > _NAMED_POLICIES_MAX:
        return f"{len(best_policies)} are tied for best; all others are worse."
    return f"Tied for best: {listed([policy_label(name) for name in best_policies])}. All others are worse."


def _draw_means(data: pl.DataFrame, names: list[str], reach: AxisRange, title: str) -> Any:
    """Draws a point with its interval for each policy."""
    styles = Styles(sort_policies(names), policies=True)
    y = alt.Y(
        "series:N",
        title=None,
        sort=names,
        axis=alt.Axis(ticks=False, domain=False, labelExpr=_label_expression(names)),
    )
    x, low = (_axis(alt.X, bound, reach, title) for bound in ("mean", "low"))
    colour = styles.channel(alt.Color)
    shared_chart = chart_with_data(data)
    return alt.layer(
        shared_chart.mark_rule(strokeWidth=2, clip=True).encode(low, alt.X2("high:Q"), y, colour),
        shared_chart.mark_point(filled=True, size=60, opacity=1).encode(
            x, y, colour, tooltip=_tooltip(title, "")
        ),
    ).properties(width=WIDTH, height=_ROW_HEIGHT * len(names))


# --- two goals


def _trade_off_chart(rankable: Sequence[Suite], across: Measure, up: Measure) -> Chart:
    """Draws two metrics of a suite against each other: one across, one upwards."""
    suite = clearest_suite(rankable, across, up)
    assert suite, "the pair was chosen so"
    names = [policy for policy in suite.policies_with(across) if policy in suite.policies_with(up)]
    units = _common_unit(suite, across), _common_unit(suite, up)
    data = pl.DataFrame(
        [
            {
                "series": policy,
                **_add_prefix("x_", _bounds(suite, policy, across, units[0])),
                **_add_prefix("y_", _bounds(suite, policy, up, units[1])),
            }
            for policy in names
        ]
    )
    data = data.with_columns(undominated=pl.Series(_undominated_flags(suite, names, across, up)))
    x_reach, y_reach = (_axis_reach(data, (f"{axis}_mean",)) for axis in "xy")
    best = " and ".join(_direction(measure, axis) for measure, axis in ((across, 0), (up, 1)))
    cut = _cuts(x_reach, data, "x_low", "x_high") or _cuts(y_reach, data, "y_low", "y_high")
    return Chart(
        f"headline-{across.name}-{up.name}",
        f"{_capitalize(_short_title(across))} against {_short_title(up)}",
        _draw_plane(
            data,
            names,
            (x_reach, y_reach),
            (_axis_title(across, units[0]), _axis_title(up, units[1])),
        ),
        data,
        join_sentences(
            f"{_capitalize(suite_label(suite))}. A point is a policy's means, the bars are 95 % intervals."
            f" Further {best} is better; a policy has its name if no other is better in both.",
            CUT_NOTE if cut else "",
        ),
        f"{_capitalize(across.title)} and {up.title}, {suite_label(suite)}: "
        + "; ".join(
            f"{policy_label(row['series'])} {row['x_mean']:,.4g} and {row['y_mean']:,.4g}"
            for row in data.iter_rows(named=True)
        )
        + ".",
    )


def _undominated_flags(suite: Suite, names: Sequence[str], *measures: Measure) -> list[bool]:
    """Returns, for each policy, True if no other policy has a better mean in all of these metrics."""
    ratios = {name: tuple(suite.ratio(name, measure) for measure in measures) for name in names}
    return [
        not any(
            other != point and all(one <= two for one, two in zip(other, point, strict=True))
            for other in ratios.values()
        )
        for point in ratios.values()
    ]


def _direction(measure: Measure, axis: int) -> str:
    """Returns in words where better values are on this axis."""
    return (("left", "right"), ("down", "up"))[axis][measure.better == "higher"]


def _draw_plane(
    data: pl.DataFrame,
    names: list[str],
    reaches: tuple[AxisRange, AxisRange],
    titles: tuple[str, str],
) -> Any:
    """Draws a point with both intervals for each policy, and labels the undominated ones."""
    styles = Styles(sort_policies(names), policies=True)
    x, y = (
        _axis(channel, f"{axis}_mean", reach, title)
        for channel, axis, reach, title in zip((alt.X, alt.Y), "xy", reaches, titles, strict=True)
    )
    across = _axis(alt.X, "x_low", reaches[0], titles[0])
    up = _axis(alt.Y, "y_low", reaches[1], titles[1])
    colour = styles.channel(alt.Color)
    shared_chart = chart_with_data(data)
    bars = shared_chart.mark_rule(strokeWidth=1.5, clip=True, strokeOpacity=0.6)
    label_rows = _label_positions(data, reaches)
    label_chart = chart_with_data(
        label_rows.with_columns(series=pl.col("series").map_elements(policy_label, pl.String))
    )
    return alt.layer(
        bars.encode(across, alt.X2("x_high:Q"), y, colour),
        bars.encode(x, up, alt.Y2("y_high:Q"), colour),
        shared_chart.mark_point(filled=True, size=75, opacity=1).encode(
            x, y, colour, tooltip=[*_tooltip(titles[0], "x_"), *_tooltip(titles[1], "y_")[1:]]
        ),
        *(
            label_chart.mark_text(style=ANNOTATION, align=align, dx=dx, dy=-7)
            .transform_filter(f"datum.align == '{align}'")
            .encode(x, y, text=alt.Text("series:N"))
            for align, dx in (("left", 4), ("right", -4))
        ),
    ).properties(width=WIDTH, height=_PLANE_HEIGHT)


def _label_positions(data: pl.DataFrame, reaches: tuple[AxisRange, AxisRange]) -> pl.DataFrame:
    """Returns the undominated policies' rows, with the side of the point where the label fits."""
    rows = data.filter(pl.col("undominated")).with_columns(
        align=pl.when(pl.col("x_mean") > _middle(reaches[0]))
        .then(pl.lit("right"))
        .otherwise(pl.lit("left"))
    )
    return rows.select("series", "x_mean", "y_mean", "align")


def _middle(reach: AxisRange) -> float:
    return math.sqrt(reach.low * reach.high) if reach.log else (reach.low + reach.high) / 2


# --- shared parts


def _label_expression(names: Sequence[str]) -> str:
    """Returns the Vega expression that gives an axis the labels of policies."""
    labels = {visible_in_chart(name): visible_in_chart(policy_label(name)) for name in names}
    return f"({json_text(labels)})[datum.label]"


def _bounds(suite: Suite, policy: str, measure: Measure, unit: Quantity) -> dict[str, float]:
    """Returns a policy's mean and interval in the metric's unit."""
    mean = suite.means[policy, measure.name]
    return {bound: getattr(mean, bound) * unit.factor for bound in ("mean", "low", "high")}


def _add_prefix(prefix: str, named: dict[str, float]) -> dict[str, float]:
    return {f"{prefix}{name}": value for name, value in named.items()}


def _common_unit(suite: Suite, measure: Measure) -> Quantity:
    """Returns the unit of a metric that suits all policies of a suite."""
    if measure.quantity is not TIME:
        return measure.quantity
    means = (suite.means[policy, measure.name].mean for policy in suite.policies_with(measure))
    return with_fitting_unit(TIME, max(means))


def _axis_title(measure: Measure, unit: Quantity) -> str:
    """Returns a metric's title with its unit and whether less or more is better."""
    better = {"lower": "less is better", "higher": "more is better"}.get(measure.better or "", "")
    return ", ".join(filter(None, (measure.title, unit.unit, better)))


def _short_title(measure: Measure) -> str:
    """Returns a metric's title up to the first comma."""
    return measure.title.partition(",")[0]


def _capitalize(words: str) -> str:
    """Returns the words with a capital first letter."""
    return words[:1].upper() + words[1:]


def _axis_reach(data: pl.DataFrame, columns: Sequence[str]) -> AxisRange:
    """Returns the range of an axis, logarithmic if the values differ widely."""
    values = [float(value) for column in columns for value in data[column]]
    log = min(values) > 0 and max(values) / min(values) > _LOG_AXIS_RATIO
    return axis_range(values, log=log, zero=False)


def _cuts(reach: AxisRange, data: pl.DataFrame, low: str, high: str) -> bool:
    """Returns whether an interval between these columns extends beyond the axis."""
    return reach.cuts_interval(data.select(low=pl.col(low), high=pl.col(high)))


def _axis(channel: Any, field: str, reach: AxisRange, title: str) -> Any:
    return channel(
        f"{field}:Q",
        title=title,
        scale=reach.scale(),
        axis=alt.Axis(format=NUMBER_FORMAT, **_ticks(reach)),
    )


def _ticks(reach: AxisRange) -> dict[str, Any]:
    """Returns a logarithmic axis's ticks: each power of ten, and 2 and
    5 times each if these are few.
    """
    if not reach.log:
        return {"tickCount": 5}
    powers = range(math.floor(math.log10(reach.low)), math.ceil(math.log10(reach.high)) + 1)
    steps = (1, 2, 5) if len(powers) <= _POWERS_WITH_STEPS_MAX else (1,)
    values = (step * 10.0**power for power in powers for step in steps)
    return {"values": [value for value in values if reach.low <= value <= reach.high]}


def _tooltip(title: str, prefix: str) -> list[alt.Tooltip]:
    """Returns a tooltip for a mean with its interval. `prefix`: the prefix of the columns."""
    return [
        alt.Tooltip("series:N", title="policy"),
        alt.Tooltip(f"{prefix}mean:Q", title=title, format=",.4~g"),
        alt.Tooltip(f"{prefix}low:Q", title="95 % interval from", format=",.4~g"),
        alt.Tooltip(f"{prefix}high:Q", title="to", format=",.4~g"),
    ]


_STRIP_ROW_HEIGHT = 36
_BAR_WIDTH = 0.86
"""Width of a bar as a fraction of its column."""
_COLUMN_GAP, _RIGHT_MARGIN = 0.15, 2.4
"""In columns: the gap before the text on the right, and the width of both."""
_COLUMN_WIDTH = 75
"""Minimum width per policy in pixels. Narrower pages scroll."""
_BAR_THICKNESS = 11
"""Height of a bar in pixels."""
_HORIZONTAL_LABELS_MAX = 8
"""Maximum number of horizontal labels. More labels are slanted."""
_SLANTED_LABELS: dict[str, Any] = {"labelAngle": -30, "labelOverlap": False, "labelAlign": "left"}
_HATCH_DISTANCE = 0.035
"""Distance of the lines of a hatch, in columns."""


def goals_chart(suites: Sequence[Suite]) -> Chart | None:
    """Draws how often each policy is the winner, tied for best and worse, as goals × policies.

    Returns None if nothing can be compared.
    """
    rankable = rankable_suites(suites)
    measures = goal_measures(rankable)
    if not measures:
        return None
    names = widely_run_policies(rankable)
    rows = [
        {
            "goal": measure.title,
            "policy": name,
            "place": index,
            "suites": policy_score.suites,
            "winner": policy_score.wins,
            "tied": policy_score.tied,
            "worse": policy_score.worse,
            "open": _undecided_texts(rankable, measure)[0],
            "seeds_needed": _undecided_texts(rankable, measure)[1],
        }
        for measure in measures
        for index, name in enumerate(names)
        for policy_score in (count_score(rankable, name, measure),)
        if policy_score.suites
    ]
    placements = pl.DataFrame(rows)
    return Chart(
        "goals",
        "Which policy for what",
        _draw_strip(placements, names, [measure.title for measure in measures]),
        placements.drop("place"),
        "A bar shows a policy's comparisons of a metric: full if it is the winner, hatched if it"
        " is tied for best, empty if it is worse. The numbers count winner and tied for best. On"
        " the right: comparisons without a winner, and how many seeds would settle half of those"
        " whose policies differ by 1 % or more. [All policies compared](#comparison) lists each"
        " comparison.",
        " ".join(_row_description(measure.title, rows) for measure in measures),
    )


def _row_description(title: str, rows: Sequence[dict[str, Any]]) -> str:
    """Returns the text of a goal's row for screen readers: the policies
    that most often win or are tied.
    """
    title_rows = [row for row in rows if row["goal"] == title]
    parts = [(row["winner"] + row["tied"]) / row["suites"] for row in title_rows]
    leaders = [row for row, part in zip(title_rows, parts, strict=True) if part == max(parts)]
    names = ", ".join(policy_label(row["policy"]) for row in leaders)
    return f"{_capitalize(title)}: {names} most often, in {max(parts):.0%} of comparisons."


def _undecided_texts(rankable: Sequence[Suite], measure: Measure) -> tuple[str, str]:
    """Returns two short lines: the number of comparisons without a
    winner, and the seeds they need.
    """
    seeds_needed = seeds_for_ties(rankable, measure)
    known_seeds = [needed_seeds for needed_seeds in seeds_needed if needed_seeds is not None]
    near_ties = len(seeds_needed) - len(known_seeds)
    if not seeds_needed:
        return "all have a winner", ""
    half = math.ceil(len(known_seeds) / 2)
    seeds = (
        f"{sorted(known_seeds)[half - 1]:,} seeds settle {half} of {len(known_seeds)}"
        if known_seeds
        else ""
    )
    return f"{len(seeds_needed)} tied, {near_ties} by less than 1 %", seeds


def _draw_strip(data: pl.DataFrame, names: Sequence[str], titles: Sequence[str]) -> Any:
    """Draws the rows of all goals with their bars and texts."""
    y = alt.Y(
        "goal:N",
        title=None,
        sort=list(titles),
        scale=alt.Scale(domain=list(titles), paddingInner=0.35),
        axis=alt.Axis(ticks=False, domain=False, labelLimit=220),
    )
    layers = [*_strip_bars(data, names, y), *_strip_texts(data, len(names), y)]
    return alt.layer(*layers).properties(
        width=WIDTH,
        height=_STRIP_ROW_HEIGHT * len(titles),
        usermeta={"narrowest": _COLUMN_WIDTH * len(names)},
    )


def _strip_bars(data: pl.DataFrame, names: Sequence[str], y: alt.Y) -> list[Any]:
    """Draws a bar and its number for each policy and goal."""
    bars = data.select(
        "goal",
        "policy",
        "suites",
        "winner",
        "tied",
        "worse",
        begin="place",
        sure=pl.col("place") + _BAR_WIDTH * pl.col("winner") / pl.col("suites"),
        end=pl.col("place") + _BAR_WIDTH * (pl.col("winner") + pl.col("tied")) / pl.col("suites"),
        whole=pl.col("place") + _BAR_WIDTH,
    )
    x = _policy_columns(names)
    tooltip = [
        alt.Tooltip("policy:N"),
        alt.Tooltip("goal:N"),
        alt.Tooltip("winner:Q"),
        alt.Tooltip("tied:Q", title="tied for best"),
        alt.Tooltip("worse:Q"),
    ]
    shared_chart = chart_with_data(bars).encode(y, tooltip=tooltip)
    styles: dict[str, Any] = {
        "size": _BAR_THICKNESS,
        "yOffset": -_BAR_THICKNESS // 2,
        "color": BLUE,
    }
    numbers = (
        shared_chart.mark_text(align="left", dx=1, dy=9, fontSize=SMALL_TEXT_SIZE)
        .encode(x, text=alt.Text("words:N"))
        .transform_calculate(words="datum.winner + datum.tied + ' of ' + datum.suites")
    )
    return [
        shared_chart.mark_bar(**styles, fillOpacity=0.08).encode(x, alt.X2("whole:Q")),
        shared_chart.mark_bar(**styles, fillOpacity=0.18).encode(x, alt.X2("end:Q")),
        *_draw_hatches(bars, y, styles),
        shared_chart.mark_bar(**styles).encode(x, alt.X2("sure:Q")),
        numbers,
    ]


def _policy_columns(names: Sequence[str]) -> alt.X:
    """Returns an axis with a column for each policy, and space on the right."""
    labels = json_text([visible_in_chart(policy_label(name)) for name in names])
    return alt.X(
        "begin:Q",
        title=None,
        scale=alt.Scale(domain=[0, len(names) + _RIGHT_MARGIN], nice=False),
        axis=alt.Axis(
            orient="top",
            values=[index + _BAR_WIDTH / 2 for index in range(len(names))],
            labelExpr=f"{labels}[floor(datum.value)]",
            grid=False,
            ticks=False,
            domain=False,
            **(_SLANTED_LABELS if len(names) > _HORIZONTAL_LABELS_MAX else {}),
        ),
    )


def _draw_hatches(bars: pl.DataFrame, y: alt.Y, styles: dict[str, Any]) -> list[Any]:
    """Draws hatches over the parts of bars that show comparisons tied for best."""
    lines = [
        {"goal": row["goal"], "at": at}
        for row in bars.iter_rows(named=True)
        for at in np.arange(row["sure"] + _HATCH_DISTANCE / 2, row["end"], _HATCH_DISTANCE)
    ]
    if not lines:
        return []
    ticks = chart_with_data(pl.DataFrame(lines)).mark_tick(**styles, thickness=1.5, aria=False)
    return [ticks.encode(alt.X("at:Q"), y)]


def _strip_texts(data: pl.DataFrame, columns: int, y: alt.Y) -> list[Any]:
    """Draws the text on the right: what would decide a goal."""
    texts = data.group_by("goal", maintain_order=True).first()
    texts = texts.select("goal", "open", "seeds_needed", at=pl.lit(columns + _COLUMN_GAP))
    texts_layer = chart_with_data(texts).encode(alt.X("at:Q"), y)
    return [
        texts_layer.mark_text(align="left", fontSize=SMALL_TEXT_SIZE, dy=dy).encode(
            text=alt.Text(f"{name}:N")
        )
        for name, dy in (("open", -5), ("seeds_needed", 9))
    ]

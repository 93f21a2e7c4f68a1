# SPDX-License-Identifier: MIT
"""The charts of the first page, drawn from the suites that the findings count.

They show the metric with the clearest differences, two metrics against each other, and shares of
the CPU or wake-up latencies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from schedlab.analysis.comparison.measures import BY_NAME, Measure
from schedlab.analysis.comparison.suites import Suite
from schedlab.base.display.names import json_text, visible_in_chart
from schedlab.base.display.numbers import TIME, Quantity, fitting
from schedlab.base.toolchain.policies import in_policy_order
from schedlab.report.charts.parts import CUT, NUMBERS, Reach, Styles, chart_of, reach_of, sentences
from schedlab.report.charts.theme import ANNOTATION, BLUE, SMALL_TEXT_SIZE, WIDTH
from schedlab.report.findings import (
    clearest_suite,
    contenders,
    contests,
    goals,
    score,
    suite_label,
    undecided,
)
from schedlab.report.model import Chart
from schedlab.report.policy_labels import policy_label
from schedlab.report.wording import listed

CHARTS = 3
_NAMED = 5
"""Maximum number of policies tied for best that a caption names."""
_ROW = 22
_HEIGHT = 250
_LOGARITHMIC = 20.0
"""Smallest ratio of the worst mean to the best for a logarithmic axis."""
_FEW_POWERS = 4
_TIMES = ("turnaround", "response", "completion", "wakeup-99th", "wakeup-median")
"""Preferred goals of the first chart. If policies differ in none of these goals, the chart shows any other goal."""
_PAIRS = (
    ("turnaround", "response"),
    ("turnaround", "wakeup-99th"),
    ("throughput", "wakeup-99th"),
    ("throughput", "response"),
)
"""Pairs of goals between which policies often trade."""
_SHARES = "share-error"
"""The goal on shares: how close shares are to the tickets or weights."""


def headlines(suites: Sequence[Suite]) -> list[Chart]:
    """Returns up to three charts of different goals; none if nothing can be compared."""
    contest = contests(suites)
    return list(_charts(contest))[:CHARTS] if contest else []


def _charts(contest: Sequence[Suite]) -> Iterator[Chart]:
    order = _by_interest(contest)
    times = [measure for measure in order if measure.name in _TIMES] or order
    shown = set()
    if times:
        shown.add(times[0])
        yield _means(contest, times[0])
    pair = _pair(contest)
    if pair:
        yield _trade_off(contest, *pair)
    rest = [
        measure for measure in order if measure not in shown and (not pair or measure not in pair)
    ]
    rest.sort(key=lambda measure: measure.name != _SHARES)
    for measure in rest:
        yield _means(contest, measure)


def _by_interest(contest: Sequence[Suite]) -> list[Measure]:
    """Returns the goals by decreasing number of policies that are worse than the best."""

    def worse(measure: Measure) -> int:
        suites = [suite for suite in contest if measure in suite.contests]
        return sum(len(suite.having(measure)) - len(suite.as_good(measure)) for suite in suites)

    return sorted(goals(contest), key=worse, reverse=True)


def _pair(contest: Sequence[Suite]) -> tuple[Measure, Measure] | None:
    """Returns two goals of one suite where policies differ, or None if no suite has two."""
    for names in _PAIRS:
        across, up = (BY_NAME[name] for name in names)
        if clearest_suite(contest, across, up):
            return across, up
    order = _by_interest(contest)
    several = ((one, other) for one in order for other in order if one is not other)
    return next((measures for measures in several if clearest_suite(contest, *measures)), None)


# --- one goal by policy


def _means(contest: Sequence[Suite], measure: Measure) -> Chart:
    suite = clearest_suite(contest, measure)
    assert suite, "a goal is one in which policies differ somewhere"
    names = suite.order(measure)
    unit = _unit(suite, measure)
    data = pl.DataFrame(
        [{"series": policy, **_bounds(suite, policy, measure, unit)} for policy in names]
    )
    reach = _reach(data, ("mean",))
    good = suite.as_good(measure)
    return Chart(
        f"headline-{measure.name}",
        f"{_capital(measure.title)}, by policy",
        _points(data, names, reach, _titled(measure, unit)),
        data,
        sentences(
            f"{_capital(suite_label(suite))}. A point is a mean, a bar its 95 % interval; the best is at the"
            f" top. {_verdict(good, names)}",
            CUT if _cuts(reach, data, "low", "high") else "",
        ),
        f"{_capital(measure.title)}, {suite_label(suite)}: "
        + ", ".join(
            f"{policy_label(row['series'])} {row['mean']:,.4g}"
            for row in data.iter_rows(named=True)
        )
        + ".",
    )


def _verdict(good: Sequence[str], names: Sequence[str]) -> str:
    if len(good) == len(names):
        return "All are tied for best."
    if len(good) == 1:
        return "The first is the winner; all others are worse."
    if len(good) > _NAMED:
        return f"{len(good)} are tied for best; all others are worse."
    return f"Tied for best: {listed([policy_label(name) for name in good])}. All others are worse."


def _points(data: pl.DataFrame, names: list[str], reach: Reach, title: str) -> Any:
    styles = Styles(in_policy_order(names), policies=True)
    y = alt.Y(
        "series:N",
        title=None,
        sort=names,
        axis=alt.Axis(ticks=False, domain=False, labelExpr=_label_expression(names)),
    )
    x, low = (_axis(alt.X, bound, reach, title) for bound in ("mean", "low"))
    colour = styles.channel(alt.Color)
    base = chart_of(data)
    return alt.layer(
        base.mark_rule(strokeWidth=2, clip=True).encode(low, alt.X2("high:Q"), y, colour),
        base.mark_point(filled=True, size=60, opacity=1).encode(
            x, y, colour, tooltip=_tooltip(title, "")
        ),
    ).properties(width=WIDTH, height=_ROW * len(names))


# --- two goals


def _trade_off(contest: Sequence[Suite], across: Measure, up: Measure) -> Chart:
    suite = clearest_suite(contest, across, up)
    assert suite, "the pair was chosen so"
    names = [policy for policy in suite.having(across) if policy in suite.having(up)]
    units = _unit(suite, across), _unit(suite, up)
    data = pl.DataFrame(
        [
            {
                "series": policy,
                **_prefixed("x_", _bounds(suite, policy, across, units[0])),
                **_prefixed("y_", _bounds(suite, policy, up, units[1])),
            }
            for policy in names
        ]
    )
    data = data.with_columns(undominated=pl.Series(_undominated(suite, names, across, up)))
    x_reach, y_reach = (_reach(data, (f"{axis}_mean",)) for axis in "xy")
    best = " and ".join(_direction(measure, axis) for measure, axis in ((across, 0), (up, 1)))
    cut = _cuts(x_reach, data, "x_low", "x_high") or _cuts(y_reach, data, "y_low", "y_high")
    return Chart(
        f"headline-{across.name}-{up.name}",
        f"{_capital(_short(across))} against {_short(up)}",
        _plane(data, names, (x_reach, y_reach), (_titled(across, units[0]), _titled(up, units[1]))),
        data,
        sentences(
            f"{_capital(suite_label(suite))}. A point is a policy's means, the bars are 95 % intervals."
            f" Further {best} is better; a policy has its name if no other is better in both.",
            CUT if cut else "",
        ),
        f"{_capital(across.title)} and {up.title}, {suite_label(suite)}: "
        + "; ".join(
            f"{policy_label(row['series'])} {row['x_mean']:,.4g} and {row['y_mean']:,.4g}"
            for row in data.iter_rows(named=True)
        )
        + ".",
    )


def _undominated(suite: Suite, names: Sequence[str], *measures: Measure) -> list[bool]:
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
    return (("left", "right"), ("down", "up"))[axis][measure.better == "higher"]


def _plane(
    data: pl.DataFrame, names: list[str], reaches: tuple[Reach, Reach], titles: tuple[str, str]
) -> Any:
    styles = Styles(in_policy_order(names), policies=True)
    x, y = (
        _axis(channel, f"{axis}_mean", reach, title)
        for channel, axis, reach, title in zip((alt.X, alt.Y), "xy", reaches, titles, strict=True)
    )
    across = _axis(alt.X, "x_low", reaches[0], titles[0])
    up = _axis(alt.Y, "y_low", reaches[1], titles[1])
    colour = styles.channel(alt.Color)
    base = chart_of(data)
    bars = base.mark_rule(strokeWidth=1.5, clip=True, strokeOpacity=0.6)
    named = _named(data, reaches)
    names_of = chart_of(
        named.with_columns(series=pl.col("series").map_elements(policy_label, pl.String))
    )
    return alt.layer(
        bars.encode(across, alt.X2("x_high:Q"), y, colour),
        bars.encode(x, up, alt.Y2("y_high:Q"), colour),
        base.mark_point(filled=True, size=75, opacity=1).encode(
            x, y, colour, tooltip=[*_tooltip(titles[0], "x_"), *_tooltip(titles[1], "y_")[1:]]
        ),
        *(
            names_of.mark_text(style=ANNOTATION, align=align, dx=dx, dy=-7)
            .transform_filter(f"datum.align == '{align}'")
            .encode(x, y, text=alt.Text("series:N"))
            for align, dx in (("left", 4), ("right", -4))
        ),
    ).properties(width=WIDTH, height=_HEIGHT)


def _named(data: pl.DataFrame, reaches: tuple[Reach, Reach]) -> pl.DataFrame:
    """Returns the undominated policies' rows, with the side of the point where the label fits."""
    rows = data.filter(pl.col("undominated")).with_columns(
        align=pl.when(pl.col("x_mean") > _middle(reaches[0]))
        .then(pl.lit("right"))
        .otherwise(pl.lit("left"))
    )
    return rows.select("series", "x_mean", "y_mean", "align")


def _middle(reach: Reach) -> float:
    return math.sqrt(reach.low * reach.high) if reach.log else (reach.low + reach.high) / 2


# --- shared parts


def _label_expression(names: Sequence[str]) -> str:
    """Returns the Vega expression that gives an axis the labels of policies."""
    labels = {visible_in_chart(name): visible_in_chart(policy_label(name)) for name in names}
    return f"({json_text(labels)})[datum.label]"


def _bounds(suite: Suite, policy: str, measure: Measure, unit: Quantity) -> dict[str, float]:
    mean = suite.means[policy, measure.name]
    return {bound: getattr(mean, bound) * unit.factor for bound in ("mean", "low", "high")}


def _prefixed(prefix: str, named: dict[str, float]) -> dict[str, float]:
    return {f"{prefix}{name}": value for name, value in named.items()}


def _unit(suite: Suite, measure: Measure) -> Quantity:
    if measure.quantity is not TIME:
        return measure.quantity
    means = (suite.means[policy, measure.name].mean for policy in suite.having(measure))
    return fitting(TIME, max(means))


def _titled(measure: Measure, unit: Quantity) -> str:
    better = {"lower": "less is better", "higher": "more is better"}.get(measure.better or "", "")
    return ", ".join(filter(None, (measure.title, unit.unit, better)))


def _short(measure: Measure) -> str:
    return measure.title.partition(",")[0]


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _reach(data: pl.DataFrame, columns: Sequence[str]) -> Reach:
    values = [float(value) for column in columns for value in data[column]]
    log = min(values) > 0 and max(values) / min(values) > _LOGARITHMIC
    return reach_of(values, log=log, zero=False)


def _cuts(reach: Reach, data: pl.DataFrame, low: str, high: str) -> bool:
    return reach.cuts(data.select(low=pl.col(low), high=pl.col(high)))


def _axis(channel: Any, field: str, reach: Reach, title: str) -> Any:
    return channel(
        f"{field}:Q",
        title=title,
        scale=reach.scale(),
        axis=alt.Axis(format=NUMBERS, **_ticks(reach)),
    )


def _ticks(reach: Reach) -> dict[str, Any]:
    """Returns a logarithmic axis's ticks: each power of ten, and 2 and
    5 times each if these are few.
    """
    if not reach.log:
        return {"tickCount": 5}
    powers = range(math.floor(math.log10(reach.low)), math.ceil(math.log10(reach.high)) + 1)
    steps = (1, 2, 5) if len(powers) <= _FEW_POWERS else (1,)
    values = (step * 10.0**power for power in powers for step in steps)
    return {"values": [value for value in values if reach.low <= value <= reach.high]}


def _tooltip(title: str, prefix: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("series:N", title="policy"),
        alt.Tooltip(f"{prefix}mean:Q", title=title, format=",.4~g"),
        alt.Tooltip(f"{prefix}low:Q", title="95 % interval from", format=",.4~g"),
        alt.Tooltip(f"{prefix}high:Q", title="to", format=",.4~g"),
    ]


_STRIP_ROW = 36
_BAR = 0.86
"""Width of a bar as a fraction of its column."""
_GAP, _RIGHT = 0.15, 2.4
"""In columns: the gap before the text on the right, and the width of both."""
_COLUMN = 75
"""Minimum width per policy in pixels. Narrower pages scroll."""
_THICK = 11
"""Height of a bar in pixels."""
_LEVEL = 8
"""Maximum number of horizontal labels. More labels are slanted."""
_SLANTED: dict[str, Any] = {"labelAngle": -30, "labelOverlap": False, "labelAlign": "left"}
_HATCH = 0.035
"""Distance of the lines of a hatch, in columns."""


def strip(suites: Sequence[Suite]) -> Chart | None:
    """Draws how often each policy is the winner, tied for best and worse, as goals × policies.

    Returns None if nothing can be compared.
    """
    contest = contests(suites)
    measures = goals(contest)
    if not measures:
        return None
    names = contenders(contest)
    rows = [
        {
            "goal": measure.title,
            "policy": name,
            "place": place,
            "suites": one.suites,
            "winner": one.wins,
            "tied": one.tied,
            "worse": one.worse,
            "open": _needs(contest, measure)[0],
            "seeds_needed": _needs(contest, measure)[1],
        }
        for measure in measures
        for place, name in enumerate(names)
        for one in (score(contest, name, measure),)
        if one.suites
    ]
    data = pl.DataFrame(rows)
    return Chart(
        "goals",
        "Which policy for what",
        _strip(data, names, [measure.title for measure in measures]),
        data.drop("place"),
        "A bar shows a policy's comparisons of a metric: full if it is the winner, hatched if it"
        " is tied for best, empty if it is worse. The numbers count winner and tied for best. On"
        " the right: comparisons without a winner, and how many seeds would settle half of those"
        " whose policies differ by 1 % or more. [All policies compared](#comparison) lists each"
        " comparison.",
        " ".join(_read_aloud(measure.title, rows) for measure in measures),
    )


def _read_aloud(title: str, rows: Sequence[dict[str, Any]]) -> str:
    """Returns the text of a goal's row for screen readers: the policies
    that most often win or are tied.
    """
    title_rows = [row for row in rows if row["goal"] == title]
    parts = [(row["winner"] + row["tied"]) / row["suites"] for row in title_rows]
    leaders = [row for row, part in zip(title_rows, parts, strict=True) if part == max(parts)]
    names = ", ".join(policy_label(row["policy"]) for row in leaders)
    return f"{_capital(title)}: {names} most often, in {max(parts):.0%} of comparisons."


def _needs(contest: Sequence[Suite], measure: Measure) -> tuple[str, str]:
    """Returns two short lines: the number of comparisons without a
    winner, and the seeds they need.
    """
    needed = undecided(contest, measure)
    known = [needed_seeds for needed_seeds in needed if needed_seeds is not None]
    near = len(needed) - len(known)
    if not needed:
        return "all have a winner", ""
    half = math.ceil(len(known) / 2)
    seeds = f"{sorted(known)[half - 1]:,} seeds settle {half} of {len(known)}" if known else ""
    return f"{len(needed)} tied, {near} by less than 1 %", seeds


def _strip(data: pl.DataFrame, names: Sequence[str], titles: Sequence[str]) -> Any:
    y = alt.Y(
        "goal:N",
        title=None,
        sort=list(titles),
        scale=alt.Scale(domain=list(titles), paddingInner=0.35),
        axis=alt.Axis(ticks=False, domain=False, labelLimit=220),
    )
    layers = [*_strip_bars(data, names, y), *_strip_words(data, len(names), y)]
    return alt.layer(*layers).properties(
        width=WIDTH, height=_STRIP_ROW * len(titles), usermeta={"narrowest": _COLUMN * len(names)}
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
        sure=pl.col("place") + _BAR * pl.col("winner") / pl.col("suites"),
        end=pl.col("place") + _BAR * (pl.col("winner") + pl.col("tied")) / pl.col("suites"),
        whole=pl.col("place") + _BAR,
    )
    x = _columns(names)
    tooltip = [
        alt.Tooltip("policy:N"),
        alt.Tooltip("goal:N"),
        alt.Tooltip("winner:Q"),
        alt.Tooltip("tied:Q", title="tied for best"),
        alt.Tooltip("worse:Q"),
    ]
    base = chart_of(bars).encode(y, tooltip=tooltip)
    styles: dict[str, Any] = {"size": _THICK, "yOffset": -_THICK // 2, "color": BLUE}
    numbers = (
        base.mark_text(align="left", dx=1, dy=9, fontSize=SMALL_TEXT_SIZE)
        .encode(x, text=alt.Text("words:N"))
        .transform_calculate(words="datum.winner + datum.tied + ' of ' + datum.suites")
    )
    return [
        base.mark_bar(**styles, fillOpacity=0.08).encode(x, alt.X2("whole:Q")),
        base.mark_bar(**styles, fillOpacity=0.18).encode(x, alt.X2("end:Q")),
        *_hatches(bars, y, styles),
        base.mark_bar(**styles).encode(x, alt.X2("sure:Q")),
        numbers,
    ]


def _columns(names: Sequence[str]) -> alt.X:
    """Returns an axis with a column for each policy, and space on the right."""
    labels = json_text([visible_in_chart(policy_label(name)) for name in names])
    return alt.X(
        "begin:Q",
        title=None,
        scale=alt.Scale(domain=[0, len(names) + _RIGHT], nice=False),
        axis=alt.Axis(
            orient="top",
            values=[place + _BAR / 2 for place in range(len(names))],
            labelExpr=f"{labels}[floor(datum.value)]",
            grid=False,
            ticks=False,
            domain=False,
            **(_SLANTED if len(names) > _LEVEL else {}),
        ),
    )


def _hatches(bars: pl.DataFrame, y: alt.Y, styles: dict[str, Any]) -> list[Any]:
    lines = [
        {"goal": row["goal"], "at": at}
        for row in bars.iter_rows(named=True)
        for at in np.arange(row["sure"] + _HATCH / 2, row["end"], _HATCH)
    ]
    if not lines:
        return []
    ticks = chart_of(pl.DataFrame(lines)).mark_tick(**styles, thickness=1.5, aria=False)
    return [ticks.encode(alt.X("at:Q"), y)]


def _strip_words(data: pl.DataFrame, columns: int, y: alt.Y) -> list[Any]:
    """Draws the text on the right: what would decide a goal."""
    texts = data.group_by("goal", maintain_order=True).first()
    texts = texts.select("goal", "open", "seeds_needed", at=pl.lit(columns + _GAP))
    right = chart_of(texts).encode(alt.X("at:Q"), y)
    return [
        right.mark_text(align="left", fontSize=SMALL_TEXT_SIZE, dy=dy).encode(
            text=alt.Text(f"{name}:N")
        )
        for name, dy in (("open", -5), ("seeds_needed", 9))
    ]

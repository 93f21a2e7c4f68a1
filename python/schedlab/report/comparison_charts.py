# SPDX-License-Identifier: MIT
"""Charts of suites with menus that select a suite and a metric."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import polars as pl

from schedlab.analysis.comparison.measures import Measure
from schedlab.analysis.comparison.suites import Suite
from schedlab.base.display.names import json_text
from schedlab.base.display.numbers import TIME, Quantity
from schedlab.base.toolchain.policies import in_policy_order
from schedlab.report.charts.parts import NUMBERS, Styles, chart_of
from schedlab.report.charts.theme import ANNOTATION, BLUE, WIDTH
from schedlab.report.model import Chart

_ROW = 22
_MILLISECONDS = Quantity("ms", 1e-6)
_WORST = 4.0
"""Largest ratio to the best with a distinct colour."""
_PREFERRED = ("turnaround", "wakeup-99th")
"""Metrics that the trade-off chart selects first, if available."""


def chooser(suites: Sequence[Suite], measures: Sequence[Measure]) -> Chart:
    """Draws each policy's mean with its interval."""
    rows = pl.DataFrame([row for suite in suites for row in _means(suite, measures)])
    start = _start(suites)
    available = [measure for measure in measures if measure in start.measures]
    metric = next((measure for measure in available if measure in start.contests), available[0])
    suite_choice = _choice("suite", "Suite ", [label(suite) for suite in suites], label(start))
    metric_choice = _choice(
        "metric", "Metric ", [named(measure) for measure in measures], named(metric)
    )
    styles = Styles(in_policy_order(rows["policy"]), policies=True)
    lacking = [
        {"suite": label(suite), "metric": named(measure)}
        for suite in suites
        for measure in measures
        if measure not in suite.measures
    ]
    chosen = "datum.suite == suite && datum.metric == metric"
    base = chart_of(rows.rename({"policy": "series"})).transform_filter(chosen)
    y = alt.Y("series:N", title=None, sort=styles.series, axis=alt.Axis(ticks=False, domain=False))
    x, low = (
        alt.X(
            f"{bound}:Q",
            title=None,
            scale=alt.Scale(zero=False),
            axis=alt.Axis(format=NUMBERS),
        )
        for bound in ("mean", "low")
    )
    colour = styles.channel(alt.Color)
    picture = alt.layer(
        base.mark_rule(strokeWidth=2).encode(low, alt.X2("high:Q"), y, colour),
        base.mark_point(filled=True, size=60).encode(x, y, colour, tooltip=_tooltip()),
        _nothing(lacking, chosen),
        _axis_title("x", "metric"),
    ).properties(
        width=WIDTH,
        height=_ROW * max(len(suite.policies) for suite in suites),
        title=alt.TitleParams(alt.ExprRef("metric + ' of ' + suite")),
    )
    return Chart(
        "comparison-means",
        "One metric of one suite",
        picture.add_params(suite_choice, metric_choice),
        rows,
        "Points: means over the seeds; lines: 95 % intervals. The axis may not begin at zero. The"
        " arrow in the metric's name shows the better direction. An interval that seems missing"
        " is narrower than its point.",
        f"Means of all policies for a selected suite and metric; initially {named(metric)}"
        f" of {label(start)}: {_interval_text(start, metric)}.",
    )


def relative(suites: Sequence[Suite], measures: Sequence[Measure]) -> Chart:
    """Draws the ratio of each policy to the best: suites × policies."""
    rows = pl.DataFrame(
        [
            {
                "suite": label(suite),
                "policy": policy,
                "metric": named(measure),
                "times": _finite(suite.ratio(policy, measure)),
                "tied_or_winner": policy in suite.as_good(measure),
            }
            for suite in suites
            for measure in suite.measures
            for policy in suite.having(measure)
        ]
    )
    metric_choice = _choice(
        "relative_metric", "Metric ", [named(measure) for measure in measures], named(measures[0])
    )
    policies, labels = in_policy_order(rows["policy"]), [label(suite) for suite in suites]
    base = (
        chart_of(rows, 3)
        .transform_filter("datum.metric == relative_metric")
        .encode(
            alt.X(
                "policy:N", title=None, sort=policies, axis=alt.Axis(orient="top", labelAngle=-35)
            ),
            alt.Y("suite:N", title=None, sort=labels, scale=alt.Scale(domain=labels)),
        )
    )
    tooltip = [alt.Tooltip(f"{name}:N") for name in ("suite", "policy", "metric")]
    picture = alt.layer(
        base.mark_rect(color=BLUE).encode(
            opacity=alt.Opacity(
                "times:Q",
                scale=alt.Scale(type="log", domain=[1, _WORST], range=[0.03, 0.6], clamp=True),
                legend=None,
            ),
            tooltip=[*tooltip, alt.Tooltip("times:Q", title="times the best", format=".3~f")],
        ),
        base.mark_text().encode(
            text=alt.Text("times:Q", format=".2f"),
            opacity=alt.when("datum.tied_or_winner").then(alt.value(1)).otherwise(alt.value(0.75)),
        ),
    ).properties(
        width=max(WIDTH - 260, 44 * len(policies)),
        height=(_ROW - 4) * len(suites),
        title=alt.TitleParams(alt.ExprRef("relative_metric + ', times the best'")),
    )
    return Chart(
        "comparison-relative",
        "Ratio to the best mean of the suite",
        picture.add_params(metric_choice),
        rows,
        f"1.00 is the best mean of the row. A stronger colour is worse, up to {_WORST:.0f} times"
        " the best. Pale numbers are significantly worse. Values below a step of the clock, an"
        " overhead of 0.001 % or a share error of 0.1 points are raised to these.",
        "A field for each suite and policy: its ratio to the best mean of the suite, for a selected metric.",
    )


def trade_off(suites: Sequence[Suite], measures: Sequence[Measure]) -> Chart:
    """Draws two metrics of one suite against each other."""
    rows = pl.DataFrame([row for suite in suites for row in _means(suite, measures)])
    keys = {measure.name.replace("-", "_"): measure for measure in measures}
    start, (across, up) = _start_of_two(suites, measures)
    choices = [
        _choice("trade_suite", "Suite ", [label(suite) for suite in suites], label(start)),
        _keyed("trade_x", "Horizontal ", keys, across.name.replace("-", "_")),
        _keyed("trade_y", "Vertical ", keys, up.name.replace("-", "_")),
    ]
    styles = Styles(in_policy_order(rows["policy"]), policies=True)
    wide = [_wide(suite, policy, keys) for suite in suites for policy in suite.policies]
    base = chart_of(pl.DataFrame(wide, infer_schema_length=None))
    base = base.transform_filter("datum.suite == trade_suite")
    for axis in "xy":
        for bound in ("mean", "low", "high"):
            field = f"datum[trade_{axis} + '_{bound}']"
            base = base.transform_calculate(**{f"{axis}_{bound}": field})
        numbers = [f"format(datum.{axis}_{bound}, ',.4~g')" for bound in ("mean", "low", "high")]
        expression = "{} + ': ' + {} + ' [' + {} + ', ' + {} + ']'"
        expression = expression.format(f"{_names(keys)}[trade_{axis}]", *numbers)
        base = base.transform_calculate(**{f"{axis}_told": expression})
    base = base.transform_filter("isValid(datum.x_mean) && isValid(datum.y_mean)")
    x, y = (_axis(channel, axis) for channel, axis in ((alt.X, "x"), (alt.Y, "y")))
    within = json_text({label(suite): list(suite.policies) for suite in suites})
    legend = {"values": alt.ExprRef(f"{within}[trade_suite]")}
    colour = styles.colour(**legend)
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.6)
    picture = alt.layer(
        bars.encode(_axis(alt.X, "x", "low"), alt.X2("x_high:Q"), y, colour),
        bars.encode(x, _axis(alt.Y, "y", "low"), alt.Y2("y_high:Q"), colour),
        base.mark_point(filled=True, size=90).encode(
            x,
            y,
            colour,
            styles.shape(**legend),
            tooltip=[
                alt.Tooltip("series:N", title="policy"),
                alt.Tooltip("x_told:N", title="across"),
                alt.Tooltip("y_told:N", title="up"),
            ],
        ),
        _nothing(
            [{"suite": label(suite), **_available(suite, keys)} for suite in suites],
            "datum.suite == trade_suite && !(datum[trade_x] && datum[trade_y])",
        ),
        *(_axis_title(axis, f"{_names(keys)}[trade_{axis}]") for axis in "xy"),
    ).properties(width=WIDTH, height=380, title=alt.TitleParams(alt.ExprRef("trade_suite")))
    return Chart(
        "comparison-trade-off",
        "One metric against another",
        picture.add_params(*choices),
        rows,
        "Bars: 95 % intervals. The axes may not begin at zero. The arrows in the metrics' names"
        " show the better direction. A policy is Pareto-optimal if no other policy is better on"
        " both axes.",
        f"Points of all policies of a suite for two selected metrics; initially {named(across)}"
        f" and {named(up)} of {label(start)}.",
    )


def _nothing(rows: list[dict[str, Any]], chosen: str) -> alt.Chart:
    """Draws the message for a suite without the selected metric, if
    a row matches the expression.
    """
    base = alt.Chart(alt.InlineData(values=rows)).transform_filter(chosen)
    written: alt.Chart = base.mark_text(style=ANNOTATION).encode(
        text=alt.value("This suite has no such metric: choose another."),
        x=alt.value(alt.ExprRef("width / 2")),
        y=alt.value(_ROW),
    )
    return written


def _available(suite: Suite, keys: dict[str, Measure]) -> dict[str, bool]:
    return {key: measure in suite.measures for key, measure in keys.items()}


def label(suite: Suite) -> str:
    """Returns a suite's label, such as `study3 mixed, 3 CPUs`."""
    return f"{suite.title}, {suite.cpus} CPU{'' if suite.cpus == 1 else 's'}"


def named(measure: Measure) -> str:
    """Returns a metric's title with unit and direction."""
    unit = unit_of(measure).unit
    arrow = {"lower": " ↓", "higher": " ↑", None: ""}[measure.better]
    return f"{measure.title}{f' ({unit})' if unit else ''}{arrow}"


def unit_of(measure: Measure) -> Quantity:
    return _MILLISECONDS if measure.quantity is TIME else measure.quantity


def _means(suite: Suite, measures: Sequence[Measure]) -> Iterable[dict[str, Any]]:
    for measure in measures:
        factor = unit_of(measure).factor
        for policy in suite.having(measure) if measure in suite.measures else ():
            mean = suite.means[policy, measure.name]
            yield {
                "suite": label(suite),
                "metric": named(measure),
                "policy": policy,
                "mean": mean.mean * factor,
                "low": mean.low * factor,
                "high": mean.high * factor,
                "seeds": mean.count,
            }


def _wide(suite: Suite, policy: str, keys: dict[str, Measure]) -> dict[str, Any]:
    row: dict[str, Any] = {"suite": label(suite), "series": policy}
    for key, measure in keys.items():
        mean = suite.means.get((policy, measure.name))
        factor = unit_of(measure).factor
        for bound in ("mean", "low", "high"):
            row[f"{key}_{bound}"] = getattr(mean, bound) * factor if mean else None
    return row


def _start(suites: Sequence[Suite]) -> Suite:
    """Returns the initial suite.

    Among the suites with the most metrics, this is the suite where most policies are worse than the
    best.
    """

    def out(suite: Suite) -> int:
        return sum(
            len(suite.having(measure)) - len(suite.as_good(measure)) for measure in suite.measures
        )

    return max(suites, key=lambda suite: (len(suite.measures), out(suite), len(suite.policies)))


def _start_of_two(
    suites: Sequence[Suite], measures: Sequence[Measure]
) -> tuple[Suite, tuple[Measure, Measure]]:
    preferred = [measure for measure in measures if measure.name in _PREFERRED]
    both = [suite for suite in suites if all(measure in suite.measures for measure in preferred)]
    if len(preferred) == len(_PREFERRED) and both:
        return _start(both), (preferred[0], preferred[1])
    start = _start(suites)
    return start, (start.measures[0], start.measures[1])


def _choice(name: str, words: str, options: list[str], value: str) -> alt.Parameter:
    return alt.param(name=name, value=value, bind=alt.binding_select(options=options, name=words))


def _keyed(name: str, words: str, keys: dict[str, Measure], value: str) -> alt.Parameter:
    labels = [named(measure) for measure in keys.values()]
    bind = alt.binding_select(options=list(keys), labels=labels, name=words)
    return alt.param(name=name, value=value, bind=bind)


def _names(keys: dict[str, Measure]) -> str:
    """Returns a Vega expression that maps keys to the metrics' names."""
    return "{" + ", ".join(f"{key}: '{named(measure)}'" for key, measure in keys.items()) + "}"


def _axis(channel: Any, axis: str, bound: str = "mean") -> Any:
    return channel(
        f"{axis}_{bound}:Q",
        title=None,
        scale=alt.Scale(zero=False),
        axis=alt.Axis(format=NUMBERS),
    )


def _axis_title(axis: str, words: str) -> alt.Chart:
    """Draws the value of a Vega expression as an axis title.

    Vega-Lite's axis titles cannot change.
    """
    x, y, how = _TITLE_PLACES[axis]
    written: alt.Chart = (
        alt.Chart(alt.InlineData(values=[{}]))
        .mark_text(**how)
        .encode(
            text=alt.value(alt.ExprRef(words)),
            x=alt.value(alt.ExprRef(x)),
            y=alt.value(alt.ExprRef(y)),
        )
    )
    return written


_TITLE_PLACES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "x": ("width", "height + 34", {"align": "right"}),
    "y": ("-52", "height / 2", {"angle": 270}),
}


def _tooltip() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("series:N", title="policy"),
        alt.Tooltip("mean:Q", format=",.4~g"),
        alt.Tooltip("low:Q", title="95 % interval from", format=",.4~g"),
        alt.Tooltip("high:Q", title="to", format=",.4~g"),
        alt.Tooltip("seeds:Q"),
    ]


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _interval_text(suite: Suite, measure: Measure) -> str:
    factor = unit_of(measure).factor
    return ", ".join(
        f"{policy} {suite.means[policy, measure.name].mean * factor:,.4g}"
        for policy in suite.order(measure)
    )

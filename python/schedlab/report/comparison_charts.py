# SPDX-License-Identifier: MIT
"""Charts of suites with menus that select a suite and a metric."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import polars as pl

from schedlab.analysis.comparison.measures import Measure
from schedlab.analysis.comparison.suites import Suite
from schedlab.base.display.names import json_text
from schedlab.base.display.numbers import TIME, Quantity
from schedlab.base.toolchain.policies import sort_policies
from schedlab.report.charts.parts import NUMBER_FORMAT, Styles, chart_with_data
from schedlab.report.charts.theme import ANNOTATION, BLUE, WIDTH
from schedlab.report.model import Chart
from schedlab.report.wording import cpus_text

_ROW_HEIGHT = 22
_MILLISECONDS = Quantity("ms", 1e-6)
_RATIO_MAX = 4.0
"""Largest ratio to the best with a distinct colour."""
_PREFERRED_METRICS = ("turnaround", "wakeup-99th")
"""Metrics that the trade-off chart selects first, if available."""


def means_chart(suites: Sequence[Suite], measures: Sequence[Measure]) -> Chart:
    """Draws each policy's mean with its interval."""
    rows = pl.DataFrame([row for suite in suites for row in _mean_records(suite, measures)])
    initial_suite = _initial_suite(suites)
    available = [measure for measure in measures if measure in initial_suite.measures]
    metric = next(
        (measure for measure in available if measure in initial_suite.differing_measures),
        available[0],
    )
    suite_choice = _menu_parameter(
        "suite", "Suite ", [menu_label(suite) for suite in suites], menu_label(initial_suite)
    )
    metric_choice = _menu_parameter(
        "metric", "Metric ", [metric_label(measure) for measure in measures], metric_label(metric)
    )
    styles = Styles(sort_policies(rows["policy"]), policies=True)
    missing_pairs = [
        {"suite": menu_label(suite), "metric": metric_label(measure)}
        for suite in suites
        for measure in measures
        if measure not in suite.measures
    ]
    is_chosen = "datum.suite == suite && datum.metric == metric"
    shared_chart = chart_with_data(rows.rename({"policy": "series"})).transform_filter(is_chosen)
    y = alt.Y("series:N", title=None, sort=styles.series, axis=alt.Axis(ticks=False, domain=False))
    x, low = (
        alt.X(
            f"{bound}:Q",
            title=None,
            scale=alt.Scale(zero=False),
            axis=alt.Axis(format=NUMBER_FORMAT),
        )
        for bound in ("mean", "low")
    )
    colour = styles.channel(alt.Color)
    picture = alt.layer(
        shared_chart.mark_rule(strokeWidth=2).encode(low, alt.X2("high:Q"), y, colour),
        shared_chart.mark_point(filled=True, size=60).encode(x, y, colour, tooltip=_tooltip()),
        _draw_missing_note(missing_pairs, is_chosen),
        _axis_title("x", "metric"),
    ).properties(
        width=WIDTH,
        height=_ROW_HEIGHT * max(len(suite.policies) for suite in suites),
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
        f"Means of all policies for a selected suite and metric; initially {metric_label(metric)}"
        f" of {menu_label(initial_suite)}: {_interval_text(initial_suite, metric)}.",
    )


def ratio_chart(suites: Sequence[Suite], measures: Sequence[Measure]) -> Chart:
    """Draws the ratio of each policy to the best: suites × policies."""
    rows = pl.DataFrame(
        [
            {
                "suite": menu_label(suite),
                "policy": policy,
                "metric": metric_label(measure),
                "times": _finite_or_none(suite.ratio(policy, measure)),
                "tied_or_winner": policy in suite.best_policies(measure),
            }
            for suite in suites
            for measure in suite.measures
            for policy in suite.policies_with(measure)
        ]
    )
    metric_choice = _menu_parameter(
        "relative_metric",
        "Metric ",
        [metric_label(measure) for measure in measures],
        metric_label(measures[0]),
    )
    policies, labels = sort_policies(rows["policy"]), [menu_label(suite) for suite in suites]
    shared_chart = (
        chart_with_data(rows, 3)
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
        shared_chart.mark_rect(color=BLUE).encode(
            opacity=alt.Opacity(
                "times:Q",
                scale=alt.Scale(type="log", domain=[1, _RATIO_MAX], range=[0.03, 0.6], clamp=True),
                legend=None,
            ),
            tooltip=[*tooltip, alt.Tooltip("times:Q", title="times the best", format=".3~f")],
        ),
        shared_chart.mark_text().encode(
            text=alt.Text("times:Q", format=".2f"),
            opacity=alt.when("datum.tied_or_winner").then(alt.value(1)).otherwise(alt.value(0.75)),
        ),
    ).properties(
        width=max(WIDTH - 260, 44 * len(policies)),
        height=(_ROW_HEIGHT - 4) * len(suites),
        title=alt.TitleParams(alt.ExprRef("relative_metric + ', times the best'")),
    )
    return Chart(
        "comparison-relative",
        "Ratio to the best mean of the suite",
        picture.add_params(metric_choice),
        rows,
        f"1.00 is the best mean of the row. A stronger colour is worse, up to {_RATIO_MAX:.0f} times"
        " the best. Pale numbers are significantly worse. Values below a step of the clock, an"
        " overhead of 0.001 % or a share error of 0.1 points are raised to these.",
        "A field for each suite and policy: its ratio to the best mean of the suite, for a selected metric.",
    )


def trade_off_chart(suites: Sequence[Suite], measures: Sequence[Measure]) -> Chart:
    """Draws two metrics of one suite against each other."""
    rows = pl.DataFrame([row for suite in suites for row in _mean_records(suite, measures)])
    keys = {measure.name.replace("-", "_"): measure for measure in measures}
    initial_suite, (across, up) = _initial_metrics(suites, measures)
    choices = [
        _menu_parameter(
            "trade_suite",
            "Suite ",
            [menu_label(suite) for suite in suites],
            menu_label(initial_suite),
        ),
        _metric_menu_parameter("trade_x", "Horizontal ", keys, across.name.replace("-", "_")),
        _metric_menu_parameter("trade_y", "Vertical ", keys, up.name.replace("-", "_")),
    ]
    styles = Styles(sort_policies(rows["policy"]), policies=True)
    metric_rows = [
        _metric_columns(suite, policy, keys) for suite in suites for policy in suite.policies
    ]
    shared_chart = chart_with_data(pl.DataFrame(metric_rows, infer_schema_length=None))
    shared_chart = shared_chart.transform_filter("datum.suite == trade_suite")
    for axis in "xy":
        for bound in ("mean", "low", "high"):
            field = f"datum[trade_{axis} + '_{bound}']"
            shared_chart = shared_chart.transform_calculate(**{f"{axis}_{bound}": field})
        numbers = [f"format(datum.{axis}_{bound}, ',.4~g')" for bound in ("mean", "low", "high")]
        expression = "{} + ': ' + {} + ' [' + {} + ', ' + {} + ']'"
        expression = expression.format(f"{_labels_expression(keys)}[trade_{axis}]", *numbers)
        shared_chart = shared_chart.transform_calculate(**{f"{axis}_told": expression})
    shared_chart = shared_chart.transform_filter("isValid(datum.x_mean) && isValid(datum.y_mean)")
    x, y = (_axis(channel, axis) for channel, axis in ((alt.X, "x"), (alt.Y, "y")))
    policies_by_suite = json_text({menu_label(suite): list(suite.policies) for suite in suites})
    legend = {"values": alt.ExprRef(f"{policies_by_suite}[trade_suite]")}
    colour = styles.colour(**legend)
    bars = shared_chart.mark_rule(strokeWidth=1.5, opacity=0.6)
    picture = alt.layer(
        bars.encode(_axis(alt.X, "x", "low"), alt.X2("x_high:Q"), y, colour),
        bars.encode(x, _axis(alt.Y, "y", "low"), alt.Y2("y_high:Q"), colour),
        shared_chart.mark_point(filled=True, size=90).encode(
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
        _draw_missing_note(
            [{"suite": menu_label(suite), **_available_metrics(suite, keys)} for suite in suites],
            "datum.suite == trade_suite && !(datum[trade_x] && datum[trade_y])",
        ),
        *(_axis_title(axis, f"{_labels_expression(keys)}[trade_{axis}]") for axis in "xy"),
    ).properties(width=WIDTH, height=380, title=alt.TitleParams(alt.ExprRef("trade_suite")))
    return Chart(
        "comparison-trade-off",
        "One metric against another",
        picture.add_params(*choices),
        rows,
        "Bars: 95 % intervals. The axes may not begin at zero. The arrows in the metrics' names"
        " show the better direction. A policy is Pareto-optimal if no other policy is better on"
        " both axes.",
        f"Points of all policies of a suite for two selected metrics; initially {metric_label(across)}"
        f" and {metric_label(up)} of {menu_label(initial_suite)}.",
    )


def _draw_missing_note(rows: list[dict[str, Any]], filter_expression: str) -> alt.Chart:
    """Draws the message for a suite without the selected metric, if
    a row matches the expression.
    """
    shared_chart = alt.Chart(alt.InlineData(values=rows)).transform_filter(filter_expression)
    written: alt.Chart = shared_chart.mark_text(style=ANNOTATION).encode(
        text=alt.value("This suite has no such metric: choose another."),
        x=alt.value(alt.ExprRef("width / 2")),
        y=alt.value(_ROW_HEIGHT),
    )
    return written


def _available_metrics(suite: Suite, keys: dict[str, Measure]) -> dict[str, bool]:
    """Returns whether the suite has each metric, by key."""
    return {key: measure in suite.measures for key, measure in keys.items()}


def menu_label(suite: Suite) -> str:
    """Returns a suite's label, such as `study3 mixed, 3 CPUs`."""
    return f"{suite.title}, {cpus_text([suite.cpus])}"


def metric_label(measure: Measure) -> str:
    """Returns a metric's title with unit and direction."""
    unit = metric_unit(measure).unit
    arrow = {"lower": " ↓", "higher": " ↑", None: ""}[measure.better]
    return f"{measure.title}{f' ({unit})' if unit else ''}{arrow}"


def metric_unit(measure: Measure) -> Quantity:
    """Returns the unit that a measure's values are drawn in; times are in ms."""
    return _MILLISECONDS if measure.quantity is TIME else measure.quantity


def _mean_records(suite: Suite, measures: Sequence[Measure]) -> Iterable[dict[str, Any]]:
    """Yields a record for each policy and metric of a suite: the mean with its interval."""
    for measure in measures:
        factor = metric_unit(measure).factor
        for policy in suite.policies_with(measure) if measure in suite.measures else ():
            mean = suite.means[policy, measure.name]
            yield {
                "suite": menu_label(suite),
                "metric": metric_label(measure),
                "policy": policy,
                "mean": mean.mean * factor,
                "low": mean.low * factor,
                "high": mean.high * factor,
                "seeds": mean.count,
            }


def _metric_columns(suite: Suite, policy: str, keys: dict[str, Measure]) -> dict[str, Any]:
    """Returns a record of a policy with the mean and interval of each metric
    in separate columns.
    """
    row: dict[str, Any] = {"suite": menu_label(suite), "series": policy}
    for key, measure in keys.items():
        mean = suite.means.get((policy, measure.name))
        factor = metric_unit(measure).factor
        for bound in ("mean", "low", "high"):
            row[f"{key}_{bound}"] = getattr(mean, bound) * factor if mean else None
    return row


def _initial_suite(suites: Sequence[Suite]) -> Suite:
    """Returns the initial suite.

    Among the suites with the most metrics, this is the suite where most policies are worse than the
    best.
    """

    def count_worse(suite: Suite) -> int:
        return sum(
            len(suite.policies_with(measure)) - len(suite.best_policies(measure))
            for measure in suite.measures
        )

    return max(
        suites, key=lambda suite: (len(suite.measures), count_worse(suite), len(suite.policies))
    )


def _initial_metrics(
    suites: Sequence[Suite], measures: Sequence[Measure]
) -> tuple[Suite, tuple[Measure, Measure]]:
    """Returns the initial suite and the initial two metrics of the trade-off chart."""
    preferred = [measure for measure in measures if measure.name in _PREFERRED_METRICS]
    suites_with_both = [
        suite for suite in suites if all(measure in suite.measures for measure in preferred)
    ]
    if len(preferred) == len(_PREFERRED_METRICS) and suites_with_both:
        return _initial_suite(suites_with_both), (preferred[0], preferred[1])
    start = _initial_suite(suites)
    return start, (start.measures[0], start.measures[1])


def _menu_parameter(name: str, words: str, options: list[str], value: str) -> alt.Parameter:
    return alt.param(name=name, value=value, bind=alt.binding_select(options=options, name=words))


def _metric_menu_parameter(
    name: str, words: str, keys: dict[str, Measure], value: str
) -> alt.Parameter:
    """Returns the parameter of a menu of metrics; its value is a key."""
    labels = [metric_label(measure) for measure in keys.values()]
    bind = alt.binding_select(options=list(keys), labels=labels, name=words)
    return alt.param(name=name, value=value, bind=bind)


def _labels_expression(keys: dict[str, Measure]) -> str:
    """Returns a Vega expression that maps keys to the metrics' names."""
    return (
        "{" + ", ".join(f"{key}: '{metric_label(measure)}'" for key, measure in keys.items()) + "}"
    )


def _axis(channel: Any, axis: str, bound: str = "mean") -> Any:
    """Returns an axis for the selected metric. `bound`: `mean`, `low` or `high`."""
    return channel(
        f"{axis}_{bound}:Q",
        title=None,
        scale=alt.Scale(zero=False),
        axis=alt.Axis(format=NUMBER_FORMAT),
    )


def _axis_title(axis: str, words: str) -> alt.Chart:
    """Draws the value of a Vega expression as an axis title.

    Vega-Lite's axis titles cannot change.
    """
    x, y, text_style = _TITLE_PLACES[axis]
    written: alt.Chart = (
        alt.Chart(alt.InlineData(values=[{}]))
        .mark_text(**text_style)
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
    """Returns the tooltip of a policy's point: both metrics with their intervals."""
    return [
        alt.Tooltip("series:N", title="policy"),
        alt.Tooltip("mean:Q", format=",.4~g"),
        alt.Tooltip("low:Q", title="95 % interval from", format=",.4~g"),
        alt.Tooltip("high:Q", title="to", format=",.4~g"),
        alt.Tooltip("seeds:Q"),
    ]


def _finite_or_none(number: float) -> float | None:
    """Returns the number, or None if it is infinite or NaN."""
    return number if math.isfinite(number) else None


def _interval_text(suite: Suite, measure: Measure) -> str:
    """Returns a suite's interval of a metric in words."""
    factor = metric_unit(measure).factor
    return ", ".join(
        f"{policy} {suite.means[policy, measure.name].mean * factor:,.4g}"
        for policy in suite.policies_by_mean(measure)
    )

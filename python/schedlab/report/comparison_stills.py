# SPDX-License-Identifier: MIT
"""Printed versions of the charts with menus: one chart for each choice
that concerns a user's workloads.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from schedlab.analysis.comparison.measures import Measure
from schedlab.analysis.comparison.suites import Suite
from schedlab.base.display.names import slug, unique_slugs
from schedlab.report.charts import dots, draw_if_possible, lines
from schedlab.report.comparison_charts import menu_label, metric_label, metric_unit
from schedlab.report.model import Chart
from schedlab.report.wording import cpus_text
from schedlab.units import format_time


def means_of_user_workloads(
    compared: Sequence[Suite], measures: Sequence[Measure]
) -> tuple[Chart, ...]:
    """Returns a chart for each metric of each workload that belongs to no study."""
    suites_by_workload: dict[tuple[str, str, int], list[Suite]] = {}
    for suite in compared:
        if suite.study is None:
            suites_by_workload.setdefault(
                (suite.experiment, suite.machine, suite.tick_ns), []
            ).append(suite)
    stems = unique_slugs(
        [f"{name} {on} {format_time(tick)}" for name, on, tick in suites_by_workload], "workload"
    )
    return tuple(
        chart
        for stem, suites in zip(stems, suites_by_workload.values(), strict=True)
        for measure in measures
        for chart in _mean_charts(f"{slug(measure.name)}-of-{stem}", suites, measure)
    )


def _mean_charts(name: str, suites: Sequence[Suite], measure: Measure) -> Iterator[Chart]:
    """Draws the metric over the number of CPUs.

    If all runs have the same number of CPUs, draws a point for each policy.
    """
    rows = [
        (policy, suite.cpus, value * metric_unit(measure).factor)
        for suite in suites
        if measure in suite.measures
        for policy in suite.policies_with(measure)
        for value in suite.samples[policy, measure.name][0]
    ]
    if not rows:
        return
    data = pl.DataFrame(rows, schema=["policy", "cpus", "value"], orient="row")
    first, counts = suites[0], sorted(set(data["cpus"]))
    suffix = "" if len(counts) > 1 else f", {cpus_text(counts)}"
    title = f"{first.title}{suffix}: {measure.title}"
    caption = f"Machine {first.machine}, tick {format_time(first.tick_ns)}."
    if len(counts) > 1:
        yield from draw_if_possible(
            lines,
            name,
            data,
            title=title,
            caption=caption,
            x="cpus",
            y="value",
            x_title="CPUs",
            y_title=metric_label(measure),
        )
    else:
        yield from draw_if_possible(
            dots,
            name,
            data,
            title=title,
            caption=caption,
            category="policy",
            value="value",
            x_title=metric_label(measure),
            category_order=first.policies,
        )


def charts_by_metric(
    chart: Chart, suites: Sequence[Suite], measures: Sequence[Measure]
) -> tuple[Chart, ...]:
    """Returns the chart of distances from the best, for each metric that a user's workload has."""
    user_suites = [suite for suite in suites if suite.study is None]
    return tuple(
        _fix_choices(
            chart,
            measure.name,
            f"{chart.title}: {measure.title}",
            chart.data.filter(pl.col("metric") == metric_label(measure)),
            relative_metric=metric_label(measure),
        )
        for measure in measures
        if any(measure in suite.measures for suite in user_suites)
    )


def charts_by_workload(chart: Chart, suites: Sequence[Suite]) -> tuple[Chart, ...]:
    """Returns the trade-off chart for each user's workload that has both metrics."""
    across, up = (
        next(parameter["value"] for parameter in chart.plain["params"] if parameter["name"] == name)
        for name in ("trade_x", "trade_y")
    )
    user_suites = [
        suite
        for suite in suites
        if suite.study is None
        and {across, up} <= {measure.name.replace("-", "_") for measure in suite.measures}
    ]
    return tuple(
        _fix_choices(
            chart,
            stem,
            f"{chart.title}: {menu_label(suite)}",
            chart.data.filter(pl.col("suite") == menu_label(suite)),
            trade_suite=menu_label(suite),
        )
        for suite, stem in zip(
            user_suites,
            unique_slugs([menu_label(suite) for suite in user_suites], "suite"),
            strict=True,
        )
    )


def _fix_choices(chart: Chart, stem: str, title: str, data: pl.DataFrame, **values: str) -> Chart:
    """Returns the chart with other values of its menus, as a separate chart."""
    return replace(
        chart,
        name=f"{chart.name}-{stem}",
        title=title,
        chart=_FixedChoices(chart, values),
        data=data,
        description=f"{title}. {chart.description}",
    )


class _FixedChoices:
    """A chart with other values of its parameters."""

    def __init__(self, chart: Chart, values: dict[str, str]) -> None:
        self._chart = chart
        self._values = values

    def to_dict(self, *, validate: bool = True) -> dict[str, Any]:
        """Returns the specification.

        It is not validated against the schema, even with `validate`.
        """
        plain = self._chart.plain
        parameters = [
            {**parameter, "value": self._values[parameter["name"]]}
            if parameter["name"] in self._values
            else parameter
            for parameter in plain["params"]
        ]
        return {**plain, "params": parameters}

# SPDX-License-Identifier: MIT
"""Empirical distribution functions, in particular of wake-up latencies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import numpy.typing as npt
import polars as pl

from schedlab.base.display.numbers import three_digits
from schedlab.base.toolchain.policies import sort_policies
from schedlab.metrics import wakeup_latencies
from schedlab.report.charts.parts import (
    NUMBER_FORMAT,
    STROKE_SIZE,
    AxisRange,
    NothingToDraw,
    Styles,
    axis_range,
    chart_with_data,
    join_sentences,
    legend_selection,
    opacity_if,
    panel_order,
    stack_charts,
    thin_curve,
)
from schedlab.report.charts.processes import chart_processes
from schedlab.report.charts.theme import WIDTH
from schedlab.report.model import HREF, Chart
from schedlab.trace import Trace

HEIGHT, PANEL_HEIGHT = 300, 190
LOG_AXIS_RATIO = 50
"""Ratio of the 90th percentile to the 10th above which an axis is logarithmic."""
POINTS_MAX = 8000
"""Maximum number of points in a chart. More points make a page slow."""
ALL_RUNS = -1
"""The `run` of a curve of all runs together."""
_MERGE_DISTANCES = {True: (1 / 600, 1 / 400), False: (1 / 250, 1 / 150)}
"""Minimum distance of a curve's points as fractions of width and
height; True: of all runs together.
"""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class WaitMark:
    """A single wait on a curve, and the chart of that wait, to which a click leads."""

    panel: str
    series: str
    value: float
    chart: str


def ecdf(
    name: str,
    data: pl.DataFrame,
    *,
    title: str,
    caption: str,
    value: str,
    x_title: str,
    y_title: str,
    series: str = "policy",
    run: str | None = None,
    panel: str | None = None,
    least: float | None = None,
    marks: Sequence[WaitMark] = (),
) -> Chart:
    """Draws a curve for each series: the fraction of values up to each value.

    `data` has one row per value, in the unit of `x_title`; nulls are ignored. `run`: the column of
    the run's number. With several runs, thick curves are of all runs together, thin ones of each
    run. `panel`: the column of the panel's name; panels are stacked.

    If the 90th percentile exceeds 50 times the 10th, the axis is logarithmic. Values below `least`
    are then drawn on the left. The default of `least` is the smallest value above 0.
    """
    names = {value: "value", series: "series"}
    extra_columns = [pl.col(run).alias("run") if run else pl.lit(0).alias("run")]
    extra_columns += [pl.col(panel).alias("panel") if panel else pl.lit("").alias("panel")]
    rows = data.select(*names, *extra_columns).rename(names).drop_nulls("value")
    if rows.is_empty():
        raise NothingToDraw(
            f"chart {name}: no run has a value of {value}; choose another column or other runs"
        )
    axis = _Axis(rows["value"].cast(pl.Float64), least)
    styles = Styles(sort_policies(rows["series"]), policies=True)
    remarks = [
        "Thick: all runs together; thin: each run." if rows["run"].n_unique() > 1 else "",
        axis.remark,
        "A ring is a single wait; on a page, a click shows its chart." if marks else "",
    ]
    return Chart(
        name,
        title,
        _draw(rows, styles, axis, (x_title, y_title), _mark_points(rows, marks)),
        data,
        join_sentences(caption, *remarks),
        _describe(rows, x_title),
    )


def needs_log_axis(values: pl.Series) -> bool:
    """Returns whether an axis for these values is logarithmic."""
    positive_values = values.filter(values > 0)
    low, high = positive_values.quantile(0.1), positive_values.quantile(0.9)
    return bool(low and high and high / low > LOG_AXIS_RATIO)


def cumulative_distribution(values: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Returns the empirical distribution: the distinct values, and the
    fraction of values up to each.
    """
    different, counts = np.unique(np.asarray(values, float), return_counts=True)
    return different, np.cumsum(counts) / max(counts.sum(), 1)


class _Axis:
    """The horizontal axis: its scale, range and labels."""

    def __init__(self, values: pl.Series, least: float | None) -> None:
        """Chooses the scale and range for these values.

        `smallest_drawn`: smaller values are drawn at the left edge.
        """
        self.log = needs_log_axis(values)
        above = values.filter(values > 0)
        self.smallest_drawn = (
            least if least is not None else float(above.to_numpy().min(initial=np.inf))
        )
        self.separates_low = self.log and bool((values < self.smallest_drawn).any())
        self.reach = axis_range(values.to_list(), log=self.log, zero=True)
        if self.separates_low:
            self.reach = AxisRange(self.smallest_drawn / 2, self.reach.high, log=True)

    @property
    def remark(self) -> str:
        return (
            f"Values below {self.smallest_drawn:,.3g} are drawn at the left edge."
            if self.separates_low
            else ""
        )

    def positions(self, values: Floats) -> Floats:
        """Returns the position of each value, from 0 on the left to 1 on the right."""
        low, high = self.reach.low, self.reach.high
        if self.log:
            low, high, values = np.log(low), np.log(high), np.log(np.maximum(values, low))
        fractions: Floats = (values - low) / (high - low)
        return fractions

    def value_expression(self) -> str:
        """Returns a Vega expression for the drawn value."""
        return f"max(datum.value, {self.reach.low})" if self.separates_low else "datum.value"

    def altair_channel(self, title: str) -> alt.X:
        number = f"format(datum.value, '{NUMBER_FORMAT}')"
        less = f"datum.value < {self.smallest_drawn} ? '< {self.smallest_drawn:,.3g}' : {number}"
        axis = alt.Axis(format=NUMBER_FORMAT, tickCount=8, grid=True)
        if self.log:
            powers = 10.0 ** np.arange(-9, 10)
            within = powers[(powers >= self.reach.low) & (powers <= self.reach.high)]
            within = within[within >= self.smallest_drawn] if self.separates_low else within
            ticks = [*([self.reach.low] if self.separates_low else []), *within.tolist()]
            axis = alt.Axis(
                labelExpr=less if self.separates_low else number,
                grid=True,
                **({"values": ticks} if len(within) > 1 else {"tickCount": 8}),
            )
        return alt.X("at:Q", title=title, scale=self.reach.scale(), axis=axis)


def _mark_points(rows: pl.DataFrame, marks: Sequence[WaitMark]) -> pl.DataFrame:
    """Returns the marks on the curves of all runs together: panel, series, value, percent, href."""
    rings = []
    for mark in marks:
        mark_rows = rows.filter((pl.col("panel") == mark.panel) & (pl.col("series") == mark.series))
        if len(mark_rows):
            percentage = (mark_rows["value"] <= mark.value).sum() / len(mark_rows) * 100
            rings.append((mark.panel, mark.series, mark.value, percentage, f"#{mark.chart}"))
    names = {"panel": pl.String, "series": pl.String, "value": pl.Float64, "percent": pl.Float64}
    return pl.DataFrame(rings, schema={**names, HREF: pl.String}, orient="row")


def _draw(
    rows: pl.DataFrame, styles: Styles, axis: _Axis, titles: tuple[str, str], rings: pl.DataFrame
) -> Any:
    """Draws all panels with their curves and marks."""
    panels = panel_order(rows["panel"])
    curves = _curve_points(rows, axis)
    height = HEIGHT if len(panels) == 1 else PANEL_HEIGHT
    chosen = legend_selection()
    pictures: list[tuple[str, Any]] = []
    for panel, last in panels:
        panel_curves = curves.filter(pl.col("panel") == panel).drop("panel")
        layers = _panel_layers(
            panel_curves, styles, axis, (titles[0] if last else "", titles[1]), chosen
        )
        if not pictures:  # all panels follow the legend, which belongs to one of them
            layers[-1] = layers[-1].add_params(chosen)
        marked = rings.filter(pl.col("panel") == panel)
        if len(marked):
            layers.append(_draw_marks(marked, styles, axis, layers[-1].encoding, chosen))
        picture = alt.layer(*layers) if len(layers) > 1 else layers[0]
        pictures.append((panel, picture.properties(width=WIDTH, height=height)))
    return stack_charts(pictures)


def _curve_points(rows: pl.DataFrame, axis: _Axis) -> pl.DataFrame:
    """Returns the points of all curves: panel, series, run (ALL: all runs), value, percent."""
    has_several_runs = rows["run"].n_unique() > 1
    all_runs = rows.with_columns(run=pl.lit(ALL_RUNS, pl.Int64))
    pooled = (
        pl.concat([all_runs, rows.with_columns(pl.col("run").cast(pl.Int64))])
        if has_several_runs
        else all_runs
    )
    groups = pooled.group_by("panel", "series", "run", maintain_order=True)
    distributions = [
        (keys, *cumulative_distribution(group_rows["value"].to_numpy()))
        for keys, group_rows in groups
    ]
    distance_factor = 1.0
    while True:
        points = [
            (*keys, value[at], part[at] * 100)
            for keys, value, part in distributions
            for at in thin_curve(
                axis.positions(value),
                part,
                *(distance_factor * gap for gap in _MERGE_DISTANCES[keys[2] == ALL_RUNS]),
            )
        ]
        if len(points) <= POINTS_MAX:
            break
        distance_factor *= 2
    start_points = [(*keys, value[0], 0.0) for keys, value, _ in distributions]
    names = ("panel", "series", "run", "value", "percent")
    # A curve starts at 0 at its first value.
    return pl.DataFrame([*start_points, *points], schema=names, orient="row").sort(
        "panel", "series", "run", "value", "percent", maintain_order=True
    )


def _panel_layers(
    curves: pl.DataFrame,
    styles: Styles,
    axis: _Axis,
    titles: tuple[str, str],
    chosen: alt.Parameter,
) -> list[Any]:
    """Returns the layers of one panel: curves of all runs, and of each run."""
    x = axis.altair_channel(titles[0])
    y = alt.Y(
        "percent:Q", title=titles[1], scale=alt.Scale(domain=[0, 100]), axis=alt.Axis(tickCount=5)
    )
    layers = []
    thin = curves.filter(pl.col("run") != ALL_RUNS)
    if len(thin):
        layers.append(
            _draw_curves(thin, axis, strokeWidth=0.8).encode(
                x,
                y,
                styles.colour(symbolSize=STROKE_SIZE),
                detail="run:N",
                opacity=opacity_if(chosen, 0.5),
            )
        )
    layers.append(
        _draw_curves(curves.filter(pl.col("run") == ALL_RUNS), axis, strokeWidth=2.2).encode(
            x,
            y,
            styles.colour(symbolSize=STROKE_SIZE),
            styles.dash(),
            opacity=opacity_if(chosen),
            tooltip=[
                alt.Tooltip("series:N", title="series"),
                alt.Tooltip("value:Q", title="up to", format=NUMBER_FORMAT),
                alt.Tooltip("percent:Q", title="of all (%)", format=".4~g"),
            ],
        )
    )
    return layers


def _draw_curves(curves: pl.DataFrame, axis: _Axis, **look: Any) -> Any:
    """Draws curves as steps. `look`: properties of the lines."""
    drawn = chart_with_data(curves, digits=4).transform_calculate(at=axis.value_expression())
    return drawn.mark_line(interpolate="step-after", clip=True, **look)


def _draw_marks(
    rings: pl.DataFrame, styles: Styles, axis: _Axis, of: Any, chosen: alt.Parameter
) -> Any:
    """Draws marks on curves with this encoding."""
    ring_data = alt.InlineData(values=rings.to_dicts())
    drawn = alt.Chart(ring_data).transform_calculate(at=axis.value_expression())
    return drawn.mark_point(size=90, strokeWidth=2, filled=False, cursor="pointer").encode(
        of.x,
        of.y,
        styles.colour(symbolSize=STROKE_SIZE),
        href=alt.Href(f"{HREF}:N"),
        opacity=opacity_if(chosen),
        tooltip=[
            alt.Tooltip("series:N", title="a wait under"),
            alt.Tooltip("value:Q", title="took", format=NUMBER_FORMAT),
        ],
    )


def _describe(rows: pl.DataFrame, x_title: str) -> str:
    """Returns the chart's description for readers who cannot see it."""
    texts = []
    for (panel, series), series_rows in rows.group_by("panel", "series", maintain_order=True):
        middle, high = (series_rows["value"].quantile(part, "linear") for part in (0.5, 0.99))
        texts.append(
            f"{panel} {series}".strip()
            + f": median {three_digits(middle)}, 99th percentile {three_digits(high)}"
        )
    return f"Cumulative distribution of {x_title}. " + "; ".join(texts) + "."


CLOCK_STEP_NS = 1000
"""No axis starts below one microsecond, however fine the clock is."""


RunsBySeries = Mapping[str, Sequence[Trace]]
"""The runs of each series."""


def latencies(
    name: str, traces: RunsBySeries, *, title: str, caption: str, group: str | None = None
) -> Chart:
    """Draws the distribution of wake-up latencies for each series of runs.

    `group`: only latencies of tasks of this group. Latencies below a step of the clock are drawn on
    the left. `data`: each latency. Raises NothingToDraw if there is none.
    """
    return latencies_in_panels(name, {"": traces}, title=title, caption=caption, group=group)


def latencies_in_panels(
    name: str,
    panels: Mapping[str, RunsBySeries],
    *,
    title: str,
    caption: str,
    group: str | None = None,
    waits: Mapping[tuple[str, str, int], str] | None = None,
) -> Chart:
    """Draws the distribution of wake-up latencies in stacked, named panels.

    `waits`: charts of single waits, the targets of marks on the curves, by
    panel, series and latency in ns.
    """
    runs = [
        (panel, policy, run_traces)
        for panel, traces in panels.items()
        for policy, run_traces in traces.items()
    ]
    latencies = pl.concat([_series_latencies(*run, group) for run in runs])
    if latencies.is_empty():
        raise NothingToDraw(
            f"chart {name}: no process was woken and ran in the time measured; choose a run with wake-ups"
        )
    woken = set(latencies["series"])
    policies_without_wakeups = sort_policies(series for _, series, _ in runs if series not in woken)
    steps = [trace.clock_step_ns for _, _, run_traces in runs for trace in run_traces]
    return ecdf(
        name,
        latencies,
        title=title,
        caption=join_sentences(
            caption,
            f"No process was woken under {', '.join(policies_without_wakeups)}."
            if policies_without_wakeups
            else "",
        ),
        value="ms",
        x_title="wake-up latency (ms)",
        y_title="wake-ups served in it (%)",
        series="series",
        run="run",
        panel="panel",
        least=max([CLOCK_STEP_NS, *steps]) / 1e6,
        marks=[
            WaitMark(panel, series, float(_convert_to_ms(pl.Series([latency_ns]))[0]), chart)
            for (panel, series, latency_ns), chart in (waits or {}).items()
        ],
    )


def _series_latencies(
    panel: str, series: str, runs: Sequence[Trace], group: str | None
) -> pl.DataFrame:
    """Returns the latencies of the workload's tasks: panel, series, run,
    seed, pid, group, latency_ns, ms.
    """
    return pl.concat(
        [
            _run_latencies(trace, group).select(
                pl.lit(panel).alias("panel"),
                pl.lit(series).alias("series"),
                pl.lit(run, pl.Int64).alias("run"),
                pl.lit(trace.header.seed, pl.UInt64).alias("seed"),
                "pid",
                "group",
                "latency_ns",
                ms=pl.col("latency_ns").map_batches(_convert_to_ms, pl.Float64),
            )
            for run, trace in enumerate(runs)
        ]
    )


def _convert_to_ms(latency_ns: pl.Series) -> pl.Series:
    """Converts ns to ms with the rounding of the whole chart, since
    Polars and Python round differently.
    """
    return latency_ns / 1e6


def _run_latencies(trace: Trace, group: str | None) -> pl.DataFrame:
    """Returns the wake-up latencies of a run's workload, or of one group: life, latency_ns, and the
    task's names.
    """
    processes = chart_processes(trace)
    workload = processes.names.filter(pl.col("role") == "workload")
    if group is not None:
        workload = workload.filter(pl.col("group") == group)
    waits = wakeup_latencies(processes.intervals(), processes.window)
    return waits.join(workload, on="life", maintain_order="left")

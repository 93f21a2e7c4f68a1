# SPDX-License-Identifier: MIT
"""How long processes waited for the CPU after they were woken: the whole distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import numpy.typing as npt
import polars as pl

from schedlab.metrics import wakeup_latencies
from schedlab.metrics.tables import duration
from schedlab.report.charts.nothing import NothingToDraw
from schedlab.report.charts.parts import (
    STROKE_SIZE,
    Looks,
    chart_of,
    chosen_in_legend,
    opacity_if,
    sentences,
    thinned,
)
from schedlab.report.charts.processes import people_of
from schedlab.report.charts.theme import WIDTH, in_policy_order
from schedlab.report.model import Chart
from schedlab.trace import Trace

FINEST_NS = 1000
"""No axis begins below a microsecond, however fine a clock is."""
_POOLED = (1 / 600, 1 / 400)
_EACH = (1 / 250, 1 / 150)
"""Parts of the width and height: points of a curve that are closer to each other are not drawn."""
Floats = npt.NDArray[np.float64]


def latencies(
    name: str,
    traces: Mapping[str, Sequence[Trace]],
    *,
    title: str,
    caption: str,
    group: str | None = None,
) -> Chart:
    """The part of all wake-ups that were served within a time, for each series of runs.

    Thick: the wake-ups of all runs of the series together; thin: of each run. `group`: only those
    of processes of this group. What is less than a step of the clock stands apart, on the left.
    `data`: each latency. Raises NothingToDraw if there is none.
    """
    behind = _latencies(traces, group)
    if behind.is_empty():
        raise NothingToDraw(f"chart {name}: no process was woken and ran in the time measured")
    step = _finest(traces)
    shown = in_policy_order(each for each in traces if each in set(behind["series"]))
    return Chart(
        name,
        title,
        _chart(behind, Looks(shown, policies=True), step),
        behind,
        sentences(caption, *_remarks(behind, step, [each for each in traces if each not in shown])),
        _words(behind, shown),
    )


def _latencies(traces: Mapping[str, Sequence[Trace]], group: str | None) -> pl.DataFrame:
    """series, run, seed, pid, group, latency_ns: of the workload's processes."""
    frames = [
        _of_run(trace, group).select(
            pl.lit(series).alias("series"),
            pl.lit(run, pl.Int64).alias("run"),
            pl.lit(trace.header.seed, pl.UInt64).alias("seed"),
            "pid",
            "group",
            "latency_ns",
        )
        for series, runs in traces.items()
        for run, trace in enumerate(runs)
    ]
    if not frames:
        raise NothingToDraw("there is no trace to take latencies from")
    return pl.concat(frames)


def _of_run(trace: Trace, group: str | None) -> pl.DataFrame:
    people = people_of(trace)
    workload = people.names.filter(pl.col("role") == "workload")
    if group is not None:
        workload = workload.filter(pl.col("group") == group)
    waits = wakeup_latencies(people.intervals(), people.window)
    return waits.join(workload, on="life", maintain_order="left")


def _finest(traces: Mapping[str, Sequence[Trace]]) -> int:
    steps = [trace.clock_step_ns for runs in traces.values() for trace in runs]
    return max(FINEST_NS, *steps)


def cumulative(values: npt.ArrayLike) -> tuple[Floats, Floats]:
    """The empirical distribution: the different values, and what part of all is up to each."""
    different, counts = np.unique(np.asarray(values, float), return_counts=True)
    return different, np.cumsum(counts) / max(counts.sum(), 1)


def _chart(behind: pl.DataFrame, looks: Looks, step: int) -> Any:
    most = max(int(behind["latency_ns"].to_numpy().max()), step)
    floor = step / 2
    decades = max(np.log10(most / floor), 0.1)
    pooled, each = [], []
    for series in looks.series:
        rows = behind.filter(pl.col("series") == series)
        pooled.append(_curve(rows, floor, decades, _POOLED).with_columns(run=pl.lit(-1)))
        for (run,), own in rows.group_by("run", maintain_order=True):
            each.append(_curve(own, floor, decades, _EACH).with_columns(run=pl.lit(run)))
    seeds = [curve for curve in each if behind["run"].max() != 0]
    x = _x_axis(floor, step, most)
    y = alt.Y("percent:Q", title="wake-ups served within that time (%)",
              scale=alt.Scale(domain=[0, 100]))  # fmt: skip
    chosen = chosen_in_legend()
    tooltip = [
        alt.Tooltip("series:N", title="series"),
        alt.Tooltip("us:Q", title="latency up to (µs)", format=",.6~g"),
        alt.Tooltip("percent:Q", title="of the wake-ups (%)", format=".4~g"),
    ]
    layers = []
    if seeds:
        layers.append(
            _drawn(seeds)
            .mark_line(interpolate="step-after", strokeWidth=0.8, clip=True)
            .encode(
                x,
                y,
                looks.colour(symbolSize=STROKE_SIZE),
                detail="run:N",
                opacity=opacity_if(chosen, 0.5),
            )
        )
    layers.append(
        _drawn(pooled)
        .mark_line(interpolate="step-after", strokeWidth=2.2, clip=True)
        .encode(
            x,
            y,
            looks.colour(symbolSize=STROKE_SIZE),
            looks.dash(),
            opacity=opacity_if(chosen),
            tooltip=tooltip,
        )
        .add_params(chosen)
    )
    return alt.layer(*layers).properties(width=WIDTH, height=300)


def _drawn(curves: list[pl.DataFrame]) -> Any:
    return chart_of(pl.concat(curves), digits=4)


def _curve(
    rows: pl.DataFrame, floor: float, decades: float, least: tuple[float, float]
) -> pl.DataFrame:
    """series, at (where it is drawn, in µs), us (the latency), percent."""
    value, part = cumulative(rows["latency_ns"].to_numpy())
    place = np.maximum(value, floor)
    kept = thinned(np.log10(place), part, decades * least[0], least[1])
    return pl.DataFrame(
        {
            "series": pl.Series([rows["series"][0]] * len(kept), dtype=pl.String),
            "at": place[kept] / 1000,
            "us": value[kept] / 1000,
            "percent": part[kept] * 100,
        }
    )


def _x_axis(floor: float, step: int, most: int) -> alt.X:
    """Logarithmic, with a place of its own on the left for what is less than a step."""
    powers = [10.0**power for power in range(-1, 8)]
    values = [floor / 1000] + [each for each in powers if step / 1000 <= each <= most / 1000]
    label = (
        f"datum.value < {step / 1000} ? '< {_step_name(step)}' : "
        "datum.value >= 1e6 ? format(datum.value / 1e6, ',~g') + ' s' : "
        "datum.value >= 1e3 ? format(datum.value / 1e3, ',~g') + ' ms' : "
        "format(datum.value, ',~g') + ' µs'"
    )
    return alt.X(
        "at:Q",
        title="wake-up latency",
        scale=alt.Scale(type="log", domain=[floor / 1000, most / 1000], nice=False),
        axis=alt.Axis(values=values, labelExpr=label, grid=True),
    )


def _step_name(step: int) -> str:
    return f"{step / 1000:g} µs"


def _remarks(behind: pl.DataFrame, step: int, without: list[str]) -> list[str]:
    several = behind["run"].max() != 0
    return [
        "Thick: all runs of a series together; thin: each run." if several else "",
        f"The clock moves in steps of {_step_name(step)}; what is less stands on the left.",
        f"No process was woken under {', '.join(without)}." if without else "",
    ]


def _words(behind: pl.DataFrame, series: list[str]) -> str:
    told = []
    for each in series:
        values = behind.filter(pl.col("series") == each)["latency_ns"]
        median, high = values.median(), values.quantile(0.99, "linear")
        told.append(f"{each}: median {duration(_float(median))}, 99th percentile {duration(high)}")
    return "Cumulative distribution of wake-up latencies. " + "; ".join(told) + "."


def _float(value: Any) -> float | None:
    return None if value is None else float(value)

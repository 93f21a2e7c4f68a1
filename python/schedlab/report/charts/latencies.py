# SPDX-License-Identifier: MIT
"""How long processes waited for the CPU after they were woken: the whole distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from schedlab.base.toolchain.policies import in_policy_order
from schedlab.metrics import wakeup_latencies
from schedlab.report.charts.ecdf import Mark, ecdf
from schedlab.report.charts.parts import NothingToDraw, sentences
from schedlab.report.charts.processes import people_of
from schedlab.report.model import Chart
from schedlab.trace import Trace

FINEST_NS = 1000
"""No axis begins below a microsecond, however fine a clock is."""


Series = Mapping[str, Sequence[Trace]]
"""The runs of each series."""


def latencies(
    name: str, traces: Series, *, title: str, caption: str, group: str | None = None
) -> Chart:
    """The part of all wake-ups that were served within a time, for each series of runs.

    `group`: only those of processes of this group. What is less than a step of the clock stands apart, on
    the left. `data`: each latency. Raises NothingToDraw if there is none.
    """
    return latencies_in_panels(name, {"": traces}, title=title, caption=caption, group=group)


def latencies_in_panels(
    name: str,
    panels: Mapping[str, Series],
    *,
    title: str,
    caption: str,
    group: str | None = None,
    waits: Mapping[tuple[str, str, int], str] | None = None,
) -> Chart:
    """The same in several pictures, one below the other, each with its name. `waits`: the charts of single waits, to
    which marks on the curves lead, by panel, series and latency in nanoseconds."""
    runs = [(panel, each, own) for panel, traces in panels.items() for each, own in traces.items()]
    found = pl.concat([_of_series(*each, group) for each in runs])
    if found.is_empty():
        raise NothingToDraw(f"chart {name}: no process was woken and ran in the time measured")
    woken = set(found["series"])
    without = in_policy_order(series for _, series, _ in runs if series not in woken)
    steps = [trace.clock_step_ns for _, _, own in runs for trace in own]
    return ecdf(
        name,
        found,
        title=title,
        caption=sentences(
            caption, f"No process was woken under {', '.join(without)}." if without else ""
        ),
        value="ms",
        x_title="wake-up latency (ms)",
        y_title="wake-ups served in it (%)",
        series="series",
        run="run",
        panel="panel",
        least=max([FINEST_NS, *steps]) / 1e6,
        marks=[
            Mark(panel, series, float(_in_ms(pl.Series([latency_ns]))[0]), chart)
            for (panel, series, latency_ns), chart in (waits or {}).items()
        ],
    )


def _of_series(panel: str, series: str, runs: Sequence[Trace], group: str | None) -> pl.DataFrame:
    """panel, series, run, seed, pid, group, latency_ns, ms: of the workload's processes."""
    return pl.concat(
        [
            _of_run(trace, group).select(
                pl.lit(panel).alias("panel"),
                pl.lit(series).alias("series"),
                pl.lit(run, pl.Int64).alias("run"),
                pl.lit(trace.header.seed, pl.UInt64).alias("seed"),
                "pid",
                "group",
                "latency_ns",
                ms=pl.col("latency_ns").map_batches(_in_ms, pl.Float64),
            )
            for run, trace in enumerate(runs)
        ]
    )


def _in_ms(latency_ns: pl.Series) -> pl.Series:
    """To the last bit as in all of the chart: Polars does not round as Python does."""
    return latency_ns / 1e6


def _of_run(trace: Trace, group: str | None) -> pl.DataFrame:
    people = people_of(trace)
    workload = people.names.filter(pl.col("role") == "workload")
    if group is not None:
        workload = workload.filter(pl.col("group") == group)
    waits = wakeup_latencies(people.intervals(), people.window)
    return waits.join(workload, on="life", maintain_order="left")

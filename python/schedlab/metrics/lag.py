# SPDX-License-Identifier: MIT
"""Computes lag: how much CPU time each process has received too little (docs/metrics.md)."""

import numpy as np
import polars as pl

from schedlab.metrics.intervals import state_intervals
from schedlab.metrics.lives import Lives, attribute_at, lives
from schedlab.metrics.processes import process_table
from schedlab.metrics.shares import (
    ATTRIBUTE_DEFAULTS,
    IN_GROUPS,
    KINDS,
    Floats,
    Weights,
    chosen_weights,
    weight_of,
)
from schedlab.metrics.window import Window, measured_window
from schedlab.trace import Kind, Trace
from schedlab.trace.model import Integers

SCHEMA = {"life": pl.Int64, "time_ns": pl.Int64, "lag_ns": pl.Float64}


def lags(trace: Trace, weights: Weights | None = None) -> pl.DataFrame:
    """Returns the lag of each process of the workload during the window, sorted by life and time.

    Columns: life, time_ns, lag_ns. There is a row at the begin and at the end of each interval in
    which the process ran or waited. Within the interval, the lag falls while the process runs, and
    rises while it waits. It is constant while the process is blocked. `weights`: as in `compute`.
    """
    life_table, window = lives(trace), measured_window(trace)
    choice = weights or chosen_weights(trace, window)
    if choice in IN_GROUPS:  # ideal service depends on the ready processes of other groups
        return pl.DataFrame(schema=SCHEMA)
    ready = _split_at_weight_changes(
        trace, life_table, _ready_intervals(trace, life_table, window), choice
    )
    if ready.is_empty():
        return pl.DataFrame(schema=SCHEMA)
    life, begin, end, row = (
        ready[name].to_numpy() for name in ("life", "begin_ns", "end_ns", "begin_row")
    )
    weight = _weights_at(trace, life_table, life, row, choice)
    runs = (ready["state"] == "running").to_numpy()
    gained = _ideal_service(begin, end, weight, runs) - np.where(runs, end - begin, 0)
    after = ready.select("life", time_ns="end_ns", gained=pl.Series(gained)).with_columns(
        lag_ns=pl.col("gained").cum_sum().over("life")
    )
    before = after.with_columns(
        time_ns=ready["begin_ns"], lag_ns=pl.col("lag_ns") - pl.col("gained")
    )
    return (
        pl.concat([before, after])
        .select("life", "time_ns", "lag_ns")
        .sort("life", "time_ns", maintain_order=True)
        .unique(["life", "time_ns"], keep="last", maintain_order=True)
    )


def _ready_intervals(trace: Trace, life_table: Lives, window: Window) -> pl.DataFrame:
    """Returns the intervals when the workload's processes ran or waited, within the window."""
    workload = (
        process_table(trace, life_table, window).filter(pl.col("role") == "workload").select("life")
    )
    return (
        state_intervals(trace, life_table)
        .filter(pl.col("state") != "blocked")
        .join(workload, on="life", how="semi", maintain_order="left")
        .with_columns(pl.col("begin_ns", "end_ns").clip(window.begin_ns, window.end_ns))
        .filter(pl.col("begin_ns") < pl.col("end_ns"))
    )


def _split_at_weight_changes(
    trace: Trace, life_table: Lives, ready: pl.DataFrame, choice: Weights
) -> pl.DataFrame:
    """Splits intervals where a process's weight changes, at the change."""
    if choice == "equal":
        return ready
    rows = trace.rows(Kind.ATTRIBUTE)
    rows = rows[trace.at("first", rows) == KINDS[choice]]
    set_ = pl.DataFrame(
        {
            "life": life_table.life_at(trace.at("process", rows).astype(np.int64), rows),
            "at": trace.at("time_ns", rows).astype(np.int64),
            "row": rows.astype(np.int64),
        }
    ).sort("life", "at")
    numbered = ready.with_row_index("place").sort("life", "begin_ns")
    cuts = set_.join_asof(
        numbered, left_on="at", right_on="begin_ns", by="life", check_sortedness=False
    ).filter(pl.col("at") < pl.col("end_ns"))
    cuts = cuts.with_columns(begin_ns="at", begin_row="row").select(numbered.columns)
    return (
        pl.concat([numbered, cuts])
        .sort("place", "begin_ns", "begin_row")
        .with_columns(
            end_ns=pl.coalesce(pl.col("begin_ns").shift(-1).over("place"), pl.col("end_ns"))
        )
        .filter(pl.col("begin_ns") < pl.col("end_ns"))
        .drop("place")
        .sort("life", "begin_ns")
    )


def _weights_at(
    trace: Trace, life_table: Lives, life: Integers, row: Integers, choice: Weights
) -> Integers:
    if choice == "equal":
        return np.ones(len(life), np.int64)
    kind = KINDS[choice]
    return weight_of(
        kind, attribute_at(trace, life_table, kind, life, row, ATTRIBUTE_DEFAULTS[kind])
    )


def _ideal_service(begin: Integers, end: Integers, weight: Integers, runs: np.ndarray) -> Floats:
    """Returns how much CPU time (ns) each interval's process should get in it.

    At each moment, the CPUs that run the workload are shared by weight among the ready processes,
    with at most one CPU each.
    """
    times = np.unique(np.concatenate((begin, end)))
    weights = np.unique(weight)[::-1]
    ready = np.array([_count_covering(times, begin, end, weight == kind) for kind in weights])
    rates = _ideal_rates(weights.astype(float), ready, _count_covering(times, begin, end, runs))
    service = np.zeros((len(weights), len(times)))
    np.cumsum(rates * np.diff(times), axis=1, out=service[:, 1:])
    index = np.searchsorted(-weights, -weight)
    gained: Floats = (
        service[index, np.searchsorted(times, end)] - service[index, np.searchsorted(times, begin)]
    )
    return gained


def _count_covering(times: Integers, begin: Integers, end: Integers, chosen: np.ndarray) -> Floats:
    """Returns, for each time, how many of the chosen intervals cover the time until the next."""
    started = np.searchsorted(np.sort(begin[chosen]), times[:-1], side="right")
    ended = np.searchsorted(np.sort(end[chosen]), times[:-1], side="right")
    count: Floats = (started - ended).astype(float)
    return count


def _ideal_rates(kinds: Floats, ready: Floats, cpus: Floats) -> Floats:
    """Returns the ideal number of CPUs of a process of each weight.

    `kinds`: the weights, the heaviest first. `ready`: the number of ready processes of each weight
    (rows) over time (columns). `cpus`: the number of CPUs to share over time.
    """
    rates = np.ones_like(ready)
    remaining_cpus, load = cpus.copy(), kinds @ ready
    is_filling = np.ones(len(cpus), bool)
    for row, kind in enumerate(kinds):
        # If a process's share is a whole CPU, the other CPUs are left to lighter processes.
        # Otherwise no lighter process gets a whole CPU either.
        is_filling &= kind * remaining_cpus >= load
        rates[row] = np.where(is_filling, 1, kind * remaining_cpus / np.where(load > 0, load, 1))
        remaining_cpus -= np.where(is_filling, ready[row], 0)
        load -= np.where(is_filling, kind * ready[row], 0)
    return rates

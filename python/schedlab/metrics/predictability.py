# SPDX-License-Identifier: MIT
"""How alike the runs of a set are."""

from __future__ import annotations

import polars as pl

from schedlab.metrics.fairness import interquartile_range
from schedlab.metrics.model import Metrics


def predictability(runs: list[Metrics]) -> pl.DataFrame:
    """The interquartile range of response over runs that differ in their seeds alone.

    A row per group, and one with group null for the whole workload. Columns:
    group, runs (that have such processes), response_iqr_ns (of the runs' mean
    responses: how much one run differs from the next), response_pooled_iqr_ns
    (of the responses of all processes of all runs, as study 3 shows them).
    """
    responses = pl.concat(
        [
            metrics.processes.filter(
                (pl.col("role") == "workload") & pl.col("response_ns").is_not_null()
            ).select(pl.lit(number).alias("run"), "group", "response_ns")
            for number, metrics in enumerate(runs)
        ]
        or [pl.DataFrame(schema={"run": pl.Int32, "group": pl.String, "response_ns": pl.Int64})]
    )
    groups = responses["group"].unique().sort().to_list()
    whole = [_row(None, responses)]
    parts = [_row(name, responses.filter(pl.col("group") == name)) for name in groups]
    return pl.DataFrame(
        whole + parts,
        schema={
            "group": pl.String,
            "runs": pl.Int64,
            "response_iqr_ns": pl.Float64,
            "response_pooled_iqr_ns": pl.Float64,
        },
        orient="row",
    )


def _row(
    group: str | None, responses: pl.DataFrame
) -> tuple[str | None, int, float | None, float | None]:
    means = responses.group_by("run").agg(pl.col("response_ns").mean())["response_ns"]
    return (
        group,
        len(means),
        interquartile_range(means.to_numpy()),
        interquartile_range(responses["response_ns"].to_numpy()),
    )

# SPDX-License-Identifier: MIT
"""Folders of runs that never ran, for tests of what is made of runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from schedlab import results
from schedlab.machines.base import TRACE_FILE
from schedlab.metrics.told import VALUES_SCHEMA

MS = 1_000_000

_SUMMARY: dict[str, Any] = {
    "clock_step_ns": 5000,
    "elapsed_ns": 100 * MS,
    "turnaround_mean_ns": 10.0 * MS,
    "response_mean_ns": 1.0 * MS,
    "waiting_mean_ns": 5.0 * MS,
    "wakeup_latency_median_ns": None,
    "wakeup_latency_p99_ns": None,
    "wakeup_latency_max_ns": None,
    "throughput_per_second": 100.0,
    "overhead_share": 0.01,
    "context_switches": 40,
    "running_ns": 60.0 * MS,
    "selections": 60.0,
    "fairness_turnaround": 0.9,
    "fairness_share": 1.0,
}
_NUMBERS = dict.fromkeys(_SUMMARY, pl.Float64) | {
    "clock_step_ns": pl.Int64,
    "elapsed_ns": pl.Int64,
    "context_switches": pl.Int64,
}


def keep(
    folder: Path,
    *,
    experiment: str = "",
    policy: str = "rr",
    cpus: int = 1,
    seed: int = 1,
    status: str = "success",
    responses: Sequence[int] = (1 * MS, 2 * MS, 3 * MS),
    share_error: float = 0.0,
    finished: int | None = None,
    groups: Sequence[str] = ("cpu",),
    wakeups: int = 1,
    ideal_share: float = 1.0,
    told: Sequence[tuple[str, int]] = (),
    trace: bytes | None = None,
    manifest: dict[str, Any] | None = None,
    **summary: float | None,
) -> Path:
    """A run as `./schedlab run` leaves it, as far as comparisons look at it."""
    name = f"{policy.replace(':', '-')}-{cpus}cpu-seed{seed}"
    place = folder / (f"{experiment}-{name}" if experiment else name)
    place.mkdir(parents=True)
    content = {
        "schedlab": "0.1.0",
        "commit": "0123456789abcdef",
        "changed": False,
        "kernel_sha256": "aa" * 32,
        "disk_sha256": "bb" * 32,
        "label": experiment,
        "workload": "program",
        "policy": policy,
        "tunables": {},
        "cpus": cpus,
        "seed": seed,
        "tick_ns": MS,
        "limit_ns": 60_000 * MS,
        "memory_mib": 512,
        "machine": "spike",
        "machine_version": "1",
        "repeatable": True,
        "host": "here",
        "status": status,
        "message": "" if status == "success" else "it went wrong:\n  details",
        **(manifest or {}),
    }
    (place / results.MANIFEST).write_text(json.dumps(content))
    other = f"{experiment} {policy} {cpus} {seed} {sorted(summary.items())}".encode()
    (place / TRACE_FILE).write_bytes(other if trace is None else trace)
    if status == "success":
        _write_metrics(
            place / results.METRICS,
            responses,
            share_error,
            finished,
            groups,
            wakeups,
            ideal_share,
            summary,
        )
        _write_told(place / results.METRICS, told)
    return place


def _write_metrics(
    place: Path,
    responses: Sequence[int],
    share_error: float,
    finished: int | None,
    groups: Sequence[str],
    wakeups: int,
    ideal_share: float,
    summary: dict[str, float | None],
) -> None:
    place.mkdir()
    count = len(responses)
    counts = {"processes": count, "finished": count if finished is None else finished}
    values = {**_SUMMARY, **summary}
    columns = {**_NUMBERS, **{name: pl.Float64 for name in summary if name not in _NUMBERS}}
    whole = pl.DataFrame(
        [{**counts, **values}], schema={**dict.fromkeys(counts, pl.Int64), **columns}
    )
    whole.write_parquet(place / "summary.parquet")
    group = {
        "share": ideal_share + share_error / 100,
        "ideal_share": ideal_share,
        "selections": 7,
        "share_error_points": share_error,
    }
    part = whole.drop("clock_step_ns", "elapsed_ns", "overhead_share").with_columns(
        **{name: pl.lit(value) for name, value in group.items()}
    )
    parts = [part.with_columns(group=pl.lit(name)) for name in groups]
    pl.concat(parts).write_parquet(place / "groups.parquet")
    pl.DataFrame(
        {
            "pid": range(3, 3 + count),
            "group": [groups[number % len(groups)] for number in range(count)],
            "role": ["workload"] * count,
            "response_ns": pl.Series(responses, dtype=pl.Int64),
            "running_ns": [20 * MS] * count,
            "exit_ns": [90 * MS] * count,
            "wakeups": [wakeups] * count,
        }
    ).write_parquet(place / "processes.parquet")


def _write_told(place: Path, told: Sequence[tuple[str, int]]) -> None:
    values = {
        "pid": [3] * len(told),
        "group": ["cpu"] * len(told),
        "time_ns": list(range(len(told))),
        "name": [name for name, _ in told],
        "value": [value for _, value in told],
    }
    pl.DataFrame(values, schema=VALUES_SCHEMA).write_parquet(place / "values.parquet")

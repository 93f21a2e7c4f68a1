# SPDX-License-Identifier: MIT
"""Creates directories of runs as written by `./schedlab run`, without running anything.

`keep_run` writes the given metrics tables. `keep_figures` writes a complete set of tables with some
given figures. `keep_simulated` writes a trace and its measurements.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from schedlab.machines.folder import TRACE_FILE
from schedlab.metrics import Metrics, compute
from schedlab.metrics.reported import VALUES_SCHEMA
from schedlab.metrics.stored import may_lack, schemas
from schedlab.runs import results
from schedlab.studies.experiments import EXPERIMENTS
from trace_simulator import Script, load, simulate, write

MS = 1_000_000

Rows = Sequence[Mapping[str, Any]]

MANIFEST: dict[str, Any] = {
    "schedlab": "0.1.0",
    "commit": "0123456789abcdef",
    "changed": False,
    "kernel_sha256": "aa" * 32,
    "disk_sha256": "bb" * 32,
    "label": "some work",
    "workload": "mixed -n 3",
    "policy": "rr",
    "tunables": {},
    "cpus": 1,
    "seed": 1,
    "tick_ns": MS,
    "limit_ns": 60_000 * MS,
    "memory_mib": 512,
    "machine": "spike",
    "machine_version": "1",
    "repeatable": True,
    "host": "here",
    "status": "success",
    "message": "",
}


def keep_run(
    path: Path,
    experiment: str,
    policy: str,
    seed: int = 1,
    *,
    tables: Mapping[str, Rows | pl.DataFrame] | None = None,
    **manifest: Any,
) -> Path:
    """Writes a run with the given metrics tables: `summary`, `groups`, `processes`, `values`.
    No trace.
    """
    folder = path / f"{experiment}-{policy.replace(':', '-')}-seed{seed}"
    return _keep(
        folder, tables or {}, {"label": experiment, "policy": policy, "seed": seed, **manifest}
    )


def _keep(
    folder: Path, tables: Mapping[str, Rows | pl.DataFrame], manifest: Mapping[str, Any]
) -> Path:
    metrics = folder / results.METRICS_FOLDER
    metrics.mkdir(parents=True)
    for name, rows in tables.items():
        frame = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(rows)
        _completed(name, frame).write_parquet(metrics / f"{name}.parquet")
    results.write_json(folder / results.MANIFEST_FILE, {**MANIFEST, **manifest})
    return folder


def _completed(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Adds the columns that a table must have: empty where a row may lack a value, otherwise
    zero.
    """
    missing = [
        pl.lit(None if may_lack(name, column) else _zero(kind), kind).alias(column)
        for column, kind in schemas()[name].items()
        if column not in frame.columns
    ]
    return frame.with_columns(missing)


def _zero(kind: pl.DataType) -> Any:
    if isinstance(kind, pl.Enum):
        return kind.categories[0]
    return "" if kind == pl.String else False if kind == pl.Boolean else 0


# --- a trace and its measurements


def keep_simulated(folder: Path, seed: int, **manifest: Any) -> Metrics:
    """Writes a run of a simulated machine with two CPUs; returns its measurements."""
    script = Script(cpus=2, steps=300)
    records = simulate(random.Random(seed), script)
    run_metrics = compute(load(records, script))
    _keep(folder, {}, {"cpus": 2, "seed": seed, **manifest})
    write(folder / TRACE_FILE, records, script)
    run_metrics.write(folder / results.METRICS_FOLDER)
    return run_metrics


# --- chosen figures


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


def keep_figures(
    path: Path,
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
    reported_values: Sequence[tuple[str, int]] = (),
    trace: bytes | None = None,
    manifest: Mapping[str, Any] | None = None,
    **summary: float | None,
) -> Path:
    """Writes the figures that comparisons use. They equal those of all other runs, except for the
    given ones.

    Its trace serves only to be equal to another's, or not.
    """
    name = f"{policy.replace(':', '-')}-{cpus}cpu-seed{seed}"
    known = EXPERIMENTS.get(experiment)
    succeeded = status == "success"
    tables: dict[str, pl.DataFrame] = {}
    if succeeded:
        count = len(responses)
        summary_table = _summary_table(count, count if finished is None else finished, summary)
        tables = {
            "summary": summary_table,
            "groups": _groups(summary_table, groups, ideal_share, share_error),
            "processes": _processes(responses, groups, wakeups),
            "values": _values(reported_values),
        }
    content = {
        "label": experiment,
        "workload": known.command if known else experiment or "program",
        "policy": policy,
        "cpus": cpus,
        "seed": seed,
        "status": status,
        "message": "" if succeeded else "it went wrong:\n  details",
        **(manifest or {}),
    }
    folder = _keep(path / (f"{experiment}-{name}" if experiment else name), tables, content)
    default_trace = f"{experiment} {policy} {cpus} {seed} {sorted(summary.items())}".encode()
    (folder / TRACE_FILE).write_bytes(default_trace if trace is None else trace)
    return folder


def _summary_table(
    processes: int, finished: int, summary: Mapping[str, float | None]
) -> pl.DataFrame:
    counts = {"processes": processes, "finished": finished}
    others = {name: pl.Float64 for name in summary if name not in _NUMBERS}
    return pl.DataFrame(
        [{**counts, **_SUMMARY, **summary}],
        schema={**dict.fromkeys(counts, pl.Int64), **_NUMBERS, **others},
    )


def _groups(
    summary_table: pl.DataFrame, groups: Sequence[str], ideal_share: float, share_error: float
) -> pl.DataFrame:
    """Returns groups that equal the whole, including the distance from the ideal share.
    `share_error`: percentage points.
    """
    group_columns = {
        "share": ideal_share + share_error / 100,
        "ideal_share": ideal_share,
        "selections": 7,
        "share_error_points": share_error,
    }
    part = summary_table.drop("clock_step_ns", "elapsed_ns", "overhead_share").with_columns(
        **{name: pl.lit(value) for name, value in group_columns.items()}
    )
    return pl.concat([part.with_columns(group=pl.lit(name)) for name in groups])


def _processes(responses: Sequence[int], groups: Sequence[str], wakeups: int) -> pl.DataFrame:
    count = len(responses)
    return pl.DataFrame(
        {
            "pid": range(3, 3 + count),
            "group": [groups[number % len(groups)] for number in range(count)],
            "role": ["workload"] * count,
            "response_ns": pl.Series(responses, dtype=pl.Int64),
            "running_ns": [20 * MS] * count,
            "fork_ns": [0] * count,
            "exit_ns": [90 * MS] * count,
            "wakeups": [wakeups] * count,
        }
    )


def _values(printed_values: Sequence[tuple[str, int]]) -> pl.DataFrame:
    values = {
        "pid": [3] * len(printed_values),
        "group": ["cpu"] * len(printed_values),
        "time_ns": list(range(len(printed_values))),
        "name": [name for name, _ in printed_values],
        "value": [value for _, value in printed_values],
    }
    return pl.DataFrame(values, schema=VALUES_SCHEMA)

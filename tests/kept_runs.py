# SPDX-License-Identifier: MIT
"""Makes folders of runs with chosen figures, as `./schedlab run` leaves them but for the trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from schedlab import results

Rows = Sequence[Mapping[str, Any]]

_MANIFEST = {
    "workload": "some work",
    "tunables": {},
    "cpus": 1,
    "tick_ns": 1_000_000,
    "machine": "spike",
    "repeatable": True,
    "status": "success",
    "message": "",
}


def keep_run(
    place: Path,
    experiment: str,
    policy: str,
    seed: int = 1,
    *,
    tables: Mapping[str, Rows] | None = None,
    **manifest: Any,
) -> Path:
    """A run's folder, with the metrics' tables given: `summary`, `groups`, `processes`, `values`."""
    folder = place / f"{experiment}-{policy.replace(':', '-')}-seed{seed}"
    metrics = folder / results.METRICS
    metrics.mkdir(parents=True)
    for name, rows in (tables or {}).items():
        pl.DataFrame(rows).write_parquet(metrics / f"{name}.parquet")
    content = {**_MANIFEST, "label": experiment, "policy": policy, "seed": seed, **manifest}
    results.write_json(folder / results.MANIFEST, content)
    return folder

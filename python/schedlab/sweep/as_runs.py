# SPDX-License-Identifier: MIT
"""Presents a sweep's data set as a collection of runs, for comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from schedlab.base.files.replacement import below
from schedlab.errors import FileRefused, WrongUsage
from schedlab.machines import MACHINES, machine_named
from schedlab.runs import results
from schedlab.runs.collection import Collection, StoredRun, distinguish, identity
from schedlab.sweep import dataset
from schedlab.sweep.origin import MADE_OF, SITTINGS

_KEY = "key"
_NEEDED = ("workload", "policy", "settings", "machine", "cpus", "tick_ns", "seed", "status")
_PROCESSES = {
    "run": pl.Int64, "experiment": pl.String, "policy": pl.String, "cpus": pl.Int64,
    "seed": pl.Int64, "machine": pl.String, "tick_ns": pl.Int64, "status": pl.String,
    "group": pl.String, "role": pl.String, "response_ns": pl.Int64,
}  # fmt: skip
"""Columns of processes; sweeps store no processes, only metrics computed from them."""


class Swept(Collection):
    """Runs whose metrics are rows of a data set."""

    def __init__(self, runs: Iterable[StoredRun], tables: Mapping[str, pl.DataFrame]) -> None:
        """`tables` are summary, groups and values, each with the column `key`."""
        super().__init__(runs)
        self.tables = tables

    def of(self, runs: Sequence[StoredRun]) -> Collection:
        """Returns a subset of the runs."""
        return Swept(runs, self.tables)

    def _frame(self, table: str) -> pl.DataFrame:
        rows = self.tables.get(table)
        if rows is None:
            return pl.DataFrame(schema=_PROCESSES)
        who = pl.DataFrame(
            [
                {"run": number, **identity(run), _KEY: run.folder.name}
                for number, run in enumerate(self.runs)
            ]
        )
        shared = [name for name in rows.columns if name in who.columns and name != _KEY]
        how: Any = "left" if table == "summary" else "inner"
        joined = who.join(rows.drop(shared), on=_KEY, how=how, maintain_order="left_right")
        return joined.drop(_KEY)


def is_sweep(place: Path) -> bool:
    """Returns whether a folder has a sweep's data set without its runs' folders."""
    if not (place / dataset.RUNS).is_dir() or not (place / results.MANIFEST).is_file():
        return False
    traces = place / dataset.TRACES
    return not (traces.is_dir() and any(traces.iterdir()))


def collection(folder: Path) -> Swept:
    """Returns all runs of a data set. Raises WrongUsage, FileRefused."""
    manifest = dataset.read_manifest(folder)
    runs = dataset.read_table(folder, dataset.RUNS)
    if runs.is_empty():
        raise WrongUsage(f"{folder}: no run has finished yet; continue the sweep first")
    for name in _NEEDED:
        if runs[name].null_count():
            raise FileRefused(f"{folder}: a run in it has no {name}")
    if strange := set(runs["machine"]) - {*MACHINES}:
        raise FileRefused(f"{folder}: unknown machine {', '.join(sorted(strange))}")
    facts = manifest.get(MADE_OF, {})
    sittings = manifest.get(SITTINGS, [])
    by = {
        key: origin_facts.get(key)
        for origin_facts in sittings[:1]
        for key in ("schedlab", "commit", "changed")
    }
    if any(
        origin_facts.get(key) != value for origin_facts in sittings for key, value in by.items()
    ):
        by = {}
    ordered = runs.sort("workload", "changes", "policy", "settings", "cpus", "seed")
    stored = [
        _run_of_row(folder, row, {**by, **(facts.get(row["made_of"]) or {})})
        for row in ordered.to_dicts()
    ]
    tables = {
        "summary": runs,
        "groups": dataset.read_table(folder, dataset.GROUPS),
        "values": dataset.read_table(folder, dataset.REPORTED).select(_KEY, "name", value="mean"),
    }
    return Swept(distinguish(stored, results.MADE_OF), tables)


def _run_of_row(folder: Path, row: Mapping[str, Any], facts: Mapping[str, Any]) -> StoredRun:
    """Returns a run with the manifest that its folder would have."""
    machine = dict(facts.get("machine") or {})
    machine.pop("name", None)
    manifest = {
        **{key: facts.get(key) for key in ("schedlab", "commit", "changed")},
        **machine,
        "workload": facts.get("workload", row["workload"]),
        "label": facts.get("label", ""),
        "policy": row["policy"],
        "tunables": {name: int(value) for name, value in _pairs(row["settings"])},
        "with": dict(facts.get("changes") or _pairs(row["changes"])),
        **{name: row[name] for name in ("cpus", "tick_ns", "machine", "seed", "status", "message")},
        "memory_mib": row["memory_mib"] or 0,
        "limit_ns": row["limit_ns"],
        "costs": row["costs"] or "",
        "workload_sha256": facts.get("workload_sha256"),
        "measuring": facts.get("measuring") or {},
        "host": "a sweep's worker",
        "repeatable": machine_named(row["machine"]).repeatable,
        **({"shape": facts["shape"]} if facts.get("shape") else {}),
    }
    return StoredRun(below(folder, str(row[_KEY])), manifest)


def _pairs(text: str | None) -> list[tuple[str, str]]:
    """Splits `a=1,b=2` into pairs."""
    parts = (part.partition("=") for part in (text or "").split(",") if part)
    return [(name, value) for name, _, value in parts]

# SPDX-License-Identifier: MIT
"""Presents a sweep's data set as a collection of runs, for comparisons."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from schedlab.base.files.replacement import path_in_folder
from schedlab.errors import FileRefused
from schedlab.machines import MACHINES, machine_named
from schedlab.runs import results
from schedlab.runs.collection import Collection, StoredRun, distinguish, identity
from schedlab.sweep import dataset
from schedlab.sweep.origin import MADE_OF_KEY, SITTINGS_KEY

_KEY_COLUMN = "key"
_REQUIRED_COLUMNS = (
    "workload",
    "policy",
    "settings",
    "machine",
    "cpus",
    "tick_ns",
    "seed",
    "status",
)
_PROCESS_SCHEMA = {
    "run": pl.Int64, "experiment": pl.String, "policy": pl.String, "cpus": pl.Int64,
    "seed": pl.Int64, "machine": pl.String, "tick_ns": pl.Int64, "status": pl.String,
    "group": pl.String, "role": pl.String, "response_ns": pl.Int64,
}  # fmt: skip
"""Columns of processes; sweeps store no processes, only metrics computed from them."""


class SweptRuns(Collection):
    """Runs whose metrics are rows of a data set."""

    def __init__(self, runs: Iterable[StoredRun], tables: Mapping[str, pl.DataFrame]) -> None:
        """`tables` are summary, groups and values, each with the column `key`."""
        super().__init__(runs)
        self.tables = tables

    def of(self, runs: Sequence[StoredRun]) -> Collection:
        """Returns a subset of the runs."""
        return SweptRuns(runs, self.tables)

    def _frame(self, table: str) -> pl.DataFrame:
        rows = self.tables.get(table)
        if rows is None:
            return pl.DataFrame(schema=_PROCESS_SCHEMA)
        identities = pl.DataFrame(
            [
                {"run": number, **identity(run), _KEY_COLUMN: run.folder.name}
                for number, run in enumerate(self.runs)
            ]
        )
        shared_columns = [
            name for name in rows.columns if name in identities.columns and name != _KEY_COLUMN
        ]
        join_kind: Any = "left" if table == "summary" else "inner"
        joined = identities.join(
            rows.drop(shared_columns), on=_KEY_COLUMN, how=join_kind, maintain_order="left_right"
        )
        return joined.drop(_KEY_COLUMN)


def is_sweep(path: Path) -> bool:
    """Returns whether a folder has a sweep's data set without its runs' folders."""
    if not (path / dataset.RUNS).is_dir() or not (path / results.MANIFEST_FILE).is_file():
        return False
    traces = path / dataset.TRACES_FOLDER
    return not (traces.is_dir() and any(traces.iterdir()))


def read_collection(folder: Path) -> SweptRuns:
    """Returns all runs of a data set. Raises WrongUsage, FileRefused."""
    manifest = dataset.read_manifest(folder)
    runs = dataset.read_runs(folder, _REQUIRED_COLUMNS)
    if unknown_machines := set(runs["machine"]) - {*MACHINES}:
        raise FileRefused(
            f"unknown machine {', '.join(sorted(unknown_machines))}",
            what=str(folder),
            fix="use the release of schedlab that made it",
        )
    facts = manifest.get(MADE_OF_KEY, {})
    sittings = manifest.get(SITTINGS_KEY, [])
    origin_facts_by_key = {
        key: origin_facts.get(key)
        for origin_facts in sittings[:1]
        for key in ("schedlab", "commit", "changed")
    }
    if any(
        origin_facts.get(key) != value
        for origin_facts in sittings
        for key, value in origin_facts_by_key.items()
    ):
        origin_facts_by_key = {}
    ordered = runs.sort("workload", "changes", "policy", "settings", "cpus", "seed")
    stored = [
        _row_as_run(folder, row, {**origin_facts_by_key, **(facts.get(row["made_of"]) or {})})
        for row in ordered.to_dicts()
    ]
    tables = {
        "summary": runs,
        "groups": dataset.read_table(folder, dataset.GROUPS),
        "values": dataset.read_table(folder, dataset.REPORTED).select(
            _KEY_COLUMN, "name", value="mean"
        ),
    }
    return SweptRuns(distinguish(stored, results.SHARED_INPUTS), tables)


def _row_as_run(folder: Path, row: Mapping[str, Any], facts: Mapping[str, Any]) -> StoredRun:
    """Returns a run with the manifest that its folder would have."""
    machine = dict(facts.get("machine") or {})
    machine.pop("name", None)
    manifest = {
        **{key: facts.get(key) for key in ("schedlab", "commit", "changed")},
        **machine,
        "workload": facts.get("workload", row["workload"]),
        "label": facts.get("label", ""),
        "policy": row["policy"],
        "tunables": {name: int(value) for name, value in _split_pairs(row["settings"])},
        "with": dict(facts.get("changes") or _split_pairs(row["changes"])),
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
    return StoredRun(path_in_folder(folder, str(row[_KEY_COLUMN])), manifest)


def _split_pairs(text: str | None) -> list[tuple[str, str]]:
    """Splits `a=1,b=2` into pairs."""
    pairs = (pair.partition("=") for pair in (text or "").split(",") if pair)
    return [(name, value) for name, _, value in pairs]

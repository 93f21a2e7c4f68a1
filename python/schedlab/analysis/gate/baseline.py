# SPDX-License-Identifier: MIT
"""Stores a baseline in one small file: manifests and metrics of runs, and their input files.

A baseline contains no traces. It has the hash of each trace, to recognise identical runs.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from schedlab.base.display.names import json_text
from schedlab.base.files.archive import unpack, write_archive
from schedlab.base.files.atomic import file_hash
from schedlab.base.files.formats import check_format
from schedlab.base.files.replacement import check_file
from schedlab.base.files.untrusted import Field, by_name, list_of, read_object, read_tables
from schedlab.errors import FileRefused, WrongUsage, parameter
from schedlab.machines.folder import SHAPE_FILE, WORKLOAD_FILE
from schedlab.metrics import schemas
from schedlab.runs import results
from schedlab.runs.collection import Collection, StoredRun, read

FORMAT = 1
SUFFIX = ".baseline"
LISTING = "baseline.json"
_RUN = "run"
"""The column that identifies the run of a row."""
_OF_THE_HOST = ("started", "command_line", "python", "host", "host_seconds", "machine_origin")
"""Manifest entries that do not affect results."""
_MADE_OF = (WORKLOAD_FILE, SHAPE_FILE)
"""Input files in the folder of a run."""
_TABLES = ("summary", "groups", "processes", "values")
"""Tables of metrics to compare."""
_PLACE = re.compile(r"files/[0-9a-f]{16}-[a-z.]+")
Instructions = Mapping[str, Mapping[str, int]]
"""Instructions of one pick and one enqueue, by policy and number of tasks."""


@dataclass(frozen=True)
class Baseline:
    """The contents of a baseline file, unpacked into a temporary folder."""

    runs: Collection
    instructions: Instructions = field(default_factory=dict)
    """Empty if instructions were not counted."""


def check_place(place: Path) -> None:
    """Raises WrongUsage if a baseline cannot be written to this path."""
    if place.suffix != SUFFIX:
        raise WrongUsage(
            "not the name of a baseline",
            what=parameter("keep", place),
            fix=f"use a name that ends in {SUFFIX}",
        )
    check_file("keep", place)


def write_baseline(place: Path, runs: Collection, instructions: Instructions) -> None:
    """Writes a baseline of runs. Raises WrongUsage if a run failed."""
    for run in runs:
        if not run.succeeded:
            raise WrongUsage(
                f"{run.folder}: the run failed ({run.status}), so it cannot be a baseline;"
                " run it again"
            )
    files: dict[str, bytes | Path] = {}
    listed = []
    for run in runs:
        run_files = {name: run.folder / name for name in _MADE_OF if (run.folder / name).is_file()}
        named = {name: f"files/{file_hash(file)[:16]}-{name}" for name, file in run_files.items()}
        files |= {named[name]: file for name, file in run_files.items()}
        listed.append({"manifest": _manifest(run), "files": named})
    for table in _TABLES:
        files[f"{table}.parquet"] = _together(runs, table)
    listing = {"format": FORMAT, "instructions": instructions, "runs": listed}
    files[LISTING] = json_text(listing).encode()
    write_archive(place, files)


def _manifest(run: StoredRun) -> dict[str, Any]:
    manifest = {key: value for key, value in run.manifest.items() if key not in _OF_THE_HOST}
    hashed = run.trace_hash
    return {**manifest, **({"trace_sha256": hashed} if hashed else {})}


def _together(runs: Iterable[StoredRun], table: str) -> bytes:
    """Returns a table of all runs as one Parquet file, which is much smaller than one file per run."""
    schema = schemas()[table]
    parts = [
        (
            read_tables([place], schema) if place.exists() else pl.DataFrame(schema=schema)
        ).with_columns(pl.lit(number, pl.Int64).alias(_RUN))
        for number, place in enumerate(run.measured / f"{table}.parquet" for run in runs)
    ]
    file = BytesIO()
    pl.concat(parts, how="diagonal_relaxed").write_parquet(file, compression="uncompressed")
    return file.getvalue()


@contextmanager
def opened(place: Path) -> Iterator[Baseline]:
    """Unpacks a baseline temporarily. Raises FileRefused for other files and for other format versions."""
    with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
        packed, folder = Path(scratch) / "packed", Path(scratch) / "runs"
        packed.mkdir()
        unpack(place, packed)
        if not (packed / LISTING).is_file():
            raise FileRefused(
                f"{place}: not a baseline: {LISTING} is missing", fix="create one with `keep=`"
            )
        check_format(place, read_object(packed / LISTING, {}), FORMAT, "a baseline")
        listing = read_object(packed / LISTING, _FIELDS)
        for file in {file for run in listing["runs"] for file in run["files"].values()}:
            if not (packed / file).is_file():
                raise FileRefused(
                    f"{place}: {file} is listed but missing", fix="create the baseline again"
                )
        for number, run in enumerate(listing["runs"]):
            _lay_out(packed, folder / f"{number:04}", run)
        _split(packed, folder, len(listing["runs"]))
        yield Baseline(read([folder]), listing["instructions"])


def _lay_out(packed: Path, folder: Path, run: Mapping[str, Any]) -> None:
    """Creates the folder of a run."""
    (folder / results.METRICS).mkdir(parents=True)
    (folder / results.MANIFEST).write_text(json.dumps(run["manifest"]))
    for name, file in run["files"].items():
        (folder / name).hardlink_to(packed / file)


def _split(packed: Path, folder: Path, count: int) -> None:
    """Splits the tables by run and writes each part to the run's folder."""
    for table in _TABLES:
        schema = {**schemas()[table], _RUN: pl.Int64()}
        rows = read_tables([packed / f"{table}.parquet"], schema)
        parts = rows.partition_by(_RUN, as_dict=True, include_key=False)
        for number in range(count):
            rows_of_run = parts.get((number,), rows.clear().drop(_RUN))
            rows_of_run.write_parquet(
                folder / f"{number:04}" / results.METRICS / f"{table}.parquet"
            )


def _is_run(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("manifest"), dict):
        return False
    files = value.get("files")
    return isinstance(files, dict) and all(
        name in _MADE_OF and isinstance(file, str) and _PLACE.fullmatch(file)
        for name, file in files.items()
    )


def _are_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(
        tasks.isdecimal() and isinstance(count, int) and count >= 0
        for tasks, count in value.items()
    )


_FIELDS: Mapping[str, Field] = {
    "runs": list_of("runs", _is_run, required=True),
    "instructions": by_name("counts", _are_counts, required=True),
}

# SPDX-License-Identifier: MIT
"""Stores a baseline in one small file: manifests and metrics of runs, and their input files.

A baseline contains no traces. It has the hash of each trace, to recognise identical runs.
"""

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from schedlab.base.display.names import json_text
from schedlab.base.files.archive import unpack, write_archive
from schedlab.base.files.atomic import file_hash
from schedlab.base.files.reading import check_format
from schedlab.base.files.replacement import check_file
from schedlab.base.files.untrusted import Field, list_field, mapping_field, read_object, read_tables
from schedlab.errors import FileRefused, WrongUsage, format_parameter
from schedlab.machines.folder import SHAPE_FILE, WORKLOAD_FILE
from schedlab.metrics import load_many, schemas
from schedlab.metrics.stored import RUN
from schedlab.runs import results
from schedlab.runs.collection import Collection, StoredRun, read_collection

BASELINE_FORMAT = 1
BASELINE_SUFFIX = ".baseline"
LISTING_FILE = "baseline.json"
_HOST_ENTRIES = ("started", "command_line", "python", "host", "host_seconds", "machine_origin")
"""Manifest entries that do not affect results."""
_INPUT_FILES = (WORKLOAD_FILE, SHAPE_FILE)
"""Input files in the folder of a run."""
_TABLES = ("summary", "groups", "processes", "values")
"""Tables of metrics to compare."""
_FILE_PATH = re.compile(r"files/[0-9a-f]{16}-[a-z.]+")
Instructions = Mapping[str, Mapping[str, int]]
"""Instructions of one pick and one enqueue, by policy and number of tasks."""


@dataclass(frozen=True)
class Baseline:
    """The contents of a baseline file, unpacked into a temporary folder."""

    runs: Collection
    instructions: Instructions = field(default_factory=dict)
    """Empty if instructions were not counted."""


def check_baseline_path(path: Path) -> None:
    """Raises WrongUsage if a baseline cannot be written to this path."""
    if path.suffix != BASELINE_SUFFIX:
        raise WrongUsage(
            "not the name of a baseline",
            what=format_parameter("keep", path),
            fix=f"use a name that ends in {BASELINE_SUFFIX}",
        )
    check_file("keep", path)


def write_baseline(path: Path, runs: Collection, instructions: Instructions) -> None:
    """Writes a baseline of runs. Raises WrongUsage if a run failed."""
    for run in runs:
        if not run.succeeded:
            raise WrongUsage(
                f"{run.folder}: the run failed ({run.status}), so it cannot be a baseline;"
                " run it again"
            )
    files: dict[str, bytes | Path] = {}
    run_entries = []
    for run in runs:
        run_files = {
            name: run.folder / name for name in _INPUT_FILES if (run.folder / name).is_file()
        }
        archive_names = {
            name: f"files/{file_hash(file)[:16]}-{name}" for name, file in run_files.items()
        }
        files |= {archive_names[name]: file for name, file in run_files.items()}
        run_entries.append({"manifest": _manifest(run), "files": archive_names})
    tables = load_many(dict(enumerate(run.measured for run in runs)))
    for table in _TABLES:
        file = BytesIO()
        # One file of all runs is much smaller than one file per run.
        tables[table].write_parquet(file, compression="uncompressed")
        files[f"{table}.parquet"] = file.getvalue()
    listing = {"format": BASELINE_FORMAT, "instructions": instructions, "runs": run_entries}
    files[LISTING_FILE] = json_text(listing).encode()
    write_archive(path, files)


def _manifest(run: StoredRun) -> dict[str, Any]:
    """Returns the entries of a run's manifest that affect results."""
    manifest = {key: value for key, value in run.manifest.items() if key not in _HOST_ENTRIES}
    trace_hash = run.trace_hash
    return {**manifest, **({"trace_sha256": trace_hash} if trace_hash else {})}


@contextmanager
def unpacked_baseline(path: Path) -> Iterator[Baseline]:
    """Unpacks a baseline temporarily. Raises FileRefused for other files and for other format versions."""
    with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
        packed, folder = Path(scratch) / "packed", Path(scratch) / "runs"
        packed.mkdir()
        unpack(path, packed)
        if not (packed / LISTING_FILE).is_file():
            raise FileRefused(
                f"{path}: not a baseline: {LISTING_FILE} is missing", fix="create one with `keep=`"
            )
        check_format(path, read_object(packed / LISTING_FILE, {}), BASELINE_FORMAT, "a baseline")
        listing = read_object(packed / LISTING_FILE, _FIELDS)
        for file in {file for run in listing["runs"] for file in run["files"].values()}:
            if not (packed / file).is_file():
                raise FileRefused(
                    f"{path}: {file} is listed but missing",
                    fix="create the baseline again with `keep=`",
                )
        for number, run in enumerate(listing["runs"]):
            _create_run_folder(packed, folder / f"{number:04}", run)
        _split_tables(packed, folder, len(listing["runs"]))
        yield Baseline(read_collection([folder]), listing["instructions"])


def _create_run_folder(packed: Path, folder: Path, run: Mapping[str, Any]) -> None:
    (folder / results.METRICS_FOLDER).mkdir(parents=True)
    (folder / results.MANIFEST_FILE).write_text(json.dumps(run["manifest"]))
    for name, file in run["files"].items():
        (folder / name).hardlink_to(packed / file)


def _split_tables(packed: Path, folder: Path, count: int) -> None:
    """Splits the tables by run and writes each part to the run's folder."""
    for table in _TABLES:
        schema = {**schemas()[table], RUN: pl.Int64()}
        rows = read_tables([packed / f"{table}.parquet"], schema)
        parts = rows.partition_by(RUN, as_dict=True, include_key=False)
        for number in range(count):
            rows_of_run = parts.get((number,), rows.clear().drop(RUN))
            rows_of_run.write_parquet(
                folder / f"{number:04}" / results.METRICS_FOLDER / f"{table}.parquet"
            )


def _is_run(value: Any) -> bool:
    """Returns whether the value has the form of a run in the list of a baseline."""
    if not isinstance(value, dict) or not isinstance(value.get("manifest"), dict):
        return False
    files = value.get("files")
    return isinstance(files, dict) and all(
        name in _INPUT_FILES and isinstance(file, str) and _FILE_PATH.fullmatch(file)
        for name, file in files.items()
    )


def _are_counts(value: Any) -> bool:
    """Returns whether the value has the form of instruction counts."""
    return isinstance(value, dict) and all(
        tasks.isdecimal() and isinstance(count, int) and count >= 0
        for tasks, count in value.items()
    )


_FIELDS: Mapping[str, Field] = {
    "runs": list_field("runs", _is_run, required=True),
    "instructions": mapping_field("counts", _are_counts, required=True),
}

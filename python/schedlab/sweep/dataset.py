# SPDX-License-Identifier: MIT
"""The data set of a sweep: tables of Parquet files that grow part by part (docs/sweeps.md).

Parts appear atomically, and a part's runs are written last. So a reader that sees a run finds all
of its data.
"""

import fcntl
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from schedlab.base.files import replacement
from schedlab.base.files.reading import check_format
from schedlab.base.files.untrusted import (
    Field,
    check_members,
    list_field,
    mapping_field,
    read_object,
    read_tables,
    text_field,
)
from schedlab.errors import FileRefused, WrongUsage, format_parameter
from schedlab.runs import results
from schedlab.runs.worker import Result
from schedlab.sweep.columns import (
    CHANGE_PREFIX,
    FORMAT,
    GROUPS_TABLE,
    REPORTED_TABLE,
    SHAPE_COLUMN,
    TUNABLE_PREFIX,
    Column,
    make_frame,
    runs_columns,
)
from schedlab.sweep.origin import Origin
from schedlab.sweep.rows import RunRows

MANIFEST = results.MANIFEST_FILE
RUNS, GROUPS, REPORTED = "runs", "groups", "told"
TRACES_FOLDER = "traces"
FILES_FOLDER = "made-of"
"""Folder of sweep files and workload files, by hash."""
_NEW_SUFFIX = ".new"
"""Suffix of a part that is being written."""
_SUCCESS = "success"
_UNKNOWN_ORIGIN = Origin()

Row = dict[str, Any]
TunableDefaults = Callable[[str], Mapping[str, int]]


@dataclass
class DataSet:
    """An open data set; only this process may write it."""

    folder: Path
    dimensions: tuple[str, ...]
    """Columns specific to this data set: tunables and changes of the workload."""
    statuses: dict[str, str] = field(default_factory=dict)
    """Status by key of all runs in the data set."""
    edited_files: list[str] = field(default_factory=list)
    """Workload files that have changed since an earlier sitting."""

    def tables(self) -> dict[str, tuple[Column, ...]]:
        """Returns the columns by table; runs are last."""
        return {GROUPS: GROUPS_TABLE, REPORTED: REPORTED_TABLE, RUNS: runs_columns(self.dimensions)}

    def add(self, finished: Sequence[tuple[Mapping[str, Any], Result]]) -> None:
        """Writes a part with these runs and their identities; skips existing runs."""
        rows: dict[str, list[Mapping[str, Any]]] = {RUNS: [], GROUPS: [], REPORTED: []}
        for identity, result in finished:
            if result.key in self.statuses:
                continue
            self.statuses[result.key] = sys.intern(result.outcome.status)
            rows[RUNS].append(_row(identity, result))
            measured = result.data or RunRows()
            rows[GROUPS] += [{**row, "key": result.key} for row in measured.groups]
            rows[REPORTED] += [{**row, "key": result.key} for row in measured.reported]
        if not rows[RUNS]:
            return
        name = self.next_part()
        for table, columns in self.tables().items():
            if rows[table]:
                write_part(self.folder / table / name, make_frame(rows[table], columns))

    def next_part(self) -> str:
        """Returns the name of the next part."""
        numbers = [int(path.stem.partition("-")[2]) for path in part_files(self.folder, RUNS)]
        return f"part-{max(numbers, default=0) + 1:06}.parquet"

    def drop_failed(self) -> int:
        """Deletes failed runs, so that they run again; returns their number."""
        failed = {key for key, status in self.statuses.items() if status != _SUCCESS}
        for path in part_files(self.folder, RUNS):
            stored = read_tables([path], {"key": pl.String()})
            remaining = stored.filter(~pl.col("key").is_in(list(failed)))
            if len(remaining) < len(stored):
                # The reverse of the order of writing: runs first, then their data.
                write_part(path, remaining)
                self.drop_unknown_rows(path.name, remaining)
        self.statuses = {
            key: run_key for key, run_key in self.statuses.items() if key not in failed
        }
        return len(failed)

    def drop_unknown_rows(self, name: str, runs: pl.DataFrame) -> None:
        """Deletes rows of a part's other tables that belong to none of its runs."""
        for table in (GROUPS, REPORTED):
            path = self.folder / table / name
            if path.exists():
                stored = read_tables([path], {"key": pl.String()})
                remaining = stored.join(
                    runs.select("key"), on="key", how="semi", maintain_order="left"
                )
                if len(remaining) < len(stored):
                    write_part(path, remaining)

    def add_dimensions(self, dimensions: Sequence[str], tunable_defaults: TunableDefaults) -> None:
        """Adds columns to existing runs.

        A tunable gets its default in those runs; a value of the workload file gets null, which
        means unchanged.
        """
        order = [column.name for column in runs_columns(self.dimensions)]
        types = {column.name: column.dtype for column in runs_columns(dimensions)}
        for path in part_files(self.folder, RUNS) if dimensions else ():
            stored = read_tables([path], {"policy": pl.String()})
            policies = stored["policy"].to_list()
            defaults_by_policy = {
                policy: tunable_defaults(policy) for policy in dict.fromkeys(policies) if policy
            }
            new_columns = [
                pl.Series(
                    name,
                    [
                        defaults_by_policy.get(policy, {}).get(name.removeprefix(TUNABLE_PREFIX))
                        for policy in policies
                    ],
                    types[name],
                )
                if name.startswith(TUNABLE_PREFIX)
                else pl.lit(None, types[name]).alias(name)
                for name in dimensions
            ]
            widened = stored.with_columns(*new_columns)
            write_part(path, widened.select(name for name in order if name in widened.columns))

    def repair(self) -> None:
        """Cleans up after an interrupted write."""
        for table in (RUNS, GROUPS, REPORTED):
            for path in (self.folder / table).glob(f"*{_NEW_SUFFIX}"):
                path.unlink()
        names = {path.name for path in part_files(self.folder, RUNS)}
        for table in (GROUPS, REPORTED):
            for path in part_files(self.folder, table):
                if path.name not in names:
                    path.unlink()
                else:
                    runs = read_tables([self.folder / RUNS / path.name], {"key": pl.String()})
                    self.drop_unknown_rows(path.name, runs)


def _row(identity: Mapping[str, Any], result: Result) -> Row:
    """Returns the row of a run: its identity, outcome and metrics."""
    return {
        **identity,
        **(result.data or RunRows()).summary,
        "key": result.key,
        "status": result.outcome.status,
        "message": result.outcome.message or None,
    }


def write_part(path: Path, table: pl.DataFrame) -> None:
    """Writes a part atomically and durably."""
    new = path.with_name(f".{path.name}{_NEW_SUFFIX}")
    with new.open("wb") as file:
        table.write_parquet(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)


def part_files(folder: Path, table: str) -> list[Path]:
    """Returns the parts of a table in order of writing."""
    return sorted((folder / table).glob("part-*.parquet"))


# --- removing

_DATA_SET_FILE = re.compile(
    rf"\.?{re.escape(MANIFEST)}({_NEW_SUFFIX})?|{FILES_FOLDER}/[0-9a-f]{{64}}\.(json|yaml)"
    rf"|({RUNS}|{GROUPS}|{REPORTED})/\.?part-\d{{6,}}\.parquet({_NEW_SUFFIX})?"
)
"""Names of a data set's files, except traces."""


def check_is_writable(folder: Path) -> None:
    """Raises WrongUsage if the folder has no data set, or if another process is writing it."""
    read_manifest(folder)
    with _lock(folder):
        pass


def remove_data_set(folder: Path) -> None:
    """Deletes a data set with its traces; keeps other files and changed traces."""
    traces = folder / TRACES_FOLDER
    for run in () if traces.is_symlink() or not traces.is_dir() else tuple(traces.iterdir()):
        if not run.is_symlink() and run.is_dir() and not replacement.why_not_replaceable(run):
            replacement.remove(run)
    for name, path in replacement.list_files(folder).items():
        if _DATA_SET_FILE.fullmatch(name) and path.is_file() and not path.is_symlink():
            path.unlink()
    for place in (
        *(folder / name for name in (RUNS, GROUPS, REPORTED, FILES_FOLDER, TRACES_FOLDER)),
        folder,
    ):
        with suppress(OSError):
            place.rmdir()


# --- opening


@contextmanager
def open_data_set(
    folder: Path,
    dimensions: Sequence[str],
    program_set: Mapping[str, Any],
    title: str,
    origin: Origin = _UNKNOWN_ORIGIN,
    tunable_defaults: TunableDefaults = lambda policy: {},
) -> Iterator[DataSet]:
    """Opens or creates a data set and adds missing dimensions.

    `tunable_defaults` returns the default tunables of a policy, by its name in the table. Raises
    WrongUsage if an existing data set does not match.
    """
    new = not (folder / MANIFEST).exists()
    if new and folder.exists() and any(folder.iterdir()):
        raise WrongUsage(
            "the folder contains something other than a sweep",
            what=format_parameter("out", folder),
            fix="name another folder",
        )
    manifest = {} if new else read_manifest(folder)
    check_same_programs(folder, manifest, program_set)
    for table in (RUNS, GROUPS, REPORTED, FILES_FOLDER):
        (folder / table).mkdir(parents=True, exist_ok=True)
    with _lock(folder):
        earlier_dimensions = manifest.get("dimensions", [])
        data_set = DataSet(folder, tuple(dict.fromkeys([*earlier_dimensions, *dimensions])))
        data_set.repair()
        if not new:
            data_set.add_dimensions(
                [name for name in data_set.dimensions if name not in earlier_dimensions],
                tunable_defaults,
            )
        data_set.statuses = read_statuses(folder)
        data_set.edited_files = origin.edited_files(manifest)
        store_files(folder / FILES_FOLDER, origin.files)
        stored_title = title or manifest.get("title", "")
        write_manifest(
            data_set, merge_machines(manifest, program_set), stored_title, origin.merged(manifest)
        )
        yield data_set


def check_same_programs(
    folder: Path, manifest: Mapping[str, Any], program_set: Mapping[str, Any]
) -> None:
    """Raises WrongUsage unless the data set was made with the same programs and measuring code."""
    if not manifest:
        return
    fix = "The two do not belong together: name another folder, or move that one away"
    stored_set, present_set = manifest["make"], program_set
    pairs = [("measuring", stored_set["measuring"], present_set["measuring"])]
    pairs += [
        (name, stored_set["machines"][name], facts)
        for name, facts in present_set["machines"].items()
        if name in stored_set["machines"]
    ]
    for what, old, new in pairs:
        for name, value in new.items():
            if old.get(name) != value:
                raise WrongUsage(
                    f"its sweep used another {name.removesuffix('_sha256')} ({what}): "
                    f"{str(old.get(name))[:16]}, now {value[:16]}. {fix}",
                    what=format_parameter("out", folder),
                )


def merge_machines(manifest: Mapping[str, Any], program_set: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the make together with the machines of earlier sittings."""
    earlier_machines = manifest.get("make", {}).get("machines", {})
    return {
        "measuring": program_set["measuring"],
        "machines": {**earlier_machines, **program_set["machines"]},
    }


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Locks the data set for writing. Raises WrongUsage if another process holds the lock."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise WrongUsage(
                "another sweep is writing to this folder",
                what=format_parameter("out", folder),
                fix="wait for it, or name another folder",
            ) from None
        yield
    finally:
        os.close(handle)


def store_files(folder: Path, files: Mapping[str, str]) -> None:
    """Writes missing files atomically."""
    for name, content in files.items():
        if not (folder / name).exists():
            new = folder / f".{name}{_NEW_SUFFIX}"
            new.write_bytes(content.encode())
            os.replace(new, folder / name)


def write_manifest(
    data_set: DataSet, program_set: Mapping[str, Any], title: str, origin: Mapping[str, Any]
) -> None:
    """Writes the manifest atomically: title, dimensions, programs and origin."""
    content = {
        "format": FORMAT,
        "title": title,
        "make": program_set,
        **origin,
        "dimensions": list(data_set.dimensions),
        "tables": {
            table: [
                {
                    "name": column.name,
                    "type": str(column.dtype()),
                    "unit": column.unit,
                    "meaning": column.meaning,
                }
                for column in columns
            ]
            for table, columns in reversed(data_set.tables().items())
        },
    }
    new = data_set.folder / f".{MANIFEST}{_NEW_SUFFIX}"
    results.write_json(new, content)
    os.replace(new, data_set.folder / MANIFEST)


# --- reading


def read_manifest(folder: Path) -> dict[str, Any]:
    """Reads the manifest.

    Raises WrongUsage if the folder has no data set of a sweep, or FileRefused for unknown versions.
    """
    if not (folder / MANIFEST).is_file():
        raise WrongUsage(f"{folder}: contains no sweep; name a folder that `./schedlab sweep` made")
    path = folder / MANIFEST
    manifest = read_object(path, {})
    if "dimensions" not in manifest:
        raise WrongUsage(
            f"{folder}: contains a run, not a sweep; name a folder that `./schedlab sweep` made"
        )
    check_format(path, manifest, FORMAT, "a sweep's data set")
    return check_members(path, manifest, _FIELDS)


def _is_program_set(value: Any) -> bool:
    """Returns whether a value has the form of Make.to_dict: facts about measuring and each machine."""
    if not isinstance(value, dict) or not isinstance(value.get("machines"), dict):
        return False
    code_facts = (value.get("measuring"), *value["machines"].values())
    return all(isinstance(fact, dict) for fact in code_facts)


def _is_run_inputs(value: Any) -> bool:
    """Returns whether a value has the form of schedlab.sweep.program_identity.run_inputs."""
    return isinstance(value, dict) and isinstance(value.get("workload"), str)


_FIELDS = {
    "title": text_field(),
    "dimensions": list_field(
        f"names that begin with {TUNABLE_PREFIX} or {CHANGE_PREFIX}, or {SHAPE_COLUMN}",
        lambda value: (
            isinstance(value, str)
            and (value == SHAPE_COLUMN or value.startswith((TUNABLE_PREFIX, CHANGE_PREFIX)))
        ),
        required=True,
    ),
    "make": Field("an object with measuring and machines", _is_program_set, required=True),
    "made_of": mapping_field("what runs are made of", _is_run_inputs),
    "sittings": list_field("objects", lambda value: isinstance(value, dict)),
}


def read_statuses(folder: Path) -> dict[str, str]:
    """Returns the status of each run, by key."""
    statuses: dict[str, str] = {}
    columns = ("key", "status")
    types = {name: pl.String() for name in columns}
    for path in part_files(folder, RUNS):
        table = read_tables([path], types, columns=list(columns)).drop_nulls()
        statuses.update(zip(table["key"].to_list(), table["status"].to_list(), strict=True))
    return statuses


def read_runs_columns(folder: Path) -> list[str]:
    """Returns the names of the runs' columns."""
    return [column.name for column in runs_columns(read_manifest(folder)["dimensions"])]


def read_table(folder: Path, table: str) -> pl.DataFrame:
    """Returns all parts of a table sorted by key, independent of workers and order of execution."""
    manifest = read_manifest(folder)
    columns = {
        RUNS: runs_columns(manifest["dimensions"]),
        GROUPS: GROUPS_TABLE,
        REPORTED: REPORTED_TABLE,
    }[table]
    types = make_frame([], columns).schema
    tables = [
        read_tables([path], types).select(types.names()) for path in part_files(folder, table)
    ]
    key_columns = [column.name for column in columns if column.name in ("key", "group", "name")]
    # Values that earlier versions did not store are null.
    return pl.concat([make_frame([], columns), *tables], how="vertical_relaxed").sort(key_columns)


def read_runs(folder: Path, required: Iterable[str] = ()) -> pl.DataFrame:
    """Returns the table of runs. Raises WrongUsage if it is empty, and FileRefused if a run lacks
    a value in one of the `required` columns.
    """
    runs = read_table(folder, RUNS)
    if runs.is_empty():
        raise WrongUsage(
            f"{folder}: no run has finished yet; continue the sweep with the same command"
        )
    for name in required:
        if runs[name].null_count():
            raise FileRefused(
                f"a run in it has no {name}",
                what=str(folder),
                fix="run the sweep again into another folder",
            )
    return runs

# SPDX-License-Identifier: MIT
"""Tests the data set of a sweep: complete parts, each run once, readable by DuckDB and Polars
as documented.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from schedlab.errors import FileRefused, WrongUsage
from schedlab.machines.outcome import Outcome
from schedlab.runs.worker import Result
from schedlab.sweep import columns, dataset
from schedlab.sweep.load_curves import read_stored_jobs
from schedlab.sweep.origin import MADE_OF_KEY
from schedlab.sweep.rows import RunRows

MAKE = {
    "measuring": {"schedlab": "1", "sources_sha256": "ab"},
    "machines": {"sim": {"simulator_sha256": "cd", "machine_version": "1"}},
}
DIMENSIONS = ("set_slice", "with_tasks_cpu_instance")


def result(key: str, status: str = "success", groups: tuple[str, ...] = ("a", "b")) -> Result:
    if status != "success":
        return Result(key, Outcome(status, "why"), 0.1, RunRows())
    rows = RunRows(
        {"turnaround_mean_ns": 1.5, "finished": 3},
        tuple({"group": name, "share": 0.5} for name in groups),
        ({"name": "ticks", "count": 1, "mean": 2.0, "least": 2.0, "most": 2.0},),
    )
    return Result(key, Outcome("success"), 0.1, rows)


def identity(seed: int = 1) -> Mapping[str, Any]:
    return {"workload": "w.json", "seed": seed, "set_slice": 4, "with_tasks_cpu_instance": "7"}


def filled(folder: Path, *parts: tuple[Result, ...]) -> None:
    with dataset.open_data_set(folder, DIMENSIONS, MAKE, "a title") as sweep_dataset:
        for part in parts:
            sweep_dataset.add([(identity(), result) for result in part])


def keys(folder: Path, table: str = dataset.RUNS) -> list[str]:
    table_keys: list[str] = dataset.read_table(folder, table)["key"].to_list()
    return table_keys


def test_duckdb_and_polars_read_it_as_one_table(tmp_path: Path) -> None:
    # In the second part every nullable value is null.
    filled(tmp_path, (result("b"), result("a")), (result("c", "failed"),))
    runs = f"read_parquet('{tmp_path}/runs/*.parquet')"
    described = duckdb.execute(f"SELECT * FROM {runs}").description
    assert [description[0] for description in described or []] == [
        column.name for column in columns.runs_columns(DIMENSIONS)
    ]
    rows = duckdb.execute(
        f"SELECT key, status, message, set_slice, turnaround_mean_ns FROM {runs} ORDER BY key"
    ).fetchall()
    assert rows == [
        ("a", "success", None, 4, 1.5),
        ("b", "success", None, 4, 1.5),
        ("c", "failed", "why", 4, None),
    ]
    joined = duckdb.execute(
        f"SELECT r.seed, g.group, g.share FROM {runs} r"
        f" JOIN read_parquet('{tmp_path}/groups/*.parquet') g USING (key) WHERE key = 'a'"
    ).fetchall()
    assert sorted(joined) == [(1, "a", 0.5), (1, "b", 0.5)]
    read = pl.read_parquet(tmp_path / "runs" / "*.parquet").sort("key")
    assert read.equals(dataset.read_table(tmp_path, dataset.RUNS))


def test_manifest_describes_columns(tmp_path: Path) -> None:
    filled(tmp_path, (result("a"),))
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert (manifest["format"], manifest["title"], manifest["make"]) == (1, "a title", MAKE)
    for table, path in (("runs", "runs"), ("groups", "groups"), ("told", "told")):
        described_columns = {column["name"]: column for column in manifest["tables"][table]}
        part = pl.read_parquet(tmp_path / path / "*.parquet")
        assert {name: column["type"] for name, column in described_columns.items()} == {
            name: str(dtype) for name, dtype in part.schema.items()
        }
        assert all(column["meaning"] for column in described_columns.values())
        for name, column in described_columns.items():
            if name.endswith("_ns"):
                assert column["unit"] == "ns"


def test_a_run_is_in_it_once(tmp_path: Path) -> None:
    filled(tmp_path, (result("a"), result("b"), result("a")), (result("b"), result("c")))
    filled(tmp_path, (result("c"), result("d")))
    assert keys(tmp_path) == ["a", "b", "c", "d"]
    assert keys(tmp_path, dataset.GROUPS) == ["a", "a", "b", "b", "c", "c", "d", "d"]
    assert keys(tmp_path, dataset.REPORTED) == ["a", "b", "c", "d"]


def test_what_an_interruption_left_is_taken_away(tmp_path: Path) -> None:
    filled(tmp_path, (result("a"),))
    # The groups of a part were written, its runs were not; and a file is half written.
    first_part = tmp_path / "groups" / "part-000001.parquet"
    (tmp_path / "groups" / "part-000002.parquet").write_bytes(first_part.read_bytes())
    (tmp_path / "runs" / ".part-000002.parquet.new").write_bytes(b"PAR1")
    assert pl.read_parquet(tmp_path / "runs" / "*.parquet")["key"].to_list() == ["a"]
    filled(tmp_path, (result("b", groups=("x",)),))
    assert keys(tmp_path) == ["a", "b"]
    groups = dataset.read_table(tmp_path, dataset.GROUPS)
    assert list(zip(groups["key"], groups["group"], strict=True)) == [
        ("a", "a"),
        ("a", "b"),
        ("b", "x"),
    ]
    assert not list(tmp_path.glob("**/*.new"))


def test_failed_runs_are_rows_and_can_be_taken_out(tmp_path: Path) -> None:
    filled(tmp_path, (result("a"), result("b", "hung")), (result("c", "panic"),))
    with dataset.open_data_set(tmp_path, DIMENSIONS, MAKE, "") as sweep_dataset:
        assert sweep_dataset.statuses == {"a": "success", "b": "hung", "c": "panic"}
        assert sweep_dataset.drop_failed() == 2
        sweep_dataset.add([(identity(), result("b"))])
    assert keys(tmp_path) == ["a", "b"]
    assert set(dataset.read_statuses(tmp_path).values()) == {"success"}
    assert json.loads((tmp_path / "manifest.json").read_text())["title"] == "a title"


def test_a_data_set_grows_by_tunables_and_values(tmp_path: Path) -> None:
    """Existing runs get the values they used: mlfq its default; rr, which has no such
    tunable, nothing.
    """
    with dataset.open_data_set(tmp_path, DIMENSIONS, MAKE, "") as sweep_dataset:
        sweep_dataset.add(
            [({**identity(), "policy": name}, result(name)) for name in ("mlfq", "rr")]
        )
    more = (*DIMENSIONS[1:], "set_boost", "with_load")
    values = {"mlfq": {"boost": 480}}
    with dataset.open_data_set(
        tmp_path, more, MAKE, "", tunable_defaults=lambda policy: values.get(policy, {})
    ) as sweep_dataset:
        assert sweep_dataset.dimensions == (*DIMENSIONS, "set_boost", "with_load")
        sweep_dataset.add(
            [({**identity(), "policy": "mlfq", "set_boost": 9, "with_load": "0.5"}, result("z"))]
        )
    runs = dataset.read_table(tmp_path, dataset.RUNS)
    assert runs["set_boost"].to_list() == [480, None, 9]
    assert runs["with_load"].to_list() == [None, None, "0.5"]
    assert runs["set_slice"].to_list() == [4, 4, 4]
    files = f"read_parquet('{tmp_path}/runs/*.parquet')"
    assert [
        description[0] for description in duckdb.execute(f"SELECT * FROM {files}").description or []
    ] == [column.name for column in columns.runs_columns(sweep_dataset.dimensions)]
    with dataset.open_data_set(tmp_path, DIMENSIONS, MAKE, "") as sweep_dataset:
        assert "set_boost" in sweep_dataset.dimensions, "nor does it shrink"


def test_a_data_set_is_of_one_make(tmp_path: Path) -> None:
    filled(tmp_path, (result("a"),))

    def read_refusal(dimensions: tuple[str, ...], make: Mapping[str, Any]) -> str:
        with (
            pytest.raises(WrongUsage) as error,
            dataset.open_data_set(tmp_path, dimensions, make, ""),
        ):
            pass
        return str(error.value)

    other = json.loads(json.dumps(MAKE))
    other["machines"]["sim"]["simulator_sha256"] = "ef"
    assert "used another simulator (sim): cd, now ef" in read_refusal(DIMENSIONS, other)
    other = json.loads(json.dumps(MAKE))
    other["measuring"]["sources_sha256"] = "ef"
    assert "used another sources (measuring): ab, now ef" in read_refusal(DIMENSIONS, other)
    # One more machine, and the dimensions in another order, are no contradiction.
    more = json.loads(json.dumps(MAKE))
    more["machines"] = {"spike": {"machine_version": "1"}}
    with dataset.open_data_set(tmp_path, DIMENSIONS[::-1], more, "") as sweep_dataset:
        assert sweep_dataset.dimensions == DIMENSIONS
    make = json.loads((tmp_path / "manifest.json").read_text())["make"]
    assert set(make["machines"]) == {"sim", "spike"}


def test_other_folders_are_refused(tmp_path: Path) -> None:
    """So is a directory to which another sweep is writing."""
    with (
        dataset.open_data_set(tmp_path / "taken", DIMENSIONS, MAKE, ""),
        pytest.raises(WrongUsage, match="another sweep"),
        dataset.open_data_set(tmp_path / "taken", DIMENSIONS, MAKE, ""),
    ):
        pass
    (tmp_path / "note.txt").write_text("")
    with (
        pytest.raises(WrongUsage, match="something other than a sweep"),
        dataset.open_data_set(tmp_path, DIMENSIONS, MAKE, ""),
    ):
        pass
    with pytest.raises(WrongUsage, match="contains no sweep"):
        dataset.read_table(tmp_path, dataset.RUNS)
    (tmp_path / "manifest.json").write_text('{"format": 1, "status": "success"}')
    with pytest.raises(WrongUsage, match="contains a run, not a sweep"):
        dataset.read_manifest(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": 2, "dimensions": []}')
    with pytest.raises(WrongUsage, match=r"of format 2; schedlab .* reads format 1"):
        dataset.read_manifest(tmp_path)


def test_a_manifest_does_not_choose_which_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "swept"
    filled(path, (result("a"),))
    manifest = json.loads((path / "manifest.json").read_text())
    for name in ("../../private", str(tmp_path / "private")):
        changed = {**manifest, MADE_OF_KEY: {"x": {"workload": "w", "workload_sha256": name}}}
        (path / "manifest.json").write_text(json.dumps(changed))
        with pytest.raises(FileRefused, match="private"):
            read_stored_jobs(path)

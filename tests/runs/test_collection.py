# SPDX-License-Identifier: MIT
"""Tests runs read back from directories, and their tables."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from kept_runs import keep_simulated
from schedlab.errors import WrongUsage
from schedlab.metrics import load_table
from schedlab.metrics.model import TABLES_FILE
from schedlab.runs import collection, results


def test_tables_have_all_runs_in_order(tmp_path: Path) -> None:
    """Each row names its run; a failed run has a row of the summary, without figures."""
    measured = {seed: keep_simulated(tmp_path / f"run-{seed}", seed) for seed in (1, 3)}
    keep_simulated(tmp_path / "run-2", 2, status="panic")
    runs = collection.read_collection([tmp_path])
    assert runs.summary["seed"].to_list() == [1, 2, 3]
    assert runs.summary["status"].to_list() == ["success", "panic", "success"]
    assert runs.summary["elapsed_ns"].to_list() == [
        measured[1].summary["elapsed_ns"][0],
        None,
        measured[3].summary["elapsed_ns"][0],
    ]
    for seed, run_metrics in measured.items():
        seed_processes = runs.processes.filter(pl.col("seed") == seed)
        assert seed_processes["pid"].to_list() == run_metrics.processes["pid"].to_list()
        assert (
            seed_processes["running_ns"].to_list() == run_metrics.processes["running_ns"].to_list()
        )
    assert runs.groups["run"].unique(maintain_order=True).to_list() == [0, 2]


def test_a_part_of_a_collection_has_the_same_rows(tmp_path: Path) -> None:
    """It does not read the files again, which are gone; its rows have its own numbers of runs."""
    for seed in (1, 2, 3, 4):
        keep_simulated(tmp_path / f"run-{seed}", seed, status="hung" if seed == 3 else "success")
    runs = collection.read_collection([tmp_path])
    chosen = [runs.runs[number] for number in (3, 0, 2)]
    expected = collection.Collection(chosen)
    for table in ("summary", "groups", "processes", "cpus", "values"):
        getattr(expected, table)
        getattr(runs, table)
    shutil.rmtree(tmp_path)
    part = runs.of(chosen).of(chosen[1:])
    again = collection.Collection(chosen[1:], expected)
    for table in ("summary", "groups", "processes", "cpus", "values"):
        assert_frame_equal(getattr(runs.of(chosen), table), getattr(expected, table))
        assert_frame_equal(getattr(part, table), getattr(again, table))


def test_a_run_alone_that_failed_has_a_row_too(tmp_path: Path) -> None:
    """This holds although no other run defines the columns."""
    keep_simulated(tmp_path / "run", 1, status="hung")
    runs = collection.read_collection([tmp_path / "run"])
    assert runs.summary["status"].to_list() == ["hung"]
    assert len(runs.processes) == len(runs.groups) == 0


def test_tables_of_different_versions_are_put_together(tmp_path: Path) -> None:
    """A column missing in some tables is null there; the wider type serves all."""
    for seed in (1, 2):
        keep_simulated(tmp_path / f"run-{seed}", seed)
    path = tmp_path / "run-1" / results.METRICS_FOLDER
    older = (
        load_table(path, "summary").drop("yields").with_columns(pl.col("tick_ns").cast(pl.Int32))
    )
    (path / TABLES_FILE).unlink()
    older.with_columns(end_ns=pl.lit(7, pl.Int32)).write_parquet(path / "summary.parquet")
    table = collection.read_collection([tmp_path]).summary
    assert table["end_ns"][0] == 7
    assert table["yields"].is_null().to_list() == [True, False]


def test_links_lead_to_runs(tmp_path: Path) -> None:
    """A run with several links counts once; a circle of links ends."""
    keep_simulated(tmp_path / "kept" / "one", 1)
    keep_simulated(tmp_path / "kept" / "two", 2)
    links = tmp_path / "links"
    links.mkdir()
    for name, target in (("a", "one"), ("b", "two"), ("c", "one")):
        (links / name).symlink_to(tmp_path / "kept" / target)
    (links / "round").symlink_to(links)
    assert [run.seed for run in collection.read_collection([links])] == [1, 2]


def test_setups_are_matched_by_their_facts(tmp_path: Path) -> None:
    """A match takes the same experiment, policy or number of CPUs, or the configuration
    without settings.
    """
    for number, (label, policy, cpus, settings) in enumerate(
        [
            ("first", "rr", 1, {}),
            ("first", "rr", 1, {"slice": 3}),
            ("first", "rr", 2, {}),
            ("first", "mlfq", 1, {}),
            ("second", "rr", 1, {}),
        ]
    ):
        for seed in (2, 1):
            what = {"label": label, "policy": policy, "cpus": cpus, "tunables": settings}
            keep_simulated(tmp_path / f"{number}-{seed}", seed, **what)
    runs = collection.read_collection([tmp_path])
    assert len(runs.select()) == 5
    assert len(runs.select(experiment="first")) == 4
    assert len(runs.select(policy="rr")) == 4
    assert len(runs.select(experiment="first", cpus=1, policy="rr")) == 2
    assert runs.select(experiment="third") == []
    repeated_runs = runs.one("first", "rr", 1)
    assert repeated_runs
    assert repeated_runs.setup.settings == ()
    assert [run.seed for run in repeated_runs.runs] == [1, 2]
    assert runs.one("second", "mlfq", 1) is None


def stored_twice(tmp_path: Path, **second: object) -> list[Path]:
    """Two directories have the run of seed 1, the second with other facts; the first also has
    seed 2.
    """
    facts = {"repeatable": True, "kernel_sha256": "aa", "boot_arguments": "seed=1"}
    for folder, seed, more in (("one", 1, {}), ("one", 2, {}), ("other", 1, second)):
        path = tmp_path / folder / f"run-{seed}"
        keep_simulated(path, seed)
        manifest = results.read_manifest(path)
        results.write_json(path / results.MANIFEST_FILE, {**manifest, **facts, **more})
    return [tmp_path / "one", tmp_path / "other"]


def test_duplicate_run_counts_once(tmp_path: Path) -> None:
    """Otherwise its interval would be too narrow."""
    assert [run.seed for run in collection.read_collection(stored_twice(tmp_path))] == [1, 2]


def test_the_same_run_of_another_kernel_is_refused(tmp_path: Path) -> None:
    """Such runs are compared, not averaged."""
    with pytest.raises(WrongUsage, match="different kernel"):
        collection.read_collection(stored_twice(tmp_path, kernel_sha256="bb"))


@pytest.mark.parametrize("facts", [{"repeatable": False}, {"status": "hung"}])
def test_a_repetition_that_can_differ_counts(tmp_path: Path, facts: dict[str, object]) -> None:
    """The machine is not repeatable, or one of the two runs failed."""
    assert [run.seed for run in collection.read_collection(stored_twice(tmp_path, **facts))] == [
        1,
        2,
        1,
    ]

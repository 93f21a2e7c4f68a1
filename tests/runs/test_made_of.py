# SPDX-License-Identifier: MIT
"""Tests that the inputs of runs and sweeps are kept with them; a run with other inputs is not
a replicate.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import polars as pl
import pytest

from conftest import ROOT, Command
from kept_runs import keep_figures
from schedlab.base.toolchain.versions import MEASURING_SOURCES
from schedlab.commands import sweep_options as options
from schedlab.errors import WrongUsage
from schedlab.runs import collection, results
from schedlab.sweep import best, columns, command, dataset, ranking
from schedlab.sweep.objectives import parse_objective
from schedlab.sweep.program_identity import MEASURING_FILES
from sweeps import WORKLOAD

EDITED = WORKLOAD.replace('"4ticks"', '"40ticks"')
pytestmark = pytest.mark.xdist_group("sweeps")


def test_all_measuring_code_exists() -> None:
    """A moved file would change the measurements, but not the hash."""
    package = ROOT / "python" / "schedlab"
    for pattern in (*MEASURING_SOURCES, *MEASURING_FILES):
        assert list(package.glob(pattern)), pattern


# --- a sweep whose workload file is edited in between


def sweep(folder: Path, text: str, seeds: str) -> None:
    (folder / "w.json").write_text(text)
    description = folder / "sweep.yaml"
    description.write_text("workloads: w.json\npolicies: [rr, mlfq]\n")
    given = options.nodes_of_options([], [], [], [], [], None, {"seeds": seeds})
    command.execute_plan(
        command.plan_sweep(description, given), command.ExecutionOptions(folder / "out", workers=1)
    )


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the directory of a sweep: seeds 1 and 2 of one content, 2 and 3 of another."""
    folder = tmp_path_factory.mktemp("edited")
    sweep(folder, WORKLOAD, "1,2")
    sweep(folder, EDITED, "2,3")
    return folder / "out"


def test_different_contents_of_one_name_are_ranked_separately(edited: Path) -> None:
    objective = parse_objective("turnaround")
    values = ranking.read_values(edited, [objective])
    assert sorted(value.seeds for value in values) == [(1, 2), (2, 3)]
    by_seeds = {value.seeds: value for value in values}
    for seeds, text in (((1, 2), WORKLOAD), ((2, 3), EDITED)):
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        assert by_seeds[seeds].distinction == f"workload file {sha256[:12]}"
    short, long = (ranking.rank_setups(by_seeds[seeds], objective)[0] for seeds in ((1, 2), (2, 3)))
    assert long.value.mean > 3 * short.value.mean
    titles = [str(table.title) for table in best.ranking_tables(edited, [objective], 5)]
    assert len(set(titles)) == 2


def test_all_inputs_of_a_sweep_are_stored(edited: Path) -> None:
    manifest = json.loads((edited / "manifest.json").read_text())
    assert len(manifest["sittings"]) == 2
    for sitting in manifest["sittings"]:
        assert sitting["command_line"][0] == "schedlab"
        assert {"started", "commit", "changed", "python", "schedlab"} <= sitting.keys()
        assert (edited / "made-of" / f"{sitting['sweep_file_sha256']}.yaml").is_file()
    stored_hashes = {facts["workload_sha256"] for facts in manifest["made_of"].values()}
    texts = {(edited / "made-of" / f"{digest}.json").read_text() for digest in stored_hashes}
    assert texts == {WORKLOAD, EDITED}
    runs = dataset.read_table(edited, "runs")
    assert set(runs["made_of"]) == manifest["made_of"].keys()


def test_edited_file_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    warning_flags = []
    for text, seeds in ((WORKLOAD, "1"), (WORKLOAD, "2"), (EDITED, "2")):
        sweep(tmp_path, text, seeds)
        warning_flags.append(
            "its runs are another configuration" in " ".join(capsys.readouterr().err.split())
        )
    assert warning_flags == [False, False, True]


# --- older data sets


def as_before(folder: Path, edited: Path) -> Path:
    """Returns a data set of a schedlab version that did not keep the inputs of runs."""
    manifest = json.loads((edited / "manifest.json").read_text())
    for name in ("made_of", "sittings"):
        del manifest[name]
    (folder / "runs").mkdir(parents=True)
    results.write_json(folder / "manifest.json", manifest)
    for path in dataset.part_files(edited, "runs"):
        pl.read_parquet(path).drop("made_of").write_parquet(folder / "runs" / path.name)
    return folder


def test_a_data_set_that_mixes_two_contents_is_refused_with_a_cure(
    tmp_path: Path, edited: Path, schedlab: Command
) -> None:
    folder = as_before(tmp_path / "old", edited)
    result = schedlab("sweep", "--from", str(folder), "--best", "turnaround")
    assert result.returncode == 2
    words = " ".join(result.stderr.split())
    assert "ran twice with seed 2" in words
    assert "run the sweep again into another folder" in words


def test_old_data_set_is_marked_unknown(tmp_path: Path, edited: Path) -> None:
    folder = as_before(tmp_path / "old", edited)
    for path in dataset.part_files(folder, "runs"):
        pl.read_parquet(path).filter(pl.col("seed") == 1).write_parquet(path)
    (values,) = ranking.read_values(folder, [parse_objective("turnaround")])
    assert values.distinction == "unknown components"
    types = dataset.read_table(folder, "runs").schema
    assert dict(types) == columns.polars_schema(columns.runs_columns(()))


# --- a sweep is not a run


def test_what_reads_runs_alone_names_what_reads_a_sweep(edited: Path, schedlab: Command) -> None:
    result = schedlab("query", str(edited), str(edited), "SELECT 1")
    assert result.returncode == 2
    words = " ".join(result.stderr.split())
    assert f"a sweep, which only `report` and `compare` read: name {edited} there" in words
    assert "Traceback" not in result.stderr


# --- single runs


def keep(path: Path, seed: int, **facts: object) -> Path:
    return keep_figures(path, seed=seed, manifest={"workload": "w.json", **facts})


def experiments(places: list[Path], remeasure: bool = False) -> dict[str, list[int]]:
    collected_runs = collection.read_collection(places, remeasure)
    return {
        setup.experiment: [run.seed for run in repeated_runs.runs]
        for setup, repeated_runs in collected_runs.repeated.items()
    }


@pytest.mark.parametrize(
    ("key", "what", "values"),
    [
        ("workload_sha256", "workload file", ("aa", "bb")),
        ("simulator_sha256", "simulator", ("aa", "bb")),
        ("kernel_sha256", "kernel", ("aa", "bb")),
        ("costs", "costs", ("kernel", "none")),
        ("measuring", "measuring code", ({"sources_sha256": "aa"}, {"sources_sha256": "bb"})),
        ("limit_ns", "limit", (10**9, 10**10)),
        ("machine_version", "machine's version", ("1", "2")),
    ],
)
def test_seeds_of_what_differs_are_not_pooled(
    tmp_path: Path, key: str, what: str, values: tuple[object, object]
) -> None:
    one, other = values
    for seed, value in ((1, one), (2, one), (3, other)):
        keep(tmp_path, seed, **{key: value})
    names = [f"w.json ({what} {results.shorten_entry(key, {key: value})})" for value in values]
    assert experiments([tmp_path]) == {names[0]: [1, 2], names[1]: [3]}
    assert names[0] != names[1]


def test_old_runs_are_marked_unknown(tmp_path: Path) -> None:
    keep(tmp_path, 1)
    facts = {"measuring": {"sources_sha256": "aa"}}
    keep(tmp_path, 2, **facts)
    known = f"w.json (measuring code {results.shorten_entry('measuring', facts)})"
    assert experiments([tmp_path]) == {"w.json (measuring code unknown)": [1], known: [2]}
    assert experiments([tmp_path], remeasure=True) == {"w.json": [1, 2]}


def test_study_uses_one_version(tmp_path: Path) -> None:
    for seed, kernel in ((1, "aa"), (2, "bb")):
        keep_figures(
            tmp_path, experiment="s4-mixed-2", seed=seed, manifest={"kernel_sha256": kernel}
        )
    with pytest.raises(WrongUsage, match="with different kernel; report them separately"):
        collection.read_collection([tmp_path])


def test_a_run_keeps_what_it_is_made_of(schedlab: Command, tmp_path: Path) -> None:
    path, out = tmp_path / "w.json", tmp_path / "out"
    for text, seed in ((WORKLOAD, "1"), (EDITED, "2")):
        path.write_text(text)
        result = schedlab(
            *("run", "--machine", "sim", "--workload", str(path), "--policy", "rr"),
            *("--cpus", "1", "--runs", "1", "--seed", seed, "--out", str(out)),
        )
        assert result.returncode == 0, result.stderr
    runs = collection.read_collection([out])
    assert len(runs.repeated) == 2
    for run, text in zip(sorted(runs, key=lambda run: run.seed), (WORKLOAD, EDITED), strict=True):
        assert (run.folder / "workload.json").read_text() == text
        assert hashlib.sha256(text.encode()).hexdigest()[:12] in run.setup.experiment
        assert run.manifest["command_line"][:2] == ["schedlab", "run"]
        assert run.manifest["measuring"].keys() >= {"sources_sha256", "polars", "numpy"}
        assert run.manifest["python"]

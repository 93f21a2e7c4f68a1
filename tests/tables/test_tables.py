# SPDX-License-Identifier: MIT
"""A run as tables: their columns, what they add up to, SQL over them, notebooks."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import schedlab
from conftest import ROOT
from kept_runs import keep_simulated
from schedlab.commands.cli import cli
from schedlab.documents import table_list
from schedlab.documents.marked import marked
from schedlab.errors import WrongUsage
from schedlab.metrics import compute
from schedlab.tables import DESCRIBED, Run, TraceTables, open_run, query
from schedlab.trace import Kind
from trace_simulator import PATIENT, RANDOMS, Script, load, simulate

SCRIPTS = st.builds(
    Script,
    cpus=st.integers(1, 4),
    steps=st.integers(0, 200),
    marks=st.booleans(),
    pids=st.sampled_from([0, 4]),
    found=st.sampled_from([0, 0, 3]),
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    place = tmp_path_factory.mktemp("runs")
    for seed in (1, 2):
        keep_simulated(place / f"run-{seed}", seed)
    return [open_run(place / f"run-{seed}") for seed in (1, 2)]


def test_tables_are_as_described(runs: list[Run]) -> None:
    for name, described in DESCRIBED.items():
        assert runs[0].table(name).schema == described.schema
    assert marked((ROOT / "docs" / "tables.md").read_text(), table_list.PART) == table_list.block()


@PATIENT
@given(SCRIPTS, RANDOMS)
def test_tables_add_up(script: Script, chance: random.Random) -> None:
    trace = load(simulate(chance, script), script)
    tables = TraceTables(trace)
    found = {name: tables.table(name) for name in DESCRIBED if name != "runs"}
    processes = found["processes"]
    for name, total in (
        ("stays", "running_ns"),
        ("waits", "waiting_ns"),
        ("blocks", "blocked_ns"),
    ):
        assert found[name]["duration_ns"].sum() == processes[total].sum()
    for name, kind in (
        ("switches", Kind.SWITCH),
        ("decisions", Kind.DECISION),
        ("migrations", Kind.MIGRATE),
        ("marks", Kind.MARK),
        ("wakeups", Kind.WAKEUP),
    ):
        assert len(found[name]) == len(trace.rows(kind))
    cpus = found["cpus"]
    assert (cpus["running_ns"] + cpus["idle_ns"] == cpus["end_ns"] - cpus["begin_ns"]).all()
    assert cpus["running_ns"].sum() == found["stays"]["duration_ns"].sum()
    if not script.marks and not trace.has(Kind.MARK):
        measured = compute(trace).processes
        for name in ("running_ns", "waiting_ns", "blocked_ns"):
            assert measured[name].sum() == processes[name].sum()


def test_what_ended_a_stay_is_told(runs: list[Run]) -> None:
    stays = runs[0].stays
    ended = stays.filter(pl.col("left") == "ended")
    exits = runs[0].processes["exit_ns"].drop_nulls()
    assert 0 < len(ended) <= len(exits)
    last = runs[0].cpus["end_ns"].to_list()
    assert stays.filter(pl.col("left").is_null())["end_ns"].is_in(last).all()


def test_sql_over_several_runs(runs: list[Run]) -> None:
    found = query(
        runs, "SELECT run, count(*) AS n, sum(duration_ns) AS ns FROM waits GROUP BY run ORDER BY 1"
    )
    assert found.to_dicts() == [
        {
            "run": run.folder.name,
            "n": len(run.waits),
            "ns": run.waits["duration_ns"].sum(),
        }
        for run in runs
    ]
    joined = query(runs, "SELECT seed, count(*) AS n FROM runs JOIN cpus USING (run) GROUP BY seed")
    assert sorted(joined["seed"].to_list()) == [1, 2]


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELEC 1", "syntax error"),
        ("SELECT * FROM nothing", "nothing"),
        ("SELECT nowhere FROM waits", "nowhere"),
        ("", "expected one query"),
        ("CREATE TABLE mine AS SELECT 1", "expected one query"),
        ("SELECT 1; SELECT 2", "expected one query"),
    ],
)
def test_a_query_that_is_none_is_refused(runs: list[Run], sql: str, why: str) -> None:
    with pytest.raises(WrongUsage, match=why):
        query(runs, sql)


def test_what_a_run_is_not(runs: list[Run], tmp_path: Path) -> None:
    with pytest.raises(AttributeError, match="its tables are runs, processes"):
        _ = runs[0].nothing
    with pytest.raises(WrongUsage, match="holds no run"):
        schedlab.open(tmp_path)
    with pytest.raises(WrongUsage, match="no process is called 'strange'"):
        runs[0].lives("strange")


def asked(*words: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["query", *map(str, words)])
    return done.exit_code, done.output


def test_the_command_writes_what_it_is_told(runs: list[Run], tmp_path: Path) -> None:
    place, sql = (
        runs[0].folder.parent,
        "SELECT run, count(*) AS n FROM waits GROUP BY run ORDER BY 1",
    )
    expected = [{"run": run.folder.name, "n": len(run.waits)} for run in runs]
    status, text = asked(place, sql, "--format", "json")
    assert (status, json.loads(text)) == (0, expected)
    status, text = asked(place, sql, "--format", "csv")
    lines = [f"{row['run']},{row['n']}" for row in expected]
    assert (status, text.split()) == (0, ["run,n", *lines])
    file = tmp_path / "found.parquet"
    assert asked(place, sql, "--format", "parquet", "--out", file)[0] == 0
    assert pl.read_parquet(file).to_dicts() == expected
    status, text = asked(place, sql)
    assert status == 0
    assert "run-1" in text
    assert asked("--tables")[0] == 0


def test_runs_without_a_trace_are_left_out(tmp_path: Path) -> None:
    for seed in (1, 2):
        keep_simulated(tmp_path / f"run-{seed}", seed)
    (tmp_path / "run-2" / "trace.bin").unlink()
    status, text = asked(tmp_path, "SELECT run FROM runs", "--format", "csv")
    assert (status, "run-1" in text, "run-2" in text) == (0, True, False)
    (tmp_path / "run-1" / "trace.bin").unlink()
    done = CliRunner().invoke(cli, ["query", str(tmp_path), "SELECT run FROM runs"])
    assert "no run in it has a trace" in str(done.exception)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["SELECT 1"], "name a run's folder"),
        (["there/is/none", "SELECT 1"], "there is no such folder"),
        ([".", "SELECT 1", "--format", "parquet"], "name a file with --out"),
    ],
)
def test_the_command_refuses(words: list[str], why: str) -> None:
    done = CliRunner().invoke(cli, ["query", *words])
    assert isinstance(done.exception, WrongUsage)
    assert why in str(done.exception)


def in_python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    start = ROOT / "python" / "start.py"
    return subprocess.run(
        [sys.executable, "-I", "-X", "utf8", start, "schedlab", "python", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_tutorial_runs(tmp_path: Path) -> None:
    place = tmp_path / "runs" / "tutorial"
    for name, seed in (("mlfq-2cpu-seed1", 1), ("rr-2cpu-seed1", 2)):
        keep_simulated(place / name, seed, policy=name.partition("-")[0])
    done = in_python(tmp_path, str(ROOT / "docs" / "tutorial.ipynb"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "µs" in done.stdout
    assert done.stdout.rstrip().endswith("True")


def test_a_script_that_fails_says_where(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("import sys\nprint(sys.argv[1:])\nraise KeyError('mine')\n")
    done = in_python(tmp_path, "own.py", "--flag", "1")
    assert (done.returncode, done.stdout) == (1, "['--flag', '1']\n")
    assert 'own.py", line 3' in done.stderr
    (tmp_path / "none.ipynb").write_text("{}")
    done = in_python(tmp_path, "none.ipynb")
    assert done.returncode == 1
    assert "it is no notebook" in done.stderr

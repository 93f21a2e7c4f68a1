# SPDX-License-Identifier: MIT
"""Tests a run as tables: their columns, their sums, SQL queries, notebooks."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from conftest import ROOT, without_progress
from kept_runs import keep_simulated
from schedlab.analysis.tables import TABLE_DESCRIPTIONS, Run, TraceTables, open_run, query
from schedlab.analysis.tables.query import _forbid_other_files
from schedlab.commands.cli import cli
from schedlab.errors import WrongUsage
from schedlab.metrics import compute
from schedlab.trace import Kind
from schedlab_tools.documents import make
from schedlab_tools.documents.marked_parts import marked
from trace_simulator import PATIENT, RANDOMS, Script, load, simulate

SCRIPTS = st.builds(
    Script,
    cpus=st.integers(1, 4),
    steps=st.integers(0, 200),
    marks=st.booleans(),
    pids=st.sampled_from([0, 4]),
    initial_tasks=st.sampled_from([0, 0, 3]),
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    place = tmp_path_factory.mktemp("runs")
    for seed in (1, 2):
        keep_simulated(place / f"run-{seed}", seed)
    return [open_run(place / f"run-{seed}") for seed in (1, 2)]


def test_tables_are_as_described(runs: list[Run]) -> None:
    for name, described in TABLE_DESCRIPTIONS.items():
        assert runs[0].table(name).schema == described.schema
    assert (
        marked((ROOT / "docs" / "tables.md").read_text(), make.TABLES_PART) == make.tables_block()
    )


@PATIENT
@given(SCRIPTS, RANDOMS)
def test_tables_add_up(script: Script, chance: random.Random) -> None:
    trace = load(simulate(chance, script), script)
    tables = TraceTables(trace)
    table_by_name = {name: tables.table(name) for name in TABLE_DESCRIPTIONS if name != "runs"}
    processes = table_by_name["processes"]
    for name, total in (
        ("stays", "running_ns"),
        ("waits", "waiting_ns"),
        ("blocks", "blocked_ns"),
    ):
        assert table_by_name[name]["duration_ns"].sum() == processes[total].sum()
    for name, kind in (
        ("switches", Kind.SWITCH),
        ("decisions", Kind.DECISION),
        ("migrations", Kind.MIGRATE),
        ("marks", Kind.MARK),
        ("wakeups", Kind.WAKEUP),
    ):
        assert len(table_by_name[name]) == len(trace.rows(kind))
    cpus = table_by_name["cpus"]
    assert (cpus["running_ns"] + cpus["idle_ns"] == cpus["end_ns"] - cpus["begin_ns"]).all()
    assert cpus["running_ns"].sum() == table_by_name["stays"]["duration_ns"].sum()
    if not script.marks and not trace.has(Kind.MARK):
        measured = compute(trace).processes
        for name in ("running_ns", "waiting_ns", "blocked_ns"):
            assert measured[name].sum() == processes[name].sum()


def test_sql_over_several_runs(runs: list[Run]) -> None:
    result = query(
        runs, "SELECT run, count(*) AS n, sum(duration_ns) AS ns FROM waits GROUP BY run ORDER BY 1"
    )
    assert result.to_dicts() == [
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
        ("", "expected one statement"),
        ("CREATE TABLE mine AS SELECT 1", "expected one statement"),
        ("SELECT 1; SELECT 2", "expected one statement"),
    ],
)
def test_a_query_that_is_none_is_refused(runs: list[Run], sql: str, why: str) -> None:
    with pytest.raises(WrongUsage, match=why):
        query(runs, sql)


@pytest.mark.parametrize(
    "sql",
    [
        *(
            f"SELECT * FROM {reading}"
            for reading in (
                "'{}/secret.csv'", "read_csv('{}/secret.csv')", "read_text('/etc/passwd')",
                "read_text('{}/../secret.csv')", "glob('/etc/*')", "sniff_csv('{}/secret.csv')",
                "parquet_metadata('{}/secret.csv')", "query('FROM read_text(''/etc/passwd'')')",
                "read_parquet('https://elsewhere.example/x.parquet')", "duckdb_secrets()", "runs_of_python",
            )
        ),
        *(f"{change}; SELECT 1" for change in ("LOAD httpfs", "SET enable_external_access = true")),
        "COPY (SELECT 1) TO '{}/evil.csv'",
        "EXPORT DATABASE '{}/evil'",
        "ATTACH '{}/evil.db'",
        "INSTALL httpfs",
        "SET lock_configuration = false",
        "PRAGMA enable_external_access = true",
        "CALL enable_profiling()",
    ],
)  # fmt: skip
def test_a_query_reaches_the_tables_alone(sql: str, runs: list[Run], tmp_path: Path) -> None:
    """The query may come from a page or from a language model."""
    (tmp_path / "secret.csv").write_text("a\n1\n")
    runs_of_python = pl.DataFrame({"a": [1]})
    assert len(runs_of_python) == 1
    with pytest.raises(WrongUsage):
        query(runs, sql.format(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


def test_the_settings_cannot_be_changed_back(tmp_path: Path) -> None:
    """This includes statements that do not return a table."""
    connection = duckdb.connect()
    _forbid_other_files(connection, tmp_path)
    for statement in (
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "RESET allowed_directories",
        "LOAD httpfs",
        f"ATTACH '{tmp_path.parent}/evil.db'",
        f"COPY (SELECT 1) TO '{tmp_path.parent}/evil.csv'",
    ):
        with pytest.raises(duckdb.Error):
            connection.execute(statement)


def test_files_are_read_only_with_permission(runs: list[Run], tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("a\n7\n")
    sql = f"SELECT a, count(*) AS n FROM '{tmp_path}/own.csv', runs GROUP BY a"
    assert query(runs, sql, allow_files=True).to_dicts() == [{"a": 7, "n": 2}]
    status, text = query_output(runs[0].folder, sql, "--allow-files", "--format", "csv")
    assert (status, text.split()) == (0, ["a,n", "7,1"])
    result = CliRunner().invoke(cli, ["query", str(runs[0].folder), sql])
    assert isinstance(result.exception, WrongUsage)


def test_the_documents_queries_work(
    runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They run in a temporary directory with any name."""
    text = (ROOT / "docs" / "tables.md").read_text()
    queries = re.findall(r'schedlab query \S+ "((?:[^"\\]|\\.)+)"', text)
    assert len(queries) >= 3
    strange = tmp_path / "o'brien [x]"
    strange.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(strange))
    for sql in queries:
        assert query(runs, sql.replace("\\", "")).width > 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1.5", 1.5),
        ("1::HUGEINT", 1),
        ("true", True),
        ("NULL", None),
        ("'NaN'::DOUBLE", None),
        ("INTERVAL 1 DAY", "1 day"),
        ("DATE '2020-01-02'", "2020-01-02"),
        ("[1, 2]", "[1, 2]"),
        ("[1.5::DECIMAL(5, 1)]", "[1.5]"),
        ("{'a': INTERVAL 1 DAY}", "{'a': 1 day}"),
        ("'a'::BLOB", "a"),
        ("MAP {'a': 1}", "{a=1}"),
    ],
)
def test_values_of_any_type_are_shown(value: str, expected: object, runs: list[Run]) -> None:
    place, sql = runs[0].folder, f'SELECT {value} AS "a ""b""", 2 AS c'
    status, text = query_output(place, sql, "--format", "json")
    assert (status, json.loads(text)) == (0, [{'a "b"': expected, "c": 2}])
    assert [query_output(place, sql)[0], query_output(place, sql, "--format", "csv")[0]] == [0, 0]


def query_output(*words: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["query", *map(str, words)])
    return result.exit_code, result.output


def test_command_writes_the_requested_files(runs: list[Run], tmp_path: Path) -> None:
    place, sql = (
        runs[0].folder.parent,
        "SELECT run, count(*) AS n FROM waits GROUP BY run ORDER BY 1",
    )
    expected = [{"run": run.folder.name, "n": len(run.waits)} for run in runs]
    status, text = query_output(place, sql, "--format", "json")
    assert (status, json.loads(text)) == (0, expected)
    status, text = query_output(place, sql, "--format", "csv")
    lines = [f"{row['run']},{row['n']}" for row in expected]
    assert (status, text.split()) == (0, ["run,n", *lines])
    file = tmp_path / "found.parquet"
    assert query_output(place, sql, "--format", "parquet", "--out", file)[0] == 0
    assert pl.read_parquet(file).to_dicts() == expected
    status, text = query_output(place, sql)
    assert status == 0
    shown = [line.split() for line in text.splitlines()]
    assert all([row["run"], f"{row['n']:,}"] in shown for row in expected)
    status, text = query_output("--tables")
    assert status == 0
    assert {"runs:", "tunables", "waits:"} <= set(text.split())


def in_python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    start = ROOT / "python" / "start.py"
    return subprocess.run(
        [sys.executable, "-I", "-X", "utf8", start, "schedlab", "python", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_tutorial_runs(tmp_path: Path) -> None:
    result = in_python(tmp_path, str(ROOT / "docs" / "tutorial.ipynb"))
    assert (result.returncode, without_progress(result.stderr)) == (0, "")
    for shown in ("µs", "turnaround, mean", "p99_us", "stride"):
        assert shown in result.stdout

# SPDX-License-Identifier: MIT
"""Tests `./schedlab runs`: which runs are listed, shown and removed, and which are never
removed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from conftest import Command
from schedlab.commands.cli import cli
from schedlab.errors import SchedlabError
from schedlab.sweep import dataset

RUN = "rr-1cpu-seed1"


@pytest.fixture(scope="module")
def made(schedlab: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made") / "mine"
    arguments = ("--machine", "sim", "--workload", "lottery-low", "--policy", "rr", "--cpus", "1-2")
    assert schedlab("run", *arguments, "-q", "--out", str(out)).returncode == 0
    return out


@pytest.fixture
def mine(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "runs" / "mine"))


def call(*words: object) -> Result:
    return CliRunner().invoke(cli, ["runs", *map(str, words)])


def listed(place: Path) -> dict[str, int]:
    return {
        os.path.basename(row["folder"]): row["runs"]
        for row in json.loads(call("ls", place, "--json").stdout)
    }


def test_runs_are_listed_and_shown(mine: Path) -> None:
    assert listed(mine.parent) == {"mine": 2}
    assert listed(mine) == {RUN: 1, "rr-2cpu-seed1": 1}
    assert listed(mine / RUN) == {RUN: 1}
    assert call("ls", mine).exit_code == 0
    shown = json.loads(call("show", mine / RUN, "--json").stdout)
    assert [run["manifest"]["policy"] for run in shown] == ["rr"]
    assert shown[0]["metrics"]
    assert "turnaround" in call("show", mine).stdout


def test_runs_are_removed_after_consent(mine: Path) -> None:
    refused = call("rm", mine)
    assert isinstance(refused.exception, SchedlabError)
    assert listed(mine.parent) == {"mine": 2}
    assert call("rm", mine / RUN, "--yes").exit_code == 0
    assert listed(mine) == {"rr-2cpu-seed1": 1}
    assert call("rm", mine, mine / "rr-2cpu-seed1", "--yes").exit_code == 0
    assert not mine.exists()


def test_sweeps_are_listed_and_removed_but_other_files_stay(
    schedlab: Command, tmp_path: Path
) -> None:
    place = tmp_path / "sweeps" / "mine"
    arguments = ("--workload", "sleeper", "--policy", "rr", "--cpus", "1", "--seeds", "1..2")
    result = schedlab("sweep", *arguments, "--keep-traces", "-q", "--out", str(place))
    assert result.returncode == 0, result.stderr
    (row,) = json.loads(call("ls", place.parent, "--json").stdout)
    assert (row["sweeps"], row["runs"], row["failed"]) == (1, 2, 0)
    (place / "report").mkdir()
    (place / "report" / "index.html").write_text("mine")
    (place / "runs" / "notes.txt").write_text("mine")
    changed(next((place / "traces").iterdir()))
    with dataset._lock(place):
        assert "another sweep is writing" in call("rm", place, "--yes").stderr
    assert call("rm", place.parent, "--yes").stdout == "1 sweep removed\n"
    file_names = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}
    assert {name for name in file_names if not name.startswith("traces/")} == {
        "report/index.html",
        "runs/notes.txt",
    }
    assert len({name.split("/")[1] for name in file_names if name.startswith("traces/")}) == 1


def test_a_folder_that_is_named_twice_is_removed_once(mine: Path) -> None:
    again = mine.parent / ".." / mine.parent.name / mine.name
    result = call("rm", mine, mine, again, again / RUN, "--yes")
    assert (result.exit_code, "2 runs removed" in result.stdout) == (0, True)
    assert not mine.exists()


def changed(run: Path) -> None:
    (run / "console.log").write_text("mine")


def added(run: Path) -> None:
    (run / "notes.txt").write_text("mine")


def linked(run: Path) -> None:
    (run / "trace.bin").unlink()
    (run / "trace.bin").symlink_to(run.parents[2] / "precious" / "file")


def linked_folder(run: Path) -> None:
    shutil.rmtree(run / "metrics")
    (run / "metrics").symlink_to(run.parents[2] / "precious")


def without_list(run: Path) -> None:
    (run / "made.sha256").unlink()


def with_a_pipe(run: Path) -> None:
    (run / "made.sha256").unlink()
    os.mkfifo(run / "made.sha256")


def not_ours(run: Path) -> None:
    shutil.rmtree(run)
    run.mkdir()
    (run / "manifest.json").write_text('{"name": "a web page"}')


def through_a_link(run: Path) -> None:
    run.rename(run.parents[2] / "precious" / "run")
    run.symlink_to(run.parents[2] / "precious" / "run")


@pytest.mark.parametrize(
    "harm",
    [changed, added, linked, linked_folder, without_list, with_a_pipe, not_ours, through_a_link],
)
def test_what_is_not_as_schedlab_made_it_stays(
    mine: Path, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("precious")
    harm(mine / RUN)
    files = sorted((mine / RUN).rglob("*"))
    result = call("rm", mine / RUN, "--yes")
    assert isinstance(result.exception, SchedlabError)
    assert sorted((mine / RUN).rglob("*")) == files
    call("rm", mine, "--yes")  # removes the other run
    assert [entry.name for entry in mine.iterdir()] == [RUN]
    assert sorted((mine / RUN).rglob("*")) == files
    assert (precious / "file").read_text() == "precious"

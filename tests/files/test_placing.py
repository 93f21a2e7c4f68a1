# SPDX-License-Identifier: MIT
"""Tests that only unchanged files that schedlab made are replaced or removed."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

import trace_simulator
from conftest import Command
from schedlab.base.files import replacement
from schedlab.base.files.atomic import file_hash
from schedlab.errors import FileRefused, WrongUsage
from schedlab.report.files import check_report_path, report_folder
from schedlab.runs import results


def tree(folder: Path) -> dict[str, str]:
    """Returns the tree's content: links by target, files by hash."""
    return {
        str(path.relative_to(folder)): os.readlink(path)
        if path.is_symlink()
        else file_hash(path)
        if path.is_file()
        else ""
        for path in folder.rglob("*")
    }


def made(path: Path) -> None:
    with report_folder(path) as folder:
        (folder / "report.json").write_text("{}")
        (folder / "files").mkdir()
        (folder / "files" / "a name\twith blanks.csv").write_text("1\n")


Change = Callable[[Path], object]
CHANGES: dict[str, Change] = {
    "a file more": lambda place: (place / "thesis.tex").write_text("years of work"),
    "a file more, deep": lambda place: (place / "files" / "notes").write_text("mine"),
    "a hidden file": lambda place: (place / ".notes").write_text("mine"),
    "a changed file": lambda place: (place / "report.json").write_text('{"mine": 1}'),
    "a link to a file": lambda place: (place / "link").symlink_to("report.json"),
    "a link to a folder": lambda place: (place / "link").symlink_to("files"),
    "a link that leads nowhere": lambda place: (place / "link").symlink_to("nothing"),
    "a link in a file's stead": lambda place: (
        (place / "report.json").rename(place.parent / "moved").parent / "out" / "report.json"
    ).symlink_to("../moved"),
    "no list": lambda place: (place / replacement.LIST_NAME).unlink(),
    "a list that is no text": lambda place: (place / replacement.LIST_NAME).write_bytes(b"\xff\0"),
    "a list of other hashes": lambda place: (place / replacement.LIST_NAME).write_text(
        f"{0:064}  report.json\n"
    ),
    "a named pipe": lambda place: os.mkfifo(place / "pipe"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_report_with_anything_of_somebody_elses_is_not_replaced(
    tmp_path: Path, change: Change
) -> None:
    path = tmp_path / "out"
    made(path)
    made(path)  # an unchanged report is replaced
    change(path)
    before = tree(tmp_path)
    with pytest.raises(WrongUsage, match=r"out=.*: the folder would be replaced, but"):
        check_report_path(path)
    with pytest.raises(WrongUsage), report_folder(path):
        raise AssertionError("nothing may be done before")
    assert tree(tmp_path) == before


@pytest.mark.parametrize("change", [CHANGES["a file more"], CHANGES["a changed file"]])
def test_what_was_changed_while_a_report_was_made_stays(tmp_path: Path, change: Change) -> None:
    place = tmp_path / "out"
    made(place)
    before = []

    def make() -> None:
        with report_folder(place) as folder:
            (folder / "report.json").touch()
            change(place)
            before.extend(sorted(path.name for path in place.rglob("*")))

    with pytest.raises(WrongUsage):
        make()
    assert sorted(path.name for path in place.rglob("*")) == before
    assert not list(tmp_path.glob(f"{results.UNFINISHED_PREFIX}*"))


def test_of_a_link_the_folder_that_it_leads_to_is_replaced(tmp_path: Path) -> None:
    made(tmp_path / "there")
    (tmp_path / "link").symlink_to("there")
    made(tmp_path / "link")
    assert os.readlink(tmp_path / "link") == "there"
    assert (tmp_path / "there" / "report.json").exists()
    (tmp_path / "lost").symlink_to("nothing")
    with pytest.raises(WrongUsage, match="a file"):
        check_report_path(tmp_path / "lost")


# --- runs

MANIFEST = {
    "policy": "rr",
    "machine": "spike",
    "workload": "mixed",
    "tunables": {},
    "cpus": 1,
    "seed": 1,
    "tick_ns": 1_000_000,
}
"""Fields that every manifest has."""


def run(path: Path, status: str) -> None:
    with results.create_run_folder(path) as folder:
        results.write_json(folder / results.MANIFEST_FILE, {**MANIFEST, "status": status})
        (folder / "trace.bin").write_text(status)


def test_failed_run_is_replaced_only_by_the_same_run(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run(path, "failed")
    run(path, "failed")
    (path / "notes").write_text("why it failed")
    before = tree(path)
    with pytest.raises(OSError, match="not empty"):
        run(path, "success")
    assert tree(tmp_path / "run") == before
    (path / "notes").unlink()
    run(path, "success")
    with pytest.raises(OSError, match="not empty"):
        run(path, "success")


def test_folder_resembling_a_failed_run_stays(tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.mkdir()
    for manifest in ('{"status": "failed"}', "{", "[]"):
        (path / results.MANIFEST_FILE).write_text(manifest)
        with pytest.raises(OSError, match="not empty"):
            run(path, "success")
        assert (path / results.MANIFEST_FILE).read_text() == manifest


# --- files


def test_existing_file_is_not_replaced(tmp_path: Path) -> None:
    mine = tmp_path / "mine.csv"
    replacement.check_file("-o", mine)
    mine.write_text("mine")
    (tmp_path / "lost").symlink_to("nothing")
    (tmp_path / "folder").mkdir()
    for path, why in (
        (mine, "the file exists and is not replaced"),
        (tmp_path / "lost", "the file exists and is not replaced"),
        (tmp_path / "folder", "a folder; name the file"),
        (tmp_path / "none" / "file", "the folder .*none does not exist; create it first"),
    ):
        with pytest.raises(WrongUsage, match=why):
            replacement.check_file("-o", path)
    replacement.add_to_list(mine)  # as if schedlab had made and named the file
    replacement.check_file("-o", mine, has_default_name=True)
    with pytest.raises(WrongUsage, match="the file exists"):
        replacement.check_file("-o", mine)
    mine.write_text("changed")
    with pytest.raises(WrongUsage, match="the file exists"):
        replacement.check_file("-o", mine, has_default_name=True)


def test_an_export_replaces_its_like_in_the_runs_folder_alone(
    tmp_path: Path, schedlab: Command
) -> None:
    with results.create_run_folder(tmp_path / "run") as folder:
        results.write_json(folder / results.MANIFEST_FILE, {"status": "success"})
        script = trace_simulator.Script()
        records = trace_simulator.simulate(random.Random(1), script)
        trace_simulator.write(folder / "trace.bin", records, script)
    export = ("trace", str(tmp_path / "run"), "--format", "csv")
    assert [schedlab(*export).returncode for _ in range(2)] == [0, 0]
    (tmp_path / "run" / "trace.csv").write_text("my notes")
    for words in (export, (*export, "-o", str(tmp_path / "run" / "trace.bin"))):
        before = tree(tmp_path)
        result = schedlab(*words)
        assert (result.returncode, result.stdout) == (2, "")
        assert "not replaced" in " ".join(result.stderr.split())
        assert tree(tmp_path) == before


@pytest.mark.parametrize("name", ["", ".", "..", "/etc", "a/b", "../a", "a\0", "\u00fc" * 128])
def test_a_name_from_a_file_is_of_one_entry(name: str, tmp_path: Path) -> None:
    with pytest.raises(FileRefused):
        replacement.path_in_folder(tmp_path, name)
    assert replacement.path_in_folder(tmp_path, "..a b\n\udcff").parent == tmp_path

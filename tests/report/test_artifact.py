# SPDX-License-Identifier: MIT
"""Tests the artifact file with the sources of all figures: figures are rebuilt from it alone,
and differences are reported.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from conftest import Command
from schedlab.base.files.archive import write_archive
from schedlab.base.toolchain import versions
from schedlab.errors import FileRefused
from schedlab.report import artifact_check
from schedlab.report.artifact import write_artifact
from schedlab.runs import collection

pytestmark = pytest.mark.xdist_group("artifact")
FILE = {"tasks": {"a": {"loop": 8, "run": 900, "sleep": {"from": "1ms", "to": "3ms"}}}}
NAME = "metrics-own-json-sim-1ms"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, schedlab: Command) -> Path:
    """Returns runs of a file that has been deleted since, and of another file with the same
    name.
    """
    folder = tmp_path_factory.mktemp("runs")
    for name, policies, content in (
        ("one", "rr,lottery", FILE),
        ("two", "rr", {"tasks": {"b": {"loop": 3, "run": 500}}}),
    ):
        path = folder / name
        path.mkdir()
        (path / "own.json").write_text(json.dumps(content))
        what = ("--workload", "own.json", "--policy", policies, "--runs", "2", "--cpus", "1")
        result = schedlab("run", "--machine", "sim", *what, "--out", str(path / "runs"), cwd=path)
        assert result.returncode == 0, result.stderr
        (path / "own.json").unlink()
    return folder


@pytest.fixture(scope="module")
def made(runs: Path, schedlab: Command) -> Path:
    """Returns the artifact of all figures; one run's machine is not repeatable."""
    doubtful = runs / "two/runs/rr-1cpu-seed1"
    change(doubtful, repeatable=False)
    file = runs / "all.zip"
    result = schedlab("report", str(runs), "--out", str(runs / "report"), "--artifact", str(file))
    assert result.returncode == 0, result.stderr
    assert f"to check it, run ./schedlab verify {file}" in result.stdout
    return file


def change(run: Path, **members: Any) -> None:
    path = run / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **members}))


def changed(file: Path, to: Path, name: str, content: bytes | None) -> Path:
    """Returns the artifact with the content of one file replaced; None: removed."""
    with zipfile.ZipFile(file) as packed:
        files: dict[str, bytes | Path] = {
            file_name: packed.read(file_name) for file_name in packed.namelist()
        }
    if content is None:
        del files[name]
    else:
        files[name] = content
    write_archive(to, files)
    return to


def listing_of(file: Path) -> dict[str, Any]:
    with zipfile.ZipFile(file) as packed:
        return dict(json.loads(packed.read("artifact.json")))


def test_it_holds_what_the_figures_are_made_of(made: Path, runs: Path) -> None:
    listing = listing_of(made)
    with zipfile.ZipFile(made) as packed:
        names = set(packed.namelist())
        assert packed.read("runs/1/workload.json").decode() == json.dumps(FILE)
        readme = packed.read("README.md").decode()
    assert {"README.md", "schedlab.bib", "artifact.json", f"figures/{NAME}.csv"} <= names
    assert "./schedlab verify all.zip" in readme
    assert f"git checkout {listing['commit']}" in readme
    assert "1 of the runs cannot be repeated" in readme
    assert len(listing["runs"]) == 6
    original_runs = [run for run in listing["runs"] if not run["repeated"]]
    assert [f"{run['folder']}/trace.bin" in names for run in original_runs] == [True]
    assert sum(name.endswith("trace.bin") for name in names) == 1
    assert not any(str(runs) in name for name in names)


def test_the_same_runs_make_the_same_bytes(made: Path, runs: Path, tmp_path: Path) -> None:
    again = tmp_path / made.name
    write_artifact(again, collection.read_collection([runs]), runs / "report", ())
    assert again.read_bytes() == made.read_bytes()


def test_it_is_proved_elsewhere_byte_for_byte(
    made: Path, schedlab: Command, tmp_path: Path
) -> None:
    file = Path(shutil.copy(made, tmp_path))
    result = schedlab("verify", str(file), "--out", str(tmp_path / "out"))
    assert result.returncode == 0, result.stderr
    count = len(listing_of(made)["figures"])
    assert result.stdout.splitlines()[:2] == [
        "5 of 5 runs are the same, byte for byte.",
        f"{count} of {count} figures and tables have the same data, byte for byte.",
    ]
    assert (tmp_path / f"out/figures/{NAME}.csv").is_file()
    assert list((tmp_path / "out/figures").glob("*.svg"))


def test_changed_results_are_reported_with_the_reason(
    made: Path, schedlab: Command, tmp_path: Path
) -> None:
    """A trace differs, and a figure's data with its hash; one was made at another commit."""
    listing = listing_of(made)
    with zipfile.ZipFile(made) as packed:
        data = packed.read(f"figures/{NAME}.csv").replace(b"lottery", b"lotterx", 1)
    listing["commit"] = "0" * 40
    listing["runs"][0]["trace_sha256"] = "0" * 64
    listing["figures"] = [figure for figure in listing["figures"] if figure["name"] == NAME]
    for figure in listing["figures"]:
        figure["sha256"] = hashlib.sha256(data).hexdigest()
    file = changed(made, tmp_path / "a.zip", f"figures/{NAME}.csv", data)
    file = changed(file, tmp_path / "b.zip", "artifact.json", json.dumps(listing).encode())
    out = tmp_path / "out"
    result = schedlab("verify", str(file), "--out", str(out), "--json")
    assert result.returncode == 1
    output = json.loads(result.stdout)
    assert [run["folder"] for run in output["runs"] if not run["same"]] == ["runs/1"]
    assert [figure["name"] for figure in output["figures"] if not figure["same"]] == [NAME]
    assert "it was made at commit 0000" in result.stderr
    (mismatch,) = [
        candidate for candidate in held_again(file, output, tmp_path) if not candidate.same
    ]
    assert "lotterx" in mismatch.difference
    assert "lottery" in mismatch.difference


def held_again(
    file: Path, output: dict[str, Any], scratch: Path
) -> list[artifact_check.FigureCheck]:
    with artifact_check.unpacked_artifact(file) as artifact:
        again = {artifact.folder / run["folder"]: Path(run["again"]) for run in output["runs"]}
        return artifact_check.compare_figures(artifact, again, scratch / "held")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("artifact.json", None, "not an artifact of a report"),
        ("artifact.json", b"{", "not valid JSON"),
        ("artifact.json", b'{"format": 2, "schedlab": "9.9"}', "of format 2; .*use schedlab 9.9"),
        (
            "artifact.json",
            b'{"figures": [], "runs": [{"folder": "../x"}]}',
            "expected a list of runs",
        ),
        ("artifact.json", b'{"figures": [{"name": "../x"}], "runs": []}', "a list of figures"),
        ("runs/2/manifest.json", None, "runs/2 is listed but is not a run"),
        (f"figures/{NAME}.csv", b"x", "damaged or changed"),
        (f"figures/{NAME}.csv", None, "damaged or changed"),
    ],
)
def test_what_is_no_artifact_is_refused(
    name: str, content: bytes | None, words: str, made: Path, tmp_path: Path
) -> None:
    file = changed(made, tmp_path / "bad.zip", name, content)
    with pytest.raises(FileRefused, match=words), artifact_check.unpacked_artifact(file):
        pass


def test_a_command_refuses_it_with_one_line_and_status_2(
    schedlab: Command, made: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "climbs.zip", "w") as packed:
        packed.writestr("../climbed", "x")
    result = schedlab("verify", str(tmp_path / "climbs.zip"))
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1), result.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"climbs.zip"}
    manifest = json.dumps({**json.loads(read(made, "runs/1/manifest.json")), "policy": "none-such"})
    file = changed(made, tmp_path / "policy.zip", "runs/1/manifest.json", manifest.encode())
    result = schedlab("verify", str(file), "--out", str(tmp_path / "out"))
    assert result.returncode == 2
    assert "none-such" in result.stderr
    assert not (tmp_path / "out").exists()


def read(file: Path, name: str) -> bytes:
    with zipfile.ZipFile(file) as packed:
        return packed.read(name)


def test_changes_are_a_patch_that_another_checkout_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The patch includes new files; the repository's index and objects stay untouched."""
    one, other = tmp_path / "one", tmp_path / "other"
    for name in versions.AFFECTING_SOURCES:
        (one / name).mkdir(parents=True)
        (one / name / "x").write_text("x\n")
    git = ("git", "-c", "user.name=x", "-c", "user.email=x@x", "-C")
    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "-m", "x")):
        subprocess.run([*git, str(one), *words], check=True)
    subprocess.run(["git", "clone", "--quiet", str(one), str(other)], check=True)
    monkeypatch.setattr(versions, "ROOT", one)
    assert versions.uncommitted_patch() == b""
    (one / "policies/mine.c").write_text("int x;\n")
    (one / "kernel/x").write_bytes(b"\0\xff")
    (one / "notes").write_text("none of the sources")
    before = sorted(one.rglob(".git/**/*"))
    patch, commit = versions.uncommitted_patch(), versions.commit_facts()
    assert sorted(one.rglob(".git/**/*")) == before
    subprocess.run(["git", "-C", str(other), "apply"], input=patch, check=True)
    assert (other / "policies/mine.c").read_text() == "int x;\n"
    assert (other / "kernel/x").read_bytes() == b"\0\xff"
    assert not (other / "notes").exists()
    monkeypatch.setattr(versions, "ROOT", other)
    assert versions.commit_facts() == commit
    assert len(commit["changes_sha256"]) == 64

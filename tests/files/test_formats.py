# SPDX-License-Identifier: MIT
"""Tests that files of another release are read, or that the message names a release that reads
them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kept_runs import MANIFEST
from schedlab import __version__
from schedlab.analysis.gate import baseline
from schedlab.errors import FileRefused
from schedlab.report import artifact
from schedlab.runs import collection, results
from schedlab.sweep import columns
from schedlab.trace.format import VERSION
from schedlab.workload import costs
from schedlab.workload.shapes import reading as shapes

ROOT = Path(__file__).resolve().parents[2]


def manifest(path: Path, **members: object) -> Path:
    path.mkdir(parents=True)
    (path / "manifest.json").write_text(json.dumps({**MANIFEST, **members}))
    return path


@pytest.mark.parametrize("release", ["0.0.9", "0.1.0", "3.0.0"])
def test_a_manifest_of_a_known_format_is_read_whatever_release_made_it(
    release: str, tmp_path: Path
) -> None:
    run = manifest(tmp_path / "run", format=1, schedlab=release)
    assert results.read_manifest(run)["schedlab"] == release
    assert len(collection.read_collection([tmp_path])) == 1


@pytest.mark.parametrize(
    ("release", "number", "words"),
    [
        ("0.0.9", 0, "of format 0; .* reads format 1: use schedlab 0.0.9, which made it,"),
        ("3.0.0", 2, "of format 2; .* reads format 1: use schedlab 3.0.0, which made it,"),
        (None, 2, "of format 2; .*: use the release that made it to read it"),
        (["x"], "y" * 99, 'of format "y{39}; .*: use the release that made it to read it'),
        ("\n\x1b" + "z" * 99, True, r"of format true; .*: use schedlab \\n\\u001bz{32}, which"),
    ],
)
def test_of_another_format_the_message_names_the_release_that_reads_it(
    release: object, number: object, words: str, tmp_path: Path
) -> None:
    run = manifest(tmp_path / "run", format=number, schedlab=release)
    for read in (
        lambda: collection.read_collection([tmp_path]),
        lambda: results.read_manifest(run),
    ):
        with pytest.raises(FileRefused, match=words) as caught:
            read()
        assert "\n" not in str(caught.value)


def test_the_release_is_the_same_wherever_it_is_named() -> None:
    """docs/contributing.md describes how to make a release."""
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == __version__  # type: ignore[index]
    wheel = (ROOT / "pyproject.toml").read_text()
    assert re.search(r'^version = "(.+)"$', wheel, re.MULTILINE)[1] == __version__  # type: ignore[index]
    released = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert released[0] == __version__


def test_the_formats_of_this_release_are_listed() -> None:
    newest = (ROOT / "CHANGELOG.md").read_text().partition("\n## ")[2].partition("\n## ")[0]
    formats = {
        "run": results.FORMAT, "trace": VERSION, "sweep": columns.FORMAT, "costs": costs.FORMAT,
        "artifact": artifact.ARTIFACT_FORMAT, "shape": shapes.FORMAT, "baseline": baseline.BASELINE_FORMAT,
    }  # fmt: skip
    format_list = ", ".join(f"{name} {number}" for name, number in formats.items())
    assert f"Formats: {format_list}." in " ".join(newest.split())

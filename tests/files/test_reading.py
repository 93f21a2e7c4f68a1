# SPDX-License-Identifier: MIT
"""Tests that a command ends at once with one line and status 2 if its file is something else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from schedlab.base.files.archive import unpack
from schedlab.base.files.reading import read_bytes, read_text
from schedlab.courses.grading.lab import read_tests
from schedlab.courses.scoring.candidate import _source_text
from schedlab.errors import FileRefused, SchedlabError
from schedlab.monitor.lesson import read_lesson
from schedlab.sweep.description_reader import read_search_budget
from schedlab.workload import costs, workload_files
from schedlab.workload.shapes import reading as shapes

READERS: dict[str, Callable[[Path], object]] = {
    "workload": workload_files.read_workload_file,
    "shape": shapes.read_shape,
    "costs": costs.read_profile,
    "sweep": read_search_budget,
    "tests": read_tests,
    "lesson": lambda path: read_lesson(str(path)),
    "source": _source_text,
    "archive": lambda path: unpack(path, path.parent / "unpacked"),
}


@pytest.fixture(params=["pipe", "device", "folder", "nothing", "link to a device"])
def no_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "x.json"
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "folder":
        path.mkdir()
    elif request.param == "link to a device":
        path.symlink_to("/dev/zero")
    return Path("/dev/zero") if request.param == "device" else path


@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_file_is_refused(reader: str, no_file: Path) -> None:
    with pytest.raises(SchedlabError) as refused:
        READERS[reader](no_file)
    assert refused.value.exit_status == 2
    assert "\n" not in str(refused.value)
    assert str(no_file) in str(refused.value)


def test_a_file_has_an_end(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(FileRefused, match="larger than 64 MiB"):
        read_bytes(path)
    path.write_bytes(b"\xff")
    with pytest.raises(FileRefused, match="UTF-8"):
        read_text(path)

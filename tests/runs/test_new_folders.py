# SPDX-License-Identifier: MIT
"""Tests new directories in runs/."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from schedlab import paths

TAKES_TWO = """
import pathlib, sys
from schedlab import paths
paths.RUNS_FOLDER = pathlib.Path(sys.argv[1])
kept, empty = paths.new_runs_folder("kept"), paths.new_runs_folder("empty")
assert kept.is_dir() and empty.is_dir()
(kept / "run").mkdir()
if len(sys.argv) > 2:
    raise KeyboardInterrupt
"""


def test_commands_of_the_same_second_do_not_share_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "RUNS_FOLDER", tmp_path / "runs")
    folders = {paths.new_runs_folder("mixed-rr") for _ in range(30)}
    assert len(folders) == 30
    assert {folder.parent for folder in folders} == {tmp_path / "runs"}


@pytest.mark.parametrize("interrupted", [[], ["interrupted"]])
def test_a_folder_that_stays_empty_goes_with_the_program(
    interrupted: list[str], tmp_path: Path
) -> None:
    result = subprocess.run(
        [sys.executable, "-c", TAKES_TWO, str(tmp_path / "runs"), *interrupted], check=False
    )
    assert bool(result.returncode) == bool(interrupted)
    (left,) = (tmp_path / "runs").iterdir()
    assert left.name.endswith("-kept")

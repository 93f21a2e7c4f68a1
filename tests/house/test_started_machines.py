# SPDX-License-Identifier: MIT
"""Tests that a test without the right marker cannot start a machine or a browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import FAST_LEAVES_OUT, ROOT, SLOW
from started_machines import MACHINES, OF_COMMANDS, Unmarked

WORDS = ("-bios", "none", "-kernel", "k")


def stand_in(folder: Path, name: str) -> str:
    """Returns a program, not a script, with a machine's name."""
    return str(shutil.copy(shutil.which("true") or "/bin/true", folder / name))


@pytest.mark.parametrize("name", [*MACHINES, "spike-1.2"])
def test_a_machine_without_its_marker_is_not_started(tmp_path: Path, name: str) -> None:
    with pytest.raises(Unmarked, match="mark it"):
        subprocess.run([stand_in(tmp_path, name), *WORDS], check=True)


def test_the_fast_tests_leave_all_of_them_out() -> None:
    assert {*MACHINES.values(), *OF_COMMANDS.values(), "browser"} < set(FAST_LEAVES_OUT)


@pytest.mark.parametrize("name", SLOW)
def test_listed_slow_tests_exist(name: str) -> None:
    file, _, test = name.partition("::")
    assert (ROOT / file).exists()
    assert not test or f"def {test}" in (ROOT / file).read_text()


def test_table_of_packages_names_existing_tests() -> None:
    """docs/contributing.md lists each folder that contains tests."""
    page = (ROOT / "docs" / "contributing.md").read_text()
    table = page.partition("| You changed | Run |")[2].partition("\n\n")[0]
    named = set(re.findall(r"tests/[\w/.]+", table))
    assert not [name for name in named if not (ROOT / name).exists()]
    folders = {str(path.parent.relative_to(ROOT)) for path in ROOT.glob("tests/**/test_*.py")}
    missing = folders - {name if (ROOT / name).is_dir() else "" for name in named}
    assert missing == {"tests/house"}

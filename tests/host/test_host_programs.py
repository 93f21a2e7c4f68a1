# SPDX-License-Identifier: MIT
"""Runs the C tests of tests/host; each is a separate program under sanitizers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from schedlab.base.toolchain.build import build
from schedlab.paths import BUILD_FOLDER, ROOT

SOURCES = sorted((ROOT / "tests" / "host").glob("*_test.c"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_host_program(source: Path) -> None:
    """The program ends with status 0; its output explains a failure."""
    check(source.stem)


@pytest.mark.long
def test_all_crashes_of_the_file_system() -> None:
    check("file_system_crash_test", "long")


def check(name: str, *arguments: str) -> None:
    program = BUILD_FOLDER / "host-tests" / name
    build(str(program.relative_to(ROOT)))
    command = [str(program), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 0, result.stdout + result.stderr

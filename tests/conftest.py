# SPDX-License-Identifier: MIT
"""What tests share."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from schedlab.host.interpreter import module_command

# A shell starts what runs in the background with SIGINT ignored, and programs hand that on.
signal.signal(signal.SIGINT, signal.default_int_handler)

# By hand: other cases each time, and many. docs/contributing.md says when.
settings.register_profile("long", max_examples=2000, stateful_step_count=50, deadline=None)

ROOT = Path(__file__).resolve().parent.parent

# Programs that tests start as `python -c` find our packages by it.
os.environ["PYTHONPATH"] = f"{ROOT}/python:{ROOT}/sim/python"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the tests marked long")
    parser.addoption("--fuzz-cases", type=int, default=25, help="changed files, of each kind")
    parser.addoption("--fuzz-seed", type=int, default=1, help="which they are")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is marked long, unless it is asked for."""
    if config.getoption("--long"):
        return
    left_out = [item for item in items if item.get_closest_marker("long")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


Command = Callable[..., "subprocess.CompletedProcess[str]"]
Programs = Callable[[str, str], Path]


@pytest.fixture(scope="session")
def schedlab() -> Command:
    """Runs `./schedlab …` as the launcher would start it; gives what came of it."""

    def call(
        *arguments: str,
        cwd: Path | None = None,
        environment: dict[str, str] | None = None,
        timeout: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            module_command("schedlab", *arguments),
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return call


@pytest.fixture
def program(tmp_path: Path) -> Programs:
    """Makes an executable shell script in tmp_path/bin: a stand-in for a program."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def make(name: str, body: str) -> Path:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        return path

    return make

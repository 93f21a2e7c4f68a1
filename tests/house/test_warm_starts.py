# SPDX-License-Identifier: MIT
"""A command that is forked is what a start of Python makes of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from schedlab.base.host.interpreter import module_command
from warm_starts import TURNS, WarmStarts


@pytest.fixture(scope="module")
def warm() -> WarmStarts:
    return WarmStarts()


@pytest.mark.parametrize(
    "words",
    [("workloads", "--help"), ("policies",), ("run", "--cpus", "0"), ("no-such",), ("clean",)],
)
def test_it_says_the_same(warm: WarmStarts, tmp_path: Path, words: tuple[str, ...]) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "COLUMNS": "70"}
    cold = subprocess.run(
        module_command("schedlab", *words),
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    for _ in range(TURNS):
        done = warm.run(words, tmp_path, environment, 60)
        assert (done.returncode, done.stdout, done.stderr) == (
            cold.returncode,
            cold.stdout,
            cold.stderr,
        )


def test_one_that_does_not_end_is_killed(warm: WarmStarts) -> None:
    before_s = warm.cpu_s
    with pytest.raises(subprocess.TimeoutExpired):
        warm.run(("demo", "--no-browser"), None, os.environ, 0.1)
    assert warm.run(("--version",), None, os.environ, 60).returncode == 0
    assert warm.cpu_s > before_s

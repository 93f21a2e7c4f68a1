# SPDX-License-Identifier: MIT
"""What the monitor starts besides the studies' files: the kernel has room for it, and Linux plays it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from schedlab.workload import workload_files
from schedlab.workload.palette import palette
from schedlab.workload.text import text_of
from simulator_command import built

TICK_NS = 1_000_000
GROUPS = {
    "hog": ["hog"],
    "two-hogs": ["hog", "hog"],
    "interactive": ["typist"],
    "tickets-3-2-1": ["one", "three", "two"],
    "tickets-100-10-1": ["middling", "poor", "rich"],
    "inversion": ["lowly", "middle", "urgent"],
    "fork-storm": ["short"] * 500,
    "ping-pong": ["ping", "pong"],
}
"""Of all processes, except the one that starts them."""


def compiled(name: str, folder: Path) -> Path:
    """As the kernel's program `play` takes it; that of Linux, too."""
    source, target = folder / "workload.txt", folder / "workload"
    source.write_text(text_of(workload_files.read(palette()[name].file), 1, TICK_NS))
    words = (built("sim/schedlab-sim"), "--tick", str(TICK_NS), "--compile", target, source)
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return target


def test_each_simple_one_is_here() -> None:
    assert set(GROUPS) == {name for name, each in palette().items() if each.kind == "simple"}


@pytest.mark.parametrize("name", GROUPS)
def test_linux_plays_it_until_it_is_ended(tmp_path: Path, name: str) -> None:
    workload = compiled(name, tmp_path)
    wanted = ["root", *GROUPS[name]]
    playing = subprocess.Popen(
        [built("linux/play"), workload],
        env={**os.environ, "WORKLOAD_MARKS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    with playing:
        assert playing.stderr
        found: list[str] = []
        while len(found) < len(wanted) and (line := playing.stderr.readline()):
            found += [line.split()[-1]] if " group " in line else []
        playing.terminate()
        rest = playing.stderr.read()
    assert sorted(found) == sorted(wanted)
    assert "group" not in rest
    assert name == "fork-storm" or playing.returncode != 0  # it went on

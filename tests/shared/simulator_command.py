# SPDX-License-Identifier: MIT
"""The simulator's command, for tests."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from schedlab.base.toolchain.build import build
from schedlab.paths import BUILD
from schedlab.workload.words import read_words


@cache
def built(target: str) -> Path:
    """A file of build/, up to date."""
    build(f"build/{target}")
    return BUILD / target


def tick_of(options: Sequence[str]) -> int:
    """Returns the tick that options of the command say, in nanoseconds."""
    return int(options[options.index("--tick") + 1]) if "--tick" in options else 1_000_000


def write_workload(folder: Path, text: str, tick_ns: int = 1_000_000) -> Path:
    """Writes the workload file that words mean, and returns where."""
    workload = folder / "workload.steps"
    workload.write_bytes(read_words(text, tick_ns))
    return workload


def simulate(
    folder: Path, text: str, *options: str, program: str = "sim/schedlab-sim"
) -> subprocess.CompletedProcess[str]:
    """Runs a workload, as words, by the command."""
    return play(folder, read_words(text, tick_of(options)), *options, program=program)


def play(
    folder: Path, played: bytes | None, *options: str, program: str = "sim/schedlab-sim"
) -> subprocess.CompletedProcess[str]:
    """Runs a workload file by the command."""
    assert played
    workload = folder / "workload.steps"
    workload.write_bytes(played)
    return subprocess.run(
        [built(program), *options, workload],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

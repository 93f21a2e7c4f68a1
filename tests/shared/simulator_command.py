# SPDX-License-Identifier: MIT
"""The simulator's command, for tests."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from schedlab.base.toolchain.build import build
from schedlab.paths import BUILD_FOLDER
from schedlab.workload.binary_steps import encode_workload_text


@cache
def built(target: str) -> Path:
    """Returns a file of build/, after building it."""
    build(f"build/{target}")
    return BUILD_FOLDER / target


def tick_of(options: Sequence[str]) -> int:
    """Returns the tick set by the command's options, in nanoseconds."""
    return int(options[options.index("--tick") + 1]) if "--tick" in options else 1_000_000


def write_workload(folder: Path, text: str, tick_ns: int = 1_000_000) -> Path:
    """Writes the workload file for a text, and returns its path."""
    workload = folder / "workload.steps"
    workload.write_bytes(encode_workload_text(text, tick_ns))
    return workload


def simulate(
    folder: Path, text: str, *options: str, program: str = "sim/schedlab-sim"
) -> subprocess.CompletedProcess[str]:
    """Runs a workload, given as text, with the command."""
    return play(folder, encode_workload_text(text, tick_of(options)), *options, program=program)


def play(
    folder: Path, played: bytes | None, *options: str, program: str = "sim/schedlab-sim"
) -> subprocess.CompletedProcess[str]:
    """Runs a workload file with the command."""
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

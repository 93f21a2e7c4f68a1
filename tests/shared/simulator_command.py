# SPDX-License-Identifier: MIT
"""The simulator's command, for tests."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from schedlab.base.toolchain.build import build
from schedlab.paths import BUILD


@cache
def built(target: str) -> Path:
    """A file of build/, up to date."""
    build(f"build/{target}")
    return BUILD / target


def simulate(
    folder: Path, text: str, *options: str, program: str = "sim/schedlab-sim"
) -> subprocess.CompletedProcess[str]:
    """Runs a workload by the command."""
    workload = folder / "workload.txt"
    workload.write_text(text)
    return subprocess.run(
        [built(program), *options, workload],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

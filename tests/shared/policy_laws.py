# SPDX-License-Identifier: MIT
"""The invariants of tests/policies/laws.c, compiled for some policies."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from schedlab.base.toolchain.tools import require_system_compiler
from schedlab.paths import ROOT

FLAGS = (
    *("-std=c17", "-O1", "-g1", "-Wall", "-Wextra", "-Werror", "-fstrict-flex-arrays=3"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
)


def keep_the_laws(policies: Sequence[Path], folder: Path, seeds: int) -> str:
    """Compiles the policies and their invariants in a directory, tests them with a number of seeds,
    and returns the program's output.

    Raises AssertionError if an invariant is violated or a policy is invalid.
    """
    table, program = folder / "table.c", folder / "laws"
    table.write_text(_output_of("sh", ROOT / "tools" / "make_policy_table.sh", *policies))
    sources = (
        ROOT / "tests" / "policies" / "laws.c",
        ROOT / "policies" / "support" / "registry.c",
    )
    _output_of(
        require_system_compiler().clang, *FLAGS, "-I.", *sources, table, *policies, "-o", program
    )
    return _output_of(program, str(seeds))


def _output_of(*command: str | Path) -> str:
    result = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout

# SPDX-License-Identifier: MIT
"""Shared by the tests of policies: the policy files, and running commands."""

from __future__ import annotations

import subprocess

from schedlab.base.toolchain.tools import require_compiler, require_system_compiler
from schedlab.paths import ROOT

POLICIES = [
    *sorted((ROOT / "policies").glob("*.c")),
    *sorted((ROOT / "policies/studies").glob("*.c")),
    *sorted((ROOT / "tests/policies").glob("test_*.c")),
]

CLANG = require_compiler().clang
HOST = require_compiler().host
WARNINGS = ["-Wall", "-Wextra", "-Werror"]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Runs a command at the root, and captures its output."""
    return subprocess.run(
        command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=120
    )


def llvm(tool: str) -> str:
    """Returns the path of an LLVM tool."""
    return require_system_compiler().tool(f"llvm-{tool}")


def output_of(*command: str) -> list[str]:
    """Returns the lines that a successful command prints."""
    result = run(*command)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()

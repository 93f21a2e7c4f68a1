# SPDX-License-Identifier: MIT
"""Identifies this version of schedlab, and of the code that computes metrics."""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import schedlab
from schedlab import __version__
from schedlab.base.toolchain.tools import find_compiler
from schedlab.paths import IS_INSTALLED, ROOT

AFFECTING_SOURCES = (
    *("Makefile", "schedlab", "abi", "kernel", "linux", "model", "policies", "python", "sim"),
    *("spike", "studies", "tests/guest", "tools", "user", "workloads"),
)
"""Sources that can affect runs and reports."""


def commit_facts() -> dict[str, Any]:
    """Returns the commit of the checkout, whether files have changed, and a hash of changes in
    SOURCES.

    The values are None if git fails.
    """
    head = _git_output("rev-parse", "HEAD")
    status = _git_output("status", "--porcelain")
    changed = None if status is None else bool(status.strip())
    patch = uncommitted_patch() if changed else b""
    return {
        "commit": head.decode().strip() if head else None,
        "changed": changed,
        **({"changes_sha256": hashlib.sha256(patch).hexdigest()} if patch else {}),
    }


def uncommitted_patch() -> bytes:
    """Returns the uncommitted changes in SOURCES, including new files, as a patch for `git apply`.

    b"" if there are none, or if git fails. Does not modify the index or the repository.
    """
    index, objects = (_git_output("rev-parse", "--git-path", name) for name in ("index", "objects"))
    if not index or not objects:
        return b""
    with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
        index_file = Path(scratch) / "index"
        # Keeps the index's modification time, because git uses it to find unchanged files.
        shutil.copy2(ROOT / index.decode().strip(), index_file)
        variables = {
            "GIT_INDEX_FILE": str(index_file),
            "GIT_OBJECT_DIRECTORY": scratch,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str((ROOT / objects.decode().strip()).resolve()),
        }
        if _git_output("add", "--all", "--", *AFFECTING_SOURCES, environment=variables) is None:
            return b""
        patch = ("diff-index", "--cached", "--patch", "--binary", "--full-index", "HEAD", "--")
        return _git_output(*patch, *AFFECTING_SOURCES, environment=variables) or b""


def commit_seconds() -> int | None:
    """Returns the commit's time in seconds since 1970, or None if git fails."""
    output = _git_output("log", "-1", "--format=%ct")
    return int(output) if output and output.strip() else None


def process_facts() -> dict[str, Any]:
    """Returns facts about this process for manifests: command line, commit, Python and compiler."""
    program = None if IS_INSTALLED else find_compiler()
    return {
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command_line": ["schedlab", *sys.argv[1:]],
        "schedlab": __version__,
        **commit_facts(),
        "python": platform.python_version(),
        **({"compiler": program.description()} if program else {}),
        "host": f"{platform.node()}, {platform.platform()}",
    }


def _git_output(*arguments: str, environment: Mapping[str, str] | None = None) -> bytes | None:
    try:
        result = subprocess.run(
            ["git", "-C", str(ROOT), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            env={**os.environ, **(environment or {})},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout


MEASURING_SOURCES = (
    "trace/*.py",
    "metrics/*.py",
    "workload/model.py",
    "workload/text.py",
    "machines/outcome.py",
)

CodeFacts = dict[str, str]


@cache
def identify_measuring_code(*more_patterns: str) -> CodeFacts:
    """Returns versions and a hash of the code that computes metrics.

    `more_patterns`: patterns of further source files.
    """
    digest = hashlib.sha256()
    package = Path(schedlab.__file__).parent
    for pattern in (*MEASURING_SOURCES, *more_patterns):
        for path in sorted(package.glob(pattern)):
            digest.update(path.relative_to(package).as_posix().encode())
            digest.update(path.read_bytes())
    return {
        "schedlab": __version__,
        "sources_sha256": digest.hexdigest(),
        "polars": pl.__version__,
        "numpy": np.__version__,
        "architecture": platform.machine(),
    }

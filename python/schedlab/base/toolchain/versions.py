# SPDX-License-Identifier: MIT
"""Which schedlab this is."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from schedlab import __version__
from schedlab.base.toolchain.tools import compiler_there
from schedlab.paths import INSTALLED, ROOT

SOURCES = (
    *("Makefile", "schedlab", "abi", "kernel", "linux", "model", "policies", "python", "sim"),
    *("spike", "studies", "tests/guest", "tools", "user", "workloads"),
)
"""What runs and reports are made of, in the checkout."""


def commit() -> dict[str, Any]:
    """The checkout's commit, and whether it has changes since; None where git cannot tell. Of changes in what
    runs are made of, their hash, too."""
    head = _git("rev-parse", "HEAD")
    status = _git("status", "--porcelain")
    changed = None if status is None else bool(status.strip())
    made = changes() if changed else b""
    return {
        "commit": head.decode().strip() if head else None,
        "changed": changed,
        **({"changes_sha256": hashlib.sha256(made).hexdigest()} if made else {}),
    }


def changes() -> bytes:
    """Returns what in the sources is not as in the commit, new files included, as a patch for `git apply`.

    b"": nothing, or git cannot tell. Neither the index nor the repository is touched.
    """
    index, objects = (_git("rev-parse", "--git-path", name) for name in ("index", "objects"))
    if not index or not objects:
        return b""
    with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
        index_file = Path(scratch) / "index"
        # With its time, by which git knows which files it has to look into: those changed since.
        shutil.copy2(ROOT / index.decode().strip(), index_file)
        variables = {
            "GIT_INDEX_FILE": str(index_file),
            "GIT_OBJECT_DIRECTORY": scratch,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str((ROOT / objects.decode().strip()).resolve()),
        }
        if _git("add", "--all", "--", *SOURCES, environment=variables) is None:
            return b""
        patch = ("diff-index", "--cached", "--patch", "--binary", "--full-index", "HEAD", "--")
        return _git(*patch, *SOURCES, environment=variables) or b""


def commit_seconds() -> int | None:
    """Returns when the checkout's commit was made, in seconds since 1970, or None where git cannot tell."""
    objects = _git("log", "-1", "--format=%ct")
    return int(objects) if objects and objects.strip() else None


def sitting() -> dict[str, Any]:
    """What is run now, and by what: the command line, the commit, this Python, the compiler."""
    program = None if INSTALLED else compiler_there()
    return {
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command_line": ["schedlab", *sys.argv[1:]],
        "schedlab": __version__,
        **commit(),
        "python": platform.python_version(),
        **({"compiler": program.description()} if program else {}),
        "host": f"{platform.node()}, {platform.platform()}",
    }


def _git(*arguments: str, environment: Mapping[str, str] | None = None) -> bytes | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            env={**os.environ, **(environment or {})},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout

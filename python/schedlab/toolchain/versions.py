# SPDX-License-Identifier: MIT
"""Which schedlab this is."""

from __future__ import annotations

import platform
import subprocess
import sys
from datetime import datetime, timezone
from typing import Any

from schedlab import __version__
from schedlab.paths import ROOT


def commit() -> dict[str, Any]:
    """The checkout's commit, and whether it has changes since; None where git cannot tell."""
    head = _git("rev-parse", "HEAD")
    changes = _git("status", "--porcelain")
    return {
        "commit": head.strip() if head else None,
        "changed": None if changes is None else bool(changes.strip()),
    }


def sitting() -> dict[str, Any]:
    """What is run now, and by what: the command line, the commit, this Python."""
    return {
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command_line": ["schedlab", *sys.argv[1:]],
        "schedlab": __version__,
        **commit(),
        "python": platform.python_version(),
        "host": f"{platform.node()}, {platform.platform()}",
    }


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout

# SPDX-License-Identifier: MIT
"""Tells built-in policies, which are committed, from policies in progress, which no document needs to have."""

from __future__ import annotations

import subprocess
from functools import cache

from schedlab.base.toolchain.kept import committed_policies
from schedlab.base.toolchain.policies import known_policies
from schedlab.paths import ROOT


@cache
def policies_in_progress() -> tuple[str, ...]:
    """Returns the policies that Git's index does not have; without Git, those that the catalogue does not have."""
    done = subprocess.run(
        ["git", "ls-files", "policies/*.c"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    files = {line.rpartition("/")[2].removesuffix(".c") for line in done.stdout.splitlines()}
    committed = files or set(committed_policies())
    return tuple(name for name in known_policies() if name not in committed)

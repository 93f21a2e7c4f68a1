# SPDX-License-Identifier: MIT
"""Distinguishes built-in policies, which are committed, from policies in progress, which
documents may omit.
"""

from __future__ import annotations

import subprocess
from functools import cache

from schedlab.base.toolchain.committed import committed_policies
from schedlab.base.toolchain.policies import known_policies
from schedlab.paths import ROOT


@cache
def policies_in_progress() -> tuple[str, ...]:
    """Returns the policies missing from Git's index; without Git, those missing from the
    catalogue.
    """
    result = subprocess.run(
        ["git", "ls-files", "policies/*.c"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    files = {line.rpartition("/")[2].removesuffix(".c") for line in result.stdout.splitlines()}
    committed = files or set(committed_policies())
    return tuple(name for name in known_policies() if name not in committed)

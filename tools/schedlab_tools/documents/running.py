# SPDX-License-Identifier: MIT
"""Commands of which documents show what comes out."""

from __future__ import annotations

import os
import subprocess

from schedlab.base.host.interpreter import module_command
from schedlab.errors import SchedlabError
from schedlab.paths import ROOT


def told_by(module: str, *words: str, **variables: str) -> str:
    """Returns what a module prints that is started as a program, with these variables in its environment.

    SchedlabError: it fails.
    """
    done = subprocess.run(
        module_command(module, *words),
        check=False,
        env={**os.environ, **variables},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SchedlabError(
            f"{module} {' '.join(words)} failed:\n{done.stdout}{done.stderr}".strip()
        )
    return done.stdout

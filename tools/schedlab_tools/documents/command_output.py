# SPDX-License-Identifier: MIT
"""Runs commands whose output documents show."""

from __future__ import annotations

import os
import subprocess

from schedlab.base.host.interpreter import module_command
from schedlab.errors import SchedlabError
from schedlab.paths import ROOT


def printed_output(module: str, *words: str, **variables: str) -> str:
    """Returns the output of a module run as a program, with these environment variables.

    Raises SchedlabError if it fails.
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

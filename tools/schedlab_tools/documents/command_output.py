# SPDX-License-Identifier: MIT
"""Runs commands whose output documents show."""

from __future__ import annotations

import os
import subprocess

from schedlab.base.host.interpreter import module_command
from schedlab.errors import SchedlabError
from schedlab.paths import ROOT


def printed_output(module: str, *arguments: str, **variables: str) -> str:
    """Returns the output of a module run as a program, with these environment variables.

    Raises SchedlabError if it fails.
    """
    result = subprocess.run(
        module_command(module, *arguments),
        check=False,
        env={**os.environ, **variables},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if result.returncode:
        raise SchedlabError(
            f"{module} {' '.join(arguments)} failed:\n{result.stdout}{result.stderr}".strip()
        )
    return result.stdout

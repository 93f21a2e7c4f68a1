# SPDX-License-Identifier: MIT
"""Builds commands that run schedlab's modules in new processes."""

from __future__ import annotations

import sys

from schedlab.paths import IS_INSTALLED, ROOT

PYTHON = (sys.executable, "-I", "-X", "utf8")
"""The command that starts this Python, isolated from the current folder and the environment.

The launcher uses the same options.
"""


def module_command(module: str, *arguments: str) -> list[str]:
    """Returns the command that runs a module of schedlab or of its environment as a program."""
    if IS_INSTALLED:
        return [*PYTHON, "-m", module, *arguments]
    return [*PYTHON, str(ROOT / "python" / "start.py"), module, *arguments]

# SPDX-License-Identifier: MIT
"""Builds commands that run schedlab's modules in new processes."""

from __future__ import annotations

import sys

from schedlab.paths import INSTALLED, ROOT

PYTHON = (sys.executable, "-I", "-X", "utf8")
"""This Python, isolated from the current folder and the environment, as in the launcher."""


def module_command(module: str, *arguments: str) -> list[str]:
    """Returns the command that runs a module of schedlab or of its environment as a program."""
    if INSTALLED:
        return [*PYTHON, "-m", module, *arguments]
    return [*PYTHON, str(ROOT / "python" / "start.py"), module, *arguments]

# SPDX-License-Identifier: MIT
"""How processes of our own are started."""

from __future__ import annotations

import sys

from schedlab.paths import INSTALLED, ROOT

PYTHON = (sys.executable, "-I", "-X", "utf8")
"""This Python, deaf to the caller's folder and environment; as in the launcher."""


def module_command(module: str, *arguments: str) -> list[str]:
    """Returns the command that runs a module of this environment, or of ours, as a program."""
    if INSTALLED:
        return [*PYTHON, "-m", module, *arguments]
    return [*PYTHON, str(ROOT / "python" / "start.py"), module, *arguments]

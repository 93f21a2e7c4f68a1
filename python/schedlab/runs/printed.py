# SPDX-License-Identifier: MIT
"""What a benchmark printed of itself in a run, as figures."""

from __future__ import annotations

from pathlib import Path

from schedlab.machines.folder import CONSOLE
from schedlab.machines.outcome import read_console
from schedlab.outputs import Figures, OutputError, figures


def printed(folder: Path, command: str) -> Figures:
    """Returns them by name, with the unit in the name; none if the command is no benchmark that is known, or did not
    get so far."""
    try:
        return figures(command, read_console(folder / CONSOLE))
    except (OutputError, OSError):
        return {}

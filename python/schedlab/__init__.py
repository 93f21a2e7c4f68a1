# SPDX-License-Identifier: MIT
"""A laboratory for CPU schedulers. `schedlab.open(folder)` opens a run (docs/tables.md)."""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Imports what opens runs when it is wanted: a start of the command line stays quick."""
    if name == "open":
        from schedlab.tables import open_run

        return open_run
    raise AttributeError(f"module 'schedlab' has no attribute '{name}'")

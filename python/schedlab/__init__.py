# SPDX-License-Identifier: MIT
"""A laboratory for CPU schedulers. `schedlab.open(folder)` opens a run (docs/tables.md), and `schedlab.score(source)`
says what a policy is worth (docs/score.md)."""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Imports what is wanted when it is: a start of the command line stays quick."""
    if name == "open":
        from schedlab.tables import open_run

        return open_run
    if name in ("score", "score_many"):
        from schedlab.scoring import candidate

        return getattr(candidate, name)
    raise AttributeError(f"module 'schedlab' has no attribute '{name}'")

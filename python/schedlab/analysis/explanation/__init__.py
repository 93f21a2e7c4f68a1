# SPDX-License-Identifier: MIT
"""Explains why a process waited: breaks down each wait to the nanosecond (docs/explain.md)."""

from schedlab.analysis.explanation.blame import Blame, Blames, Cause
from schedlab.analysis.explanation.delays import confirmed, delays, difference
from schedlab.analysis.explanation.explained_waits import (
    Explained,
    WaitQuery,
    critical_path,
    explain,
)

__all__ = [
    "Blame",
    "Blames",
    "Cause",
    "Explained",
    "WaitQuery",
    "confirmed",
    "critical_path",
    "delays",
    "difference",
    "explain",
]

# SPDX-License-Identifier: MIT
"""Explains why a process waited: breaks down each wait to the nanosecond (docs/explain.md)."""

from schedlab.analysis.explanation.blame import Blame, Blames, Cause
from schedlab.analysis.explanation.delays import confirmed, delays, difference
from schedlab.analysis.explanation.explained import Asked, Explained, critical_path, explain

__all__ = [
    "Asked",
    "Blame",
    "Blames",
    "Cause",
    "Explained",
    "confirmed",
    "critical_path",
    "delays",
    "difference",
    "explain",
]

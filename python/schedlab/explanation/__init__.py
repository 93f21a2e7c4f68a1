# SPDX-License-Identifier: MIT
"""Why a process waited: each wait taken apart, to the last nanosecond (docs/explain.md)."""

from schedlab.explanation.blame import Blame, Blames, Cause
from schedlab.explanation.delays import delays
from schedlab.explanation.difference import confirmed, difference
from schedlab.explanation.explained import Asked, Explained, critical_path, explain

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

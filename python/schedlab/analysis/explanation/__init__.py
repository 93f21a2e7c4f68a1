# SPDX-License-Identifier: MIT
"""Explains why a process waited: breaks down each wait to the nanosecond (docs/explain.md)."""

from schedlab.analysis.explanation.blame import Blame, Blames, Cause
from schedlab.analysis.explanation.delays import check_attribution, sum_delays, waiting_time_changes
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
    "check_attribution",
    "critical_path",
    "explain",
    "sum_delays",
    "waiting_time_changes",
]

# SPDX-License-Identifier: MIT
"""Derives a workload from a recorded trace (docs/replay.md)."""

from schedlab.runs.replay.charged_costs import Charges, parse_charges
from schedlab.runs.replay.programs import AS_RECORDED, ReplayChanges, Replayed, derive_workload

__all__ = [
    "AS_RECORDED",
    "Charges",
    "ReplayChanges",
    "Replayed",
    "derive_workload",
    "parse_charges",
]

# SPDX-License-Identifier: MIT
"""Derives a workload from a recorded trace (docs/replay.md)."""

from schedlab.runs.replay.charged_costs import Charges, charges_of
from schedlab.runs.replay.programs import AS_RECORDED, ReplayChanges, Replayed, workload_of

__all__ = ["AS_RECORDED", "Charges", "ReplayChanges", "Replayed", "charges_of", "workload_of"]

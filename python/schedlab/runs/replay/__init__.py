# SPDX-License-Identifier: MIT
"""What the processes of a recorded trace wanted, as a workload (docs/replay.md)."""

from schedlab.runs.replay.charges import Charges, charges
from schedlab.runs.replay.otherwise import AS_RECORDED, Otherwise
from schedlab.runs.replay.programs import Replayed, workload_of

__all__ = ["AS_RECORDED", "Charges", "Otherwise", "Replayed", "charges", "workload_of"]

# SPDX-License-Identifier: MIT
"""What the processes of a recorded trace wanted, as a workload (docs/replay.md)."""

from schedlab.replay.charges import Charges, charges
from schedlab.replay.programs import Replayed, workload_of

__all__ = ["Charges", "Replayed", "charges", "workload_of"]

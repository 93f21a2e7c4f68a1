# SPDX-License-Identifier: MIT
"""Workload files: what they say, how they are changed, and the texts and disks that carry them to a
machine; what things cost in the simulator. It knows no machine."""

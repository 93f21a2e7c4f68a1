# SPDX-License-Identifier: MIT
"""File names in a run's folder."""

from __future__ import annotations

TRACE_FILE = "trace.bin"
"""The trace."""
WORKLOAD_PLAYED = "workload.steps"
"""The workload that a machine plays, in the format of abi/workload_file.h."""
WORKLOAD_TEXT = "workload.txt"
"""The text of a replay (docs/simulator.md). Up to 0.2.0, also the text of workload files."""
WORKLOAD_FILE = "workload.json"
"""A copy of the workload file; changes to it are in the manifest."""
SHAPE_FILE = "shape.json"
"""A copy of the machine's shape; absent if all CPUs are equal."""
CONSOLE = "console.log"
"""The machine's complete output."""
TYPED = "typed"
"""The console's input, with the kernel's times (ns) (docs/spike.md)."""

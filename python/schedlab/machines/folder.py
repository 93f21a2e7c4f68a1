# SPDX-License-Identifier: MIT
"""What lies in a run's folder, by name."""

from __future__ import annotations

TRACE_FILE = "trace.bin"
"""The file in which a machine leaves the trace."""
WORKLOAD_PLAYED = "workload.steps"
"""What a machine acts out: a file of abi/workload_file.h."""
WORKLOAD_TEXT = "workload.txt"
"""What is replayed, as words (docs/simulator.md). Up to 0.2.0, what a run of a workload file acts out, too."""
WORKLOAD_FILE = "workload.json"
"""The workload file itself, as it was then; what was changed in it is in the manifest."""
SHAPE_FILE = "shape.json"
"""The shape of the machine, as the file was then; there is none if all CPUs were alike."""
CONSOLE = "console.log"
"""All that the machine printed."""
TYPED = "typed"
"""What was typed at its console, each time with the kernel's time in ns (docs/spike.md)."""

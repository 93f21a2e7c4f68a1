# SPDX-License-Identifier: MIT
"""File names in a run's folder."""

from __future__ import annotations

TRACE_FILE = "trace.bin"
"""The trace."""
BINARY_WORKLOAD_FILE = "workload.steps"
"""The workload that a machine plays, in the format of abi/workload_file.h."""
WORKLOAD_TEXT_FILE = "workload.txt"
"""Workload of a replay in the simulator's text format; up to 0.2.0, also of workload files."""
WORKLOAD_FILE = "workload.json"
"""A copy of the user's workload file, before the changes in the manifest."""
SHAPE_FILE = "shape.json"
"""A copy of the machine's shape; absent if all CPUs are equal."""
CONSOLE_FILE = "console.log"
"""All output of the machine."""
TYPED_FILE = "typed"
"""What was typed at the console, with the kernel's times in ns (docs/spike.md)."""

# SPDX-License-Identifier: MIT
"""Recordings that `perf` and `trace-cmd` made of a Linux machine, as traces (docs/perf-traces.md)."""

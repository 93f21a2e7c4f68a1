# SPDX-License-Identifier: MIT
"""Imports recordings of Linux machines by `perf`, `trace-cmd` and Perfetto (docs/perf-traces.md)."""

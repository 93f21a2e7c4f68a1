# SPDX-License-Identifier: MIT
"""Converts recordings of Linux machines by `perf`, `trace-cmd` and Perfetto to traces (docs/perf-traces.md)."""

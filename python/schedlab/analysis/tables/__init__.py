# SPDX-License-Identifier: MIT
"""Provides a run as tables: CPU time, waits and wake-ups of processes, and the CPU's activity (docs/tables.md)."""

from schedlab.analysis.tables.opened_run import Run, open_run
from schedlab.analysis.tables.query import query
from schedlab.analysis.tables.trace_tables import TABLE_DESCRIPTIONS, Column, TraceTables

__all__ = ["TABLE_DESCRIPTIONS", "Column", "Run", "TraceTables", "open_run", "query"]

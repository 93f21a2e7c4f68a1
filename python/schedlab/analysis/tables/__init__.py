# SPDX-License-Identifier: MIT
"""A run as tables: who had which CPU, who waited, who woke whom (docs/tables.md)."""

from schedlab.analysis.tables.opened import Run, open_run
from schedlab.analysis.tables.query import query
from schedlab.analysis.tables.trace_tables import DESCRIBED, Column, TraceTables

__all__ = ["DESCRIBED", "Column", "Run", "TraceTables", "open_run", "query"]

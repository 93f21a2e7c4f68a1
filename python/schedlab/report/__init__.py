# SPDX-License-Identifier: MIT
"""Reports: pages of texts, tables and charts, made from runs (docs/reports.md)."""

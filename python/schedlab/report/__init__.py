# SPDX-License-Identifier: MIT
"""Makes reports of runs: pages of texts, tables and charts (docs/reports.md)."""

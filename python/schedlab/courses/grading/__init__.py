# SPDX-License-Identifier: MIT
"""Grades policies: returns a reproducible verdict with evidence (docs/grading.md)."""

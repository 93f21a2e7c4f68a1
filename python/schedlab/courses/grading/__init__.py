# SPDX-License-Identifier: MIT
"""A policy goes in, a verdict with evidence comes out, the same each time (docs/grading.md)."""

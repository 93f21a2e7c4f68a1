# SPDX-License-Identifier: MIT
"""Reads workload files, changes values in them, and converts them for machines; defines the
simulator's costs.

Knows no machine.
"""

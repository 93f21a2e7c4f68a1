# SPDX-License-Identifier: MIT
"""Runs schedlab for hours, and observes memory, files and processes for leaks (docs/soak.md).

loads.py ──► parts, each a command ──► conduct.py, which samples them
                                          │
                                          └──► samples.csv, soak.json ◄── findings.py
"""

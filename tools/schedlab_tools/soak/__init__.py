# SPDX-License-Identifier: MIT
"""Long use: what schedlab runs for hours, watched from outside for memory, files and processes that
do not come back (docs/soak.md).

    loads.py ──► parts, each a command ──► conduct.py, which samples them
                                              │
                                              └──► samples.csv, soak.json ◄── findings.py
"""

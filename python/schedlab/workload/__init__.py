# SPDX-License-Identifier: MIT
"""Reads and changes workload files, and converts them for machines; defines costs of the simulator.
It knows no machine.
"""

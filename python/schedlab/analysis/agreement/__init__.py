# SPDX-License-Identifier: MIT
"""Compares the simulator with the kernel: the same experiments on both, cell by cell."""

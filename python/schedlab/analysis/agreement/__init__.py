# SPDX-License-Identifier: MIT
"""The simulator held against the kernel: the same experiments on both, cell by cell."""

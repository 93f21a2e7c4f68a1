# SPDX-License-Identifier: MIT
"""Searches for failures of the kernel under abnormal turn lengths, minimises them, and explains them."""

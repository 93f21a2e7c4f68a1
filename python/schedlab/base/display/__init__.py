# SPDX-License-Identifier: MIT
"""Formats and prints text for people, and makes texts of strangers safe to display.

Knows nothing of scheduling.
"""

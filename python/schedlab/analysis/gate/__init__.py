# SPDX-License-Identifier: MIT
"""Decides whether a changed policy is significantly worse than a baseline."""

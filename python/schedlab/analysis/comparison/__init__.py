# SPDX-License-Identifier: MIT
"""Compares runs: metrics, confidence intervals, rankings and differences between two sets.

It knows stored runs, and no study.
"""

# SPDX-License-Identifier: MIT
"""Compares runs, explains waits, checks runs against theory, and provides tables for SQL."""

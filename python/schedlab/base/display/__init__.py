# SPDX-License-Identifier: MIT
"""Formats and prints text for people, and makes any text safe to display; independent of scheduling."""

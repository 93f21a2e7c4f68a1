# SPDX-License-Identifier: MIT
"""Policies that anybody may have written: compiled in a sandbox, graded, scored, and written by a language model."""

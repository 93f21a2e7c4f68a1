# SPDX-License-Identifier: MIT
"""Policies that anybody may have written: compiled in a sandbox, and run in a machine of their own."""

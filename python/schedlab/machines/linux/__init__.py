# SPDX-License-Identifier: MIT
"""Runs policies on a real Linux kernel: packages, guests, and the host's kernel."""

# SPDX-License-Identifier: MIT
"""A real Linux kernel as a host of policies: its packages, its guest, and how one drives it."""

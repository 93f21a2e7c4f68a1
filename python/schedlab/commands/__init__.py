# SPDX-License-Identifier: MIT
"""The command line: one module per command, and modules that several commands share.

This package may import every other package; no other package may import it.
"""

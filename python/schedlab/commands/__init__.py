# SPDX-License-Identifier: MIT
"""The command line: a module for each command, and what several of them share. It knows all other
rooms; none of them knows it."""

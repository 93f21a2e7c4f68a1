# SPDX-License-Identifier: MIT
"""Foundations of all packages: files, safe text output, the host and its processes, compilers and builds."""

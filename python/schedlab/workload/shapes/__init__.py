# SPDX-License-Identifier: MIT
"""Describes shapes of machines: which CPUs share a core, a cache or a node, and how fast they are (docs/shapes.md)."""

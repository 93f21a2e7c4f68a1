# SPDX-License-Identifier: MIT
"""The shapes of machines: which CPUs share a core, a cache, a node, and how fast they are
(docs/shapes.md)."""

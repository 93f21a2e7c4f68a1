# SPDX-License-Identifier: MIT
"""Provides maintainers' tools: benchmarks, soak tests, generated documents, and interleavings of stopped CPUs."""

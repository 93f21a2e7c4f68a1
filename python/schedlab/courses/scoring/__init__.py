# SPDX-License-Identifier: MIT
"""A policy's score card: a fixed set of workloads, with variants that a key draws, beside all other policies."""

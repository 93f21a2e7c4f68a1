# SPDX-License-Identifier: MIT
"""Sweeps: many runs with different parameters, and one table of their results (docs/sweeps.md).

`reading` reads a description (`description`), and `expanding` expands it to points, each a run with
a key. `command` executes them (schedlab.runs.executor). `rows` selects their results, which a
`dataset` stores. `ranking` finds the best setups.
"""

# SPDX-License-Identifier: MIT
"""Sweeps: many runs of which each differs from the others, and one table of what came of them.

From a description (`description`, read by `reading`) come points (`expanding`), each a run with a key. `command` has
them executed (schedlab.runs.executor); what they measured (`rows`) is kept in a `dataset`. `ranking` says which setups
are best; docs/sweeps.md.
"""

# SPDX-License-Identifier: MIT
"""Sweeps: many runs of which each differs from the others, and one table of what came of them.

From a description (`description`, read by `reading`) come points (`expanding`), each a run with a
key. `execution` has workers of Dask do them (`worker`, `one_run`), here or on a cluster, and keeps
what they measured in a `dataset`. `ranking` says which setups are best; docs/sweeps.md.
"""

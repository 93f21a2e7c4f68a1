# SPDX-License-Identifier: MIT
"""The gallery: a page for each policy, with what it is good at and where it fails (docs/gallery).

A sweep runs all policies under all kinds of work (`trials`); in it each policy's best and worst place are
looked for (`extremes`), drawn (`pictures`), and written into its page beside its code (`pages`, `code`).
"""

# SPDX-License-Identifier: MIT
"""Generates the gallery: a page for each policy, with its strengths and weaknesses (docs/gallery).

A sweep runs all policies under many kinds of workloads (`trials`). Each policy's best and worst
results are selected (`extremes`), drawn (`pictures`), and written to its page together with its
code (`pages`, `code`).
"""

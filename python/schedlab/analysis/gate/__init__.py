# SPDX-License-Identifier: MIT
"""A change of a policy, held against what was before: is anything worse, and by more than chance?"""

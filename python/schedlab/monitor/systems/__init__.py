# SPDX-License-Identifier: MIT
"""Adapters of the systems that can be watched, one for each kind of machine."""

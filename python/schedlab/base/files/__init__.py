# SPDX-License-Identifier: MIT
"""Reads untrusted or damaged files, and replaces only files that schedlab made.

Knows nothing of the files' meaning.
"""

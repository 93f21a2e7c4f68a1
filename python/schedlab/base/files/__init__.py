# SPDX-License-Identifier: MIT
"""Reads untrusted or damaged files, and replaces only schedlab's own files; independent of their meaning."""

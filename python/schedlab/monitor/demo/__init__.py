# SPDX-License-Identifier: MIT
"""`./schedlab demo`: serves the standalone page, using only Python's standard library."""

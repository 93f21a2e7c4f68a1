# SPDX-License-Identifier: MIT
"""The kernel under turns of other than normal length: what breaks then, by which of them, and how it comes about."""

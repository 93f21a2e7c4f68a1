# SPDX-License-Identifier: MIT
"""The page that stands alone: all of it in one file."""

# SPDX-License-Identifier: MIT
"""The standalone page: the complete monitor in one file."""

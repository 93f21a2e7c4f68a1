# SPDX-License-Identifier: MIT
"""A laboratory for CPU schedulers."""

__version__ = "0.1.0"

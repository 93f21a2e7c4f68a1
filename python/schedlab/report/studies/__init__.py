# SPDX-License-Identifier: MIT
"""The parts of the studies' pages."""

# SPDX-License-Identifier: MIT
"""Compilers, builds of the C sources, and the list of policies that the C sources define."""

# SPDX-License-Identifier: MIT
"""Tools, compilers and builds of the C sources, and the policies that they define; independent of machines."""

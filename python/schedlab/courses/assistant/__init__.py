# SPDX-License-Identifier: MIT
"""Functions for programs that write policies, also offered as tools of the Model Context Protocol."""

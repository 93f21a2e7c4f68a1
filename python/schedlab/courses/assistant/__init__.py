# SPDX-License-Identifier: MIT
"""What programs that write policies may do here: as functions, and as tools of the Model Context Protocol."""

# SPDX-License-Identifier: MIT
"""What all other packages build on: files, text output, the host and its processes, compilers."""

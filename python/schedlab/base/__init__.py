# SPDX-License-Identifier: MIT
"""What every package may use: files, text that is safe to show, this host and its processes, compilers and builds."""

# SPDX-License-Identifier: MIT
"""Score cards of policies: a fixed set of workloads, with variants drawn by a key, compared with other policies."""

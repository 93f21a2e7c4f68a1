# SPDX-License-Identifier: MIT
"""The host: its processor, and the start, sharing and end of processes; independent of scheduling."""

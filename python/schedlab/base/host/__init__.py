# SPDX-License-Identifier: MIT
"""The host: its processor, and how processes are started, limited and ended.

Knows nothing of scheduling.
"""

# SPDX-License-Identifier: MIT
"""This computer: its processor, and processes that are started, shared, and ended without a rest. It
knows nothing of scheduling."""

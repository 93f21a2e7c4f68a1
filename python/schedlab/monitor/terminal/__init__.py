# SPDX-License-Identifier: MIT
"""The terminal monitor: shows frames as text, and sends commands by keys."""

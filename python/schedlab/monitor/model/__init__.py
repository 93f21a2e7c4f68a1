# SPDX-License-Identifier: MIT
"""What a trace says of a system now, and of the last seconds, kept up record by record."""

from __future__ import annotations

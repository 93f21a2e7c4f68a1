# SPDX-License-Identifier: MIT
"""What can be watched. Each kind of machine has one adapter here; nothing else knows how it is reached."""

from __future__ import annotations

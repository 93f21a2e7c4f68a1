# SPDX-License-Identifier: MIT
"""The monitor in a terminal: the frames of a session as text, and keys for what it can be asked."""

from __future__ import annotations

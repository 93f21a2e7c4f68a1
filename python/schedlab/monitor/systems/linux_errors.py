# SPDX-License-Identifier: MIT
"""Error messages of a Linux kernel and of its policy server."""

from __future__ import annotations

import os

from schedlab.monitor.system import Refused
from schedlab.monitor.systems.guest_errors import GuestError


class LinuxError(GuestError):
    """The guest rejected a command; `number` is Linux's errno."""

    def __init__(self, action: str, number: int, words: str = "") -> None:
        self.number = number
        self.words = words or os.strerror(number)
        Refused.__init__(self, self.words, what=action)
        self.args = (action, number, words)  # pickle passes these to the constructor

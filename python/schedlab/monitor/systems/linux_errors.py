# SPDX-License-Identifier: MIT
"""Why a Linux kernel, or the server of policies there, did not do something."""

from __future__ import annotations

import os

from schedlab.monitor.system import Refused
from schedlab.monitor.systems.guest_errors import GuestError


class LinuxError(GuestError):
    """The guest said no. `number` is Linux's errno."""

    def __init__(self, what: str, number: int, words: str = "") -> None:
        Refused.__init__(self, f"{what}: {words or os.strerror(number)}")
        self.number = number
        self.words = words or os.strerror(number)

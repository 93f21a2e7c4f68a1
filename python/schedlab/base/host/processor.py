# SPDX-License-Identifier: MIT
"""Checks the host's processor, and suggests alternatives for unsupported machines."""

from __future__ import annotations

import os
import platform
import sys

from schedlab.errors import MachineUnfit

COMPLETE = "x86_64"
"""The only processor that supports all of schedlab; as in the launcher."""


def is_complete() -> bool:
    """Returns whether all machines run on this host."""
    return processor() == COMPLETE and sys.platform == "linux"


def processor() -> str:
    """Returns the processor's kind, as in `uname -m`."""
    return platform.machine()


def host_name() -> str:
    """Returns the host's kind for messages."""
    systems = {"linux": "", "darwin": "macOS on "}
    return systems.get(sys.platform, f"{sys.platform} on ") + processor()


def host_processors() -> int:
    """Returns the number of CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def no_spike() -> str:
    """Returns the message that Spike is not available here, with alternatives."""
    return (
        f"Spike is available only for Linux on x86-64, and this host is {host_name()}: add `machine='sim'`"
        " for studies and workload files, `machine='qemu'` for programs; or put your own Spike"
        " on the PATH (docs/faq.md)"
    )


def no_linux_guests() -> str:
    """Returns the message that Linux guests are not available here, with alternatives."""
    return (
        "policies for Linux and their programs are built only on x86-64, and this host is"
        f" {host_name()}: use `machine='qemu'` or `machine='sim'` (docs/faq.md)"
    )


def need_linux_guests() -> None:
    """Raises MachineUnfit if Linux guests are not available."""
    if not is_complete():
        raise MachineUnfit(no_linux_guests())

# SPDX-License-Identifier: MIT
"""Checks the host's processor, and suggests alternatives for machines that it does not support."""

import os
import platform
import sys

from schedlab.errors import MachineUnfit

SUPPORTED_PROCESSOR = "x86_64"
"""The only kind of processor that supports all of schedlab; the launcher has the same constant."""


def supports_all_machines() -> bool:
    """Returns whether every machine can run on this host."""
    return processor_kind() == SUPPORTED_PROCESSOR and sys.platform == "linux"


def processor_kind() -> str:
    """Returns the kind of processor, as `uname -m` prints it."""
    return platform.machine()


def host_name() -> str:
    """Returns the processor and the operating system, for messages."""
    systems = {"linux": "", "darwin": "macOS on "}
    return systems.get(sys.platform, f"{sys.platform} on ") + processor_kind()


def count_host_cpus() -> int:
    """Returns how many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def explain_no_spike() -> str:
    """Returns the message that Spike is not available here, with alternatives."""
    return (
        f"Spike is available only for Linux on x86-64, and this host is {host_name()}: add `machine='sim'`"
        " for studies and workload files, `machine='qemu'` for programs; or put your own Spike"
        " on the PATH (docs/faq.md)"
    )


def explain_no_linux_guests() -> str:
    """Returns the message that Linux guests are not available here, with alternatives."""
    return (
        "policies for Linux and their programs are built only on x86-64, and this host is"
        f" {host_name()}: use `machine='qemu'` or `machine='sim'` (docs/faq.md)"
    )


def need_linux_guests() -> None:
    """Raises MachineUnfit if Linux guests are not available."""
    if not supports_all_machines():
        raise MachineUnfit(explain_no_linux_guests())

# SPDX-License-Identifier: MIT
"""Machines run the policies. Each has one adapter here; nothing else knows their options."""

from __future__ import annotations

from schedlab.errors import WrongUsage, parameter
from schedlab.machines.base import Branching, Machine, Release
from schedlab.machines.kernel import Boot, KernelMachine
from schedlab.machines.linux.host import HostLinux
from schedlab.machines.linux.machine import FreeLinux, Linux
from schedlab.machines.qemu import Qemu
from schedlab.machines.sim import Simulator
from schedlab.machines.spike import Spike

KERNEL_MACHINES = ("spike", "qemu")
"""They run our kernel."""
SIMULATOR = "sim"
LINUX_MACHINES = (Linux.name, FreeLinux.name)
"""They run a Linux kernel in a guest: in instruction-counted time, or as fast as the host."""
HOST = HostLinux.name
"""The Linux kernel that this machine runs."""
LINUX_KERNELS = (*LINUX_MACHINES, HOST)
MACHINES = (*KERNEL_MACHINES, SIMULATOR, *LINUX_KERNELS)


def machine_named(name: str) -> Machine:
    """Returns the adapter of a machine in MACHINES. Raises WrongUsage for another name."""
    others: dict[str, type[Simulator | Linux]] = {
        each.name: each for each in (Simulator, Linux, FreeLinux, HostLinux)
    }
    if name not in MACHINES:
        raise WrongUsage(
            f"there is none; there are {', '.join(MACHINES)}", what=parameter("machine", name)
        )
    return kernel_machine(name) if name in KERNEL_MACHINES else others[name]()


def kernel_machine(name: str) -> KernelMachine:
    """The adapter of a machine in KERNEL_MACHINES."""
    return {"spike": Spike, "qemu": Qemu}[name]()


__all__ = [
    "HOST",
    "KERNEL_MACHINES",
    "LINUX_KERNELS",
    "LINUX_MACHINES",
    "MACHINES",
    "SIMULATOR",
    "Boot",
    "Branching",
    "KernelMachine",
    "Machine",
    "Release",
    "kernel_machine",
    "machine_named",
]

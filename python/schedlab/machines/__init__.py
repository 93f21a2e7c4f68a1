# SPDX-License-Identifier: MIT
"""Machines run the policies. Each has one adapter here; nothing else knows their options."""

from __future__ import annotations

from schedlab.machines.kernel import Boot, KernelMachine
from schedlab.machines.linux.host import HostLinux
from schedlab.machines.linux.machine import FreeLinux, Linux
from schedlab.machines.qemu import Qemu
from schedlab.machines.sim import Simulator
from schedlab.machines.spec import Branching, Machine, Release, machine_named, register
from schedlab.machines.spike import Spike, runs_here

KERNEL_MACHINES = ("spike", "qemu")
"""They run our kernel."""
SIMULATOR = "sim"
LINUX_MACHINES = (Linux.name, FreeLinux.name)
"""They run a Linux kernel in a guest: in instruction-counted time, or as fast as the host."""
HOST = HostLinux.name
"""The Linux kernel that this machine runs."""
LINUX_KERNELS = (*LINUX_MACHINES, HOST)
MACHINES = (*KERNEL_MACHINES, SIMULATOR, *LINUX_KERNELS)
register(Spike(), Qemu(), Simulator(), Linux(), FreeLinux(), HostLinux())
STANDARD_MACHINE = KERNEL_MACHINES[0] if runs_here() else SIMULATOR
"""Of commands that name none: the kernel on Spike, or where Spike does not run, the simulator."""


def kernel_machine(name: str) -> KernelMachine:
    """The adapter of a machine in KERNEL_MACHINES."""
    machine = machine_named(name)
    assert isinstance(machine, KernelMachine), name
    return machine


__all__ = [
    "HOST",
    "KERNEL_MACHINES",
    "LINUX_KERNELS",
    "LINUX_MACHINES",
    "MACHINES",
    "SIMULATOR",
    "STANDARD_MACHINE",
    "Boot",
    "Branching",
    "KernelMachine",
    "Machine",
    "Release",
    "kernel_machine",
    "machine_named",
]

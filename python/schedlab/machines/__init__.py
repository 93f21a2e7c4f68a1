# SPDX-License-Identifier: MIT
"""Adapters of the machines that run policies. Only a machine's adapter knows its options."""

from schedlab.machines.kernel import Boot, KernelMachine
from schedlab.machines.linux.host import HostLinux
from schedlab.machines.linux.machine import FreeLinux, Linux
from schedlab.machines.qemu import Qemu
from schedlab.machines.sim import Simulator
from schedlab.machines.spec import Branching, Machine, Release, machine_named, register
from schedlab.machines.spike import Spike, can_run_spike

KERNEL_MACHINES = ("spike", "qemu")
"""Machines that run the schedlab kernel."""
SIMULATOR = "sim"
LINUX_MACHINES = (Linux.name, FreeLinux.name)
"""Linux guests: with instruction-counted time, or at the host's speed."""
HOST = HostLinux.name
"""The Linux kernel of this machine."""
LINUX_KERNELS = (*LINUX_MACHINES, HOST)
MACHINES = (*KERNEL_MACHINES, SIMULATOR, *LINUX_KERNELS)
register(Spike(), Qemu(), Simulator(), Linux(), FreeLinux(), HostLinux())
DEFAULT_MACHINE = KERNEL_MACHINES[0] if can_run_spike() else SIMULATOR
"""Default machine: the kernel on Spike, or the simulator if this host has no Spike."""


def kernel_machine(name: str) -> KernelMachine:
    """Returns the adapter of a machine in KERNEL_MACHINES."""
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

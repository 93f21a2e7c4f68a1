# SPDX-License-Identifier: MIT
"""Machines run the policies. Each has one adapter here; nothing else knows their options."""

from __future__ import annotations

from schedlab.machines.base import Boot, Machine, Release
from schedlab.machines.qemu import Qemu
from schedlab.machines.sim import Simulator
from schedlab.machines.spike import Spike

KERNEL_MACHINES = ("spike", "qemu")
"""They run our kernel."""
SIMULATOR = "sim"
MACHINES = (*KERNEL_MACHINES, SIMULATOR)


def machine_named(name: str) -> Machine:
    """The adapter of a machine in MACHINES."""
    adapters: dict[str, type[Spike] | type[Qemu] | type[Simulator]] = {
        "spike": Spike,
        "qemu": Qemu,
        SIMULATOR: Simulator,
    }
    return adapters[name]()


__all__ = [
    "KERNEL_MACHINES",
    "MACHINES",
    "SIMULATOR",
    "Boot",
    "Machine",
    "Release",
    "machine_named",
]

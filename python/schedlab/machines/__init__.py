# SPDX-License-Identifier: MIT
"""Machines run our kernel. Each has one adapter here; nothing else knows their options."""

from __future__ import annotations

from schedlab.machines.base import Boot, Machine, Release
from schedlab.machines.qemu import Qemu
from schedlab.machines.spike import Spike

MACHINES = ("spike", "qemu")


def machine_named(name: str) -> Machine:
    """The adapter of a machine in MACHINES."""
    adapters: dict[str, type[Spike] | type[Qemu]] = {"spike": Spike, "qemu": Qemu}
    return adapters[name]()


__all__ = ["MACHINES", "Boot", "Machine", "Release", "machine_named"]

# SPDX-License-Identifier: MIT
"""Makes systems from setups, and checks setups."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from schedlab.base.toolchain.build import MODEL, SIMULATOR_LIBRARY, build
from schedlab.base.toolchain.policies import (
    FAIR,
    Catalogue,
    PolicyChoice,
    check_choices,
    read_catalogue,
    unknown,
)
from schedlab.base.toolchain.versions import commit
from schedlab.errors import WrongUsage, parameter
from schedlab.machines import KERNEL_MACHINES, SIMULATOR, machine_named
from schedlab.machines.kernel import KERNEL_CPUS_MAX
from schedlab.machines.linux.machine import Linux
from schedlab.machines.sim import Simulator
from schedlab.monitor.system import Setup, System
from schedlab.paths import ROOT
from schedlab.runs import results
from schedlab.runs.parts import supply
from schedlab.runs.plan import TICK_NS
from schedlab.units import format_time
from schedlab.workload.loading import TOOLS
from schedlab.workload.palette import Entry, palette

LINUX, HOST, RECORDED = "linux", "host", "recorded"
MACHINES = (*KERNEL_MACHINES, SIMULATOR, LINUX, HOST)
"""Machines that users can choose; a recorded run is chosen by its folder."""
PLAYED = (SIMULATOR, RECORDED)
"""Machines whose clock the monitor drives; pages run them in the browser."""

Maker = Callable[[Setup, Path], System]
"""Makes a system from a setup without starting the system. The folder is for the system's files."""


_SYSTEMS = "schedlab.monitor.systems"
_ADAPTERS = {
    **dict.fromkeys(KERNEL_MACHINES, ("kernel", "KernelSystem")),
    SIMULATOR: ("simulator", "SimulatorSystem"),
    RECORDED: ("recorded", "RecordedSystem"),
    LINUX: ("linux_guest", "LinuxGuestSystem"),
    HOST: ("linux_host", "LinuxHostSystem"),
}
"""Module and class of each machine's adapter.

Adapters load on demand, because most import large libraries.
"""


def make_system(setup: Setup, folder: Path) -> System:
    """Returns the adapter of the setup's machine."""
    module, name = _ADAPTERS[setup.machine]
    system: System = getattr(import_module(f"{_SYSTEMS}.{module}"), name)(setup, folder)
    return system


def make_ready(setup: Setup) -> None:
    """Builds and fetches what the setup's machine needs, with progress in the terminal.

    The page then opens without delay. Adapters check again, without output.
    """
    model = str(MODEL.relative_to(ROOT))
    if setup.machine in (RECORDED, HOST):
        build(model)
        return
    if setup.machine == SIMULATOR:
        build(SIMULATOR_LIBRARY, model)
        return
    build(model)
    supply((*machine_named(setup.machine).parts, *TOOLS))


@dataclass(frozen=True)
class Choices:
    """The policies and workloads that setups may use."""

    catalogue: Catalogue
    """All policies, including Linux's own class."""
    files: tuple[Path, ...] = ()
    """The user's workload files."""
    palette: Mapping[str, Entry] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "palette", palette(self.files))

    @cached_property
    def policies(self) -> list[dict[str, Any]]:
        """The policies, as `./schedlab policies` lists them."""
        return [asdict(policy) for policy in self.catalogue.values()]

    def shares_by(self, choice: PolicyChoice) -> str:
        """Returns what determines shares: tickets, weight, nice, groups or equal."""
        policy = self.catalogue.get(choice.name)
        if policy is None:
            return "equal"
        preset = policy.presets.get(choice.preset)
        return preset.shares_by if preset else policy.shares_by

    def check(self, setup: Setup) -> None:
        """Raises WrongUsage if no such system is possible."""
        if setup.machine == RECORDED:
            return
        self.check_policy(setup)
        most = cpus_max(setup.machine)
        if not 1 <= setup.cpus <= most:
            raise WrongUsage(
                f"{setup.machine} has 1 to {most} CPUs",
                what=parameter("cpus", setup.cpus),
                fix="choose a number in this range",
            )
        least_ns, most_ns = TICK_NS
        if not least_ns <= setup.tick_ns <= most_ns:
            raise WrongUsage(
                "out of range",
                what="`tick_ns=`",
                fix=f"choose {format_time(least_ns)} to {format_time(most_ns)}",
            )
        if not 0 <= setup.seed < 1 << 63:
            raise WrongUsage(
                "out of range",
                what=parameter("first_seed", setup.seed),
                fix=f"choose 0 to {(1 << 63) - 1}",
            )
        self.check_workloads(setup.workloads)

    def check_policy(self, setup: Setup) -> None:
        """Raises WrongUsage if the machine lacks the policy, or the policy lacks a tunable."""
        if setup.policy.name == FAIR.name and setup.machine not in (LINUX, HOST):
            raise WrongUsage(
                "only Linux has its own scheduler",
                what=parameter("policy", setup.policy),
                fix="add `machine='linux'`, or choose another",
            )
        check_choices(self.catalogue, (setup.policy,), dict(setup.settings))

    def check_workloads(self, names: Iterable[str]) -> None:
        """Raises WrongUsage unless the palette has all workloads."""
        for name in names:
            if name not in self.palette:
                raise WrongUsage(
                    unknown("workload", name, self.palette), what=parameter("workload", name)
                )


def read_choices(files: tuple[Path, ...] = ()) -> Choices:
    """Returns the built-in policies and workloads, and the user's workload files."""
    return Choices({**read_catalogue(), FAIR.name: FAIR}, files)


def cpus_max(machine: str) -> int:
    """Returns the maximum number of CPUs of a machine."""
    if machine in KERNEL_MACHINES:
        return KERNEL_CPUS_MAX
    if machine == SIMULATOR:
        return Simulator.cpus_max
    if machine == LINUX:
        return Linux.cpus_max
    return os.cpu_count() or 1


def software_of(setup: Setup) -> dict[str, Any]:
    """Returns schedlab's commit and the machine's version, for manifests."""
    return {**commit(), **_release(setup)}


def _release(setup: Setup) -> dict[str, Any]:
    if setup.machine == RECORDED and setup.source:
        manifest = results.read_manifest(setup.source)
        names = ("machine", "machine_version", "machine_origin", "memory_mib", "costs")
        facts = {name: manifest[name] for name in (*names, "boot_arguments") if name in manifest}
        return {**facts, "played_back": setup.source.name}
    if setup.machine == HOST:
        return {"machine_version": platform.release(), "machine_origin": "this host's kernel"}
    release = machine_named(setup.machine).release()
    return {"machine_version": release.version, "machine_origin": release.origin}

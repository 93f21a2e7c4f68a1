# SPDX-License-Identifier: MIT
"""Makes systems from setups, and checks setups."""

import os
import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from schedlab.base.toolchain.build import MODEL_LIBRARY, SIMULATOR_LIBRARY, build
from schedlab.base.toolchain.policies import (
    FAIR_POLICY,
    Catalogue,
    PolicyChoice,
    check_choices,
    describe_unknown_name,
    read_catalogue,
)
from schedlab.base.toolchain.versions import commit_facts
from schedlab.errors import WrongUsage, format_parameter
from schedlab.machines import KERNEL_MACHINES, SIMULATOR, machine_named
from schedlab.machines.kernel import KERNEL_CPUS_MAX
from schedlab.machines.linux.machine import Linux
from schedlab.machines.published import is_published
from schedlab.machines.sim import Simulator
from schedlab.monitor.system import Setup, System
from schedlab.paths import ROOT
from schedlab.runs import results
from schedlab.runs.parts import build_parts
from schedlab.runs.plan import TICK_RANGE_NS
from schedlab.units import format_time
from schedlab.workload.loading import DISK_TOOLS
from schedlab.workload.palette import PaletteEntry, read_palette

LINUX_MACHINE, HOST_MACHINE, RECORDED_MACHINE = "linux", "host", "recorded"
MACHINES = (*KERNEL_MACHINES, SIMULATOR, LINUX_MACHINE, HOST_MACHINE)
"""Machines that users can choose; a recorded run is chosen by its folder."""
PLAYED_MACHINES = (SIMULATOR, RECORDED_MACHINE)
"""Machines whose clock the monitor drives. A page can run them in the browser."""

SystemMaker = Callable[[Setup, Path], System]
"""Makes a system from a setup without starting the system. The folder is for the system's files."""


_SYSTEMS = "schedlab.monitor.systems"
_ADAPTERS = {
    **dict.fromkeys(KERNEL_MACHINES, ("kernel", "KernelSystem")),
    SIMULATOR: ("simulator", "SimulatorSystem"),
    RECORDED_MACHINE: ("recorded", "RecordedSystem"),
    LINUX_MACHINE: ("linux_guest", "LinuxGuestSystem"),
    HOST_MACHINE: ("linux_host", "LinuxHostSystem"),
}
"""Module and class of each machine's adapter, imported on demand, because most need large libraries."""


def make_system(setup: Setup, folder: Path) -> System:
    """Returns the adapter of the setup's machine."""
    module, name = _ADAPTERS[setup.machine]
    system: System = getattr(import_module(f"{_SYSTEMS}.{module}"), name)(setup, folder)
    return system


def build_requirements(setup: Setup) -> None:
    """Builds and fetches what the setup's machine needs, with progress in the terminal.

    Called before the page opens; the adapter's own check then has nothing left to do.
    """
    model = str(MODEL_LIBRARY.relative_to(ROOT))
    if setup.machine in (RECORDED_MACHINE, HOST_MACHINE):
        build(model)
        return
    if setup.machine == SIMULATOR:
        build(SIMULATOR_LIBRARY, model)
        return
    build(model)
    build_parts((*machine_named(setup.machine).parts, *DISK_TOOLS))


@dataclass(frozen=True)
class SetupChoices:
    """The policies and workloads that setups may use."""

    catalogue: Catalogue
    """All policies, including the fair class of Linux."""
    files: tuple[Path, ...] = ()
    """The user's workload files."""
    palette: Mapping[str, PaletteEntry] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "palette", read_palette(self.files))

    @cached_property
    def policies(self) -> list[dict[str, Any]]:
        """The policies, as `./schedlab policies` lists them."""
        return [asdict(policy) for policy in self.catalogue.values()]

    def share_attribute(self, choice: PolicyChoice) -> str:
        """Returns what determines fair shares under a policy: tickets, weight, nice, groups or equal."""
        policy = self.catalogue.get(choice.name)
        if policy is None:
            return "equal"
        preset = policy.presets.get(choice.preset)
        return preset.shares_by if preset else policy.shares_by

    def check(self, setup: Setup) -> None:
        """Raises WrongUsage if the setup is impossible on its machine."""
        if setup.machine == RECORDED_MACHINE:
            return
        self.check_policy(setup)
        cpus_limit = cpus_max(setup.machine)
        if not 1 <= setup.cpus <= cpus_limit:
            raise WrongUsage(
                f"{setup.machine} has 1 to {cpus_limit} CPUs",
                what=format_parameter("cpus", setup.cpus),
                fix="choose a number in this range",
            )
        least_ns, most_ns = TICK_RANGE_NS
        if not least_ns <= setup.tick_ns <= most_ns:
            raise WrongUsage(
                "out of range",
                what="`tick_ns=`",
                fix=f"choose {format_time(least_ns)} to {format_time(most_ns)}",
            )
        if not 0 <= setup.seed < 1 << 63:
            raise WrongUsage(
                "out of range",
                what=format_parameter("first_seed", setup.seed),
                fix=f"choose 0 to {(1 << 63) - 1}",
            )
        self.check_workloads(setup.workloads)

    def check_policy(self, setup: Setup) -> None:
        """Raises WrongUsage if the machine lacks the policy, or the policy lacks a tunable."""
        if setup.policy.name == FAIR_POLICY.name and setup.machine not in (
            LINUX_MACHINE,
            HOST_MACHINE,
        ):
            raise WrongUsage(
                "only Linux has its own scheduler",
                what=format_parameter("policy", setup.policy),
                fix="add `machine='linux'`, or choose another policy",
            )
        if is_published(setup.policy):
            raise WrongUsage(
                "the live monitor cannot run sched_ext schedulers",
                what=format_parameter("policy", setup.policy),
                fix="run it in the simulator, keep the run, and play its folder",
            )
        check_choices(self.catalogue, (setup.policy,), dict(setup.settings))

    def check_workloads(self, names: Iterable[str]) -> None:
        """Raises WrongUsage unless the palette has all workloads."""
        for name in names:
            if name not in self.palette:
                raise WrongUsage(
                    describe_unknown_name("workload", name, self.palette),
                    what=format_parameter("workload", name),
                )


def read_choices(files: tuple[Path, ...] = ()) -> SetupChoices:
    """Returns the built-in policies and workloads, and the user's workload files."""
    return SetupChoices({**read_catalogue(), FAIR_POLICY.name: FAIR_POLICY}, files)


def cpus_max(machine: str) -> int:
    """Returns the maximum number of CPUs of a machine."""
    if machine in KERNEL_MACHINES:
        return KERNEL_CPUS_MAX
    if machine == SIMULATOR:
        return Simulator.cpus_max
    if machine == LINUX_MACHINE:
        return Linux.cpus_max
    return os.cpu_count() or 1


def software_facts(setup: Setup) -> dict[str, Any]:
    """Returns schedlab's commit and the machine's version, for manifests."""
    return {**commit_facts(), **_machine_release(setup)}


def _machine_release(setup: Setup) -> dict[str, Any]:
    """Returns manifest entries of the machine: name, version and origin."""
    if setup.machine == RECORDED_MACHINE and setup.source:
        manifest = results.read_manifest(setup.source)
        names = ("machine", "machine_version", "machine_origin", "memory_mib", "costs")
        facts = {name: manifest[name] for name in (*names, "boot_arguments") if name in manifest}
        return {**facts, "played_back": setup.source.name}
    if setup.machine == HOST_MACHINE:
        return {"machine_version": platform.release(), "machine_origin": "this host's kernel"}
    release = machine_named(setup.machine).release()
    return {"machine_version": release.version, "machine_origin": release.origin}

# SPDX-License-Identifier: MIT
"""Defines the loads of a soak: one or more commands each, as a user would start them."""

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from schedlab.base.host.isolated import module_command
from schedlab.errors import WrongUsage
from schedlab.paths import BUILD_FOLDER, ROOT

PART_LOG = "{}.log"
_CPUS = 2
_SWEEP_FILE = ROOT / "sweeps" / "mlfq-mixed.yaml"
_SWEEP_SETUPS, _SWEEP_SETUPS_PER_SECOND = 258, 60
"""Sizes the sweep so that its worker is busy until the end."""


@dataclass(frozen=True)
class Part:
    """A command of a load, and how it ends."""

    name: str
    command: Sequence[str]
    ends_by: signal.Signals | None = None
    """None: it ends on its own when the time has elapsed."""
    statuses: tuple[int, ...] = (0,)
    """Valid exit statuses."""
    values_file: str = ""
    """The file with reported values; "": its log."""


@dataclass(frozen=True)
class Load:
    """A load to run for hours: programs (parts) that run at the same time."""

    name: str
    summary: str
    make: Callable[[float, Path], list[Part]]
    """Creates the parts, given the seconds and the folder, and builds what they need."""
    steady: tuple[str, ...] = ()
    """Values that should not grow; others are counters."""


def page(seconds: float, folder: Path) -> list[Part]:
    """Returns the monitor with two simulators, and a browser that controls them."""
    from schedlab.base.toolchain.policies import read_catalogue
    from schedlab.base.toolchain.tools import BROWSERS, find_browser
    from schedlab.runs.parts import build_parts

    browser = find_browser()
    if not browser:
        raise WrongUsage(
            f"soak page: no browser is here, one of {', '.join(BROWSERS)}. Install one, or name other loads"
        )
    build_parts(["simulator"])
    policies = ",".join(list(read_catalogue())[:2])
    monitor = ("monitor", "--machine", "sim", "--policy", policies, "--no-browser")
    visitor = module_command("schedlab_tools.soak.visitor", browser, PART_LOG.format("server"))
    return [
        Part("server", module_command("schedlab", *monitor), signal.SIGINT),
        Part("browser", visitor, signal.SIGTERM),
    ]


def sweep(seconds: float, folder: Path) -> list[Part]:
    """Returns one sweep of a simulator, with one worker."""
    seeds = max(1, int(seconds * _SWEEP_SETUPS_PER_SECOND / _SWEEP_SETUPS))
    arguments = (
        "sweep",
        str(_SWEEP_FILE),
        "--seeds",
        f"1..{seeds}",
        "--jobs",
        "1",
        "--out",
        "dataset",
    )
    interrupted = 128 + signal.SIGINT
    return [Part("sweep", module_command("schedlab", *arguments), signal.SIGINT, (0, interrupted))]


def serve(seconds: float, folder: Path) -> list[Part]:
    """Returns `linux serve` in a guest, which cycles through all policies while processes come and go."""
    from schedlab.machines.linux import parts

    parts.build_programs_archive()
    command = module_command("schedlab_tools.soak.guest", str(int(seconds)))
    return [Part("guest", command, values_file="guest/console.log")]


def storm(seconds: float, folder: Path) -> list[Part]:
    """Returns the schedlab kernel on QEMU, with workers that fork, kill, switch policies and fill the disk."""
    from schedlab.base.toolchain.build import KERNEL_PROGRAM, build
    from schedlab.base.toolchain.policies import read_catalogue
    from schedlab.machines import Boot, kernel_machine

    build("kernel", "soak-image")
    policies = " ".join(read_catalogue())
    command = f"storm 1 {int(seconds)} 6 60 {policies}"
    boot = Boot(
        KERNEL_PROGRAM,
        BUILD_FOLDER / "soak.img",
        _CPUS,
        128,
        f'tick=1ms run="{command}"',
        traced=False,
    )
    return [Part("machine", kernel_machine("qemu").command(boot))]


LOADS = {
    load.name: load
    for load in (
        Load("page", "the monitor's page with two systems", page, ("js_heap_bytes", "dom_nodes")),
        Load("sweep", "a sweep", sweep),
        Load(
            "serve",
            "`linux serve` in a guest",
            serve,
            ("server_memory_kib", "server_files", "kernel_memory_kib", "guest_processes"),
        ),
        Load(
            "storm", "the schedlab kernel under a storm", storm, ("free_pages", "guest_processes")
        ),
    )
}

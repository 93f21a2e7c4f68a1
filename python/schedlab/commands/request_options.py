# SPDX-License-Identifier: MIT
"""Options of commands that run a workload under policies, one per field of
schedlab.runs.request.Request.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, TypeVar

import click

from schedlab.base.display.terminal import say
from schedlab.base.host.processor import host_name
from schedlab.base.toolchain.policies import DEFAULT_POLICY
from schedlab.commands.options import (
    BUDGET,
    CHANGE,
    CPUS,
    DELAY,
    FOLDER,
    LIMIT,
    MEMORY,
    PATH,
    POLICIES,
    POLICY_SETTING,
    SEED,
    SHAPE,
    TICK,
    MachineName,
)
from schedlab.machines import DEFAULT_MACHINE, SIMULATOR
from schedlab.report.adaptive_seeds import SeedBudget
from schedlab.runs.request import DEFAULT_PROGRAM, DEFAULT_WORKLOAD_FILE, Request
from schedlab.workload.costs import KERNEL_COSTS

T = TypeVar("T", bound=Callable[..., Any])

KERNEL_HELP = "Your own kernel: a Linux image on linux, another build of the schedlab kernel on spike and qemu."

workload_option = click.option(
    "--workload",
    metavar="COMMAND",
    help="Run this program of the guest with its options, such as 'cpu-bound -n "
    "10', or this workload file; see `./schedlab workloads`. [default: "
    f"{DEFAULT_PROGRAM}; on sim {DEFAULT_WORKLOAD_FILE}]",
)


decide_option = click.option(
    "--decide",
    is_flag=False,
    flag_value=str(SeedBudget()),
    type=BUDGET,
    metavar="[SEEDS|TIME]",
    help="Add seeds to each test until it has a winner, up to this number of seeds or this time."
    f" [without a value: {SeedBudget()} seeds]",
)
out_option = click.option(
    "--out", type=FOLDER, help="Folder for the results.  [default: a new one in runs/]"
)


def request_from(options: Mapping[str, Any]) -> Request:
    """Returns the completed request of a command's options."""
    fields = {name: options[name] for name in Request.__dataclass_fields__ if name in options}
    return Request(**fields).filled()


def choose_machine_without_spike() -> str | None:
    """Returns the simulator if this host has no Spike, with a message; otherwise None."""
    if DEFAULT_MACHINE != SIMULATOR:
        return None
    say(
        "schedlab: Spike is available only for Linux on x86-64, and this host is "
        f"{host_name()}: the simulator runs this instead (--machine {SIMULATOR})"
    )
    return SIMULATOR


def request_options(
    machine: str = DEFAULT_MACHINE,
    cpus: str = "",
    costs: str = KERNEL_COSTS.name,
    without: tuple[str, ...] = (),
    only: tuple[str, ...] = (),
    recorded_default: str = "",
) -> Callable[[T], T]:
    """Adds the options to a command, except those for the parameters
    `without`, or only those for `only`.

    The other arguments are defaults that the help shows. `cpus`: "" for the machine's number of
    CPUs. `recorded_default`: the help's text for defaults that a recording provides.
    """
    cpus_default = cpus or "1-4; on linux and host all CPUs of this host"
    shown_default = recorded_default or True
    options = {
        "changes": click.option(
            "--with",
            "changes",
            multiple=True,
            type=CHANGE,
            help="Change a value in the workload file: tasks.cpu.instance=40. May be repeated.",
        ),
        "policies": click.option(
            "--policy",
            "policies",
            default=DEFAULT_POLICY,
            show_default=shown_default,
            type=POLICIES,
            help="POLICY or POLICY:PRESET, several with commas; see `./schedlab policies`."
            " On Linux also fair, the kernel's own scheduler, and scx:NAME, an "
            "installed scx_NAME.",
        ),
        "settings": click.option(
            "--set",
            "settings",
            multiple=True,
            type=POLICY_SETTING,
            help="Set a tunable, for all policies or, as POLICY.NAME=VALUE, for one. May "
            "be repeated.",
        ),
        "cpus": click.option(
            "--cpus",
            type=CPUS,
            default=cpus or None,
            help="Numbers of CPUs: 4, 1,2,8, 1-4, 1-3,7 or 1-64*2. [default: "
            f"{recorded_default or cpus_default}]",
        ),
        "machine": click.option(
            "--machine",
            default=machine,
            show_default=True,
            type=MachineName(),
            help="spike and qemu run the schedlab kernel, sim is the simulator (workload "
            "files only), linux is a Linux guest, host is this machine's kernel. "
            "spike, sim and linux give the same run every time.",
        ),
        "repeats": click.option(
            "--runs",
            "repeats",
            default=1,
            show_default=True,
            type=click.IntRange(1, 10000),
            help="Number of repetitions, each with its own seed, counted from --seed.",
        ),
        "limit": click.option(
            "--limit",
            type=LIMIT,
            help="Time of the guest after which a run is ended.  [default: "
            f"{recorded_default or '60s; of a workload file with a longer duration, that and half a minute'}]",
        ),
        "seed": click.option(
            "--seed",
            default=1,
            show_default=shown_default,
            type=SEED,
            help="Seed of all random numbers of the run.",
        ),
        "tick": click.option(
            "--tick",
            type=TICK,
            help=f"Length of a tick.  [default: {recorded_default or '1ms; on linux always 4ms'}]",
        ),
        "costs": click.option(
            "--costs",
            metavar="PROFILE",
            help="Costs of operations on sim: kernel, none, textbook, or a profile of "
            "./schedlab calibrate, with changes: kernel,fork=20000. [default: "
            f"{recorded_default or costs}]",
        ),
        "delays": click.option(
            "--delay",
            "delays",
            multiple=True,
            type=DELAY,
            help="Make an operation take longer by this time, as on another machine: fork=380us.",
        ),
        "shape": click.option(
            "--shape",
            type=SHAPE,
            help="Shape of the machine: which CPUs share a core, a cache or a node, and "
            "their speeds. A file, or a name of `./schedlab shape`. [default: all CPUs are equal]",
        ),
        "kernel": click.option("--kernel", type=PATH, help=KERNEL_HELP),
        "memory": click.option(
            "--memory",
            type=MEMORY,
            help="Memory of the machine, MiB.  [default: 512; of linux 1024]",
        ),
        "ignore_limits": click.option(
            "--ignore-limits",
            is_flag=True,
            help="On host, run even if control groups or nice values share CPU time in a "
            "way that the policies ignore.",
        ),
        "unchecked": click.option(
            "--unchecked",
            is_flag=True,
            help="Also run changed policies that have not passed `./schedlab check`.",
        ),
    }
    chosen = [
        option
        for name, option in options.items()
        if name not in without and name in (only or options)
    ]
    return lambda command: reduce(lambda made, option: option(made), reversed(chosen), command)

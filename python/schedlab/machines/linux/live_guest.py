# SPDX-License-Identifier: MIT
"""Starts a Linux guest that runs until a command ends it, as the monitor needs it.

Its trace and its commands use two ports; see linux/guest/live.sh and `steer.c`. Commands arrive at
different times in each run. So the guest cannot be repeatable, and does not count instructions.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.linux.guest import (
    PORT_BUS_OPTIONS,
    GuestJob,
    PreparedGuest,
    Wiring,
    port_options,
    prepare,
)
from schedlab.machines.linux.parts import LINUX_BUILD, build_linux
from schedlab.paths import ROOT

LIVE_SCRIPT = ROOT / "linux" / "guest" / "live.sh"
WORKLOADS_FOLDER = "workloads"
"""Folder of the workloads in the guest, below /job."""


@dataclass(frozen=True)
class LiveJob:
    """The initial parameters of a live guest."""

    policy: str
    settings: tuple[tuple[str, int], ...] = ()
    cpus: int = 2
    memory_mib: int = 1024
    seed: int = 1
    files: Mapping[str, bytes | Path] = field(default_factory=dict)
    """Workload files by their names in /job/workloads, which is on the PATH of workloads."""
    objects: Path | None = None
    """Folder with schedlab-linux and its BPF objects; None: the folder of the build."""
    kvm: bool = True


def prepare_live(
    job: LiveJob, folder: Path, commands_socket: int, control_socket: int
) -> PreparedGuest:
    """Writes the guest's ramdisk to `folder`; returns the command that starts the guest there.

    The machine writes its trace to that folder. `commands_socket` and `control_socket`: inherited socket
    descriptors for commands to the guest and to QEMU.
    """
    build_linux("linux-host", "linux-workloads")
    guest_job = GuestJob(
        files={**live_programs(job.objects or LINUX_BUILD), **live_workloads(job.files)},
        script=f"exec sh {LIVE_SCRIPT.name} {shlex.join(live_arguments(job))}\n",
        cpus=job.cpus,
        memory_mib=job.memory_mib,
        repeatable=False,
        seed=job.seed,
        programs=(),
        kvm=job.kvm,
    )
    return prepare(guest_job, folder, live_wiring(commands_socket, control_socket))


def live_wiring(commands_socket: int, control_socket: int) -> Wiring:
    """Returns the guest's console and ports: trace, commands, and QEMU's control."""
    options = (
        *("-serial", "stdio", *PORT_BUS_OPTIONS),
        *port_options("trace", 1, f"file,path={TRACE_FILE}"),
        *port_options("steering", 2, f"socket,fd={commands_socket}"),
        *(
            "-chardev",
            f"socket,id=control,fd={control_socket}",
            "-mon",
            "chardev=control,mode=control",
        ),
    )
    # Among KVM's clocks, only kvm-clock stops while the guest is paused.
    return Wiring(options, ("schedlab_live=1",), ("clocksource=kvm-clock",))


def live_programs(folder: Path) -> dict[str, Path]:
    """Returns the programs of a live guest, by their names below /job."""
    return {
        LIVE_SCRIPT.name: LIVE_SCRIPT,
        "schedlab-linux": folder / "schedlab-linux",
        "steer": LINUX_BUILD / "steer",
        f"{WORKLOADS_FOLDER}/play": LINUX_BUILD / "play",
        **{f"bpf/{path.name}": path for path in folder.glob("bpf/*.bpf.o")},
    }


def live_workloads(files: Mapping[str, bytes | Path]) -> dict[str, bytes | Path]:
    """Returns the workload files by their paths in the guest."""
    return {f"{WORKLOADS_FOLDER}/{name}": content for name, content in files.items()}


def live_arguments(job: LiveJob) -> list[str]:
    """Returns the arguments of linux/guest/live.sh."""
    words = [str(job.seed), job.policy]
    for name, value in job.settings:
        words += ["--set", f"{name}={value}"]
    return words

# SPDX-License-Identifier: MIT
"""Runs a Linux guest until a command ends it; its trace and its commands use two ports.

See linux/guest/live.sh and `steer.c`. The guest does not count instructions: commands arrive at
different times in each run, so a live guest cannot be repeatable.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.linux.guest import PORTS, GuestJob, Prepared, Wiring, port, prepare
from schedlab.machines.linux.parts import LINUX, build_linux
from schedlab.paths import ROOT

LIVE_SCRIPT = ROOT / "linux" / "guest" / "live.sh"
WORKLOADS = "workloads"
"""The guest's folder of workloads, below /job."""


@dataclass(frozen=True)
class LiveJob:
    """The initial parameters of a live guest."""

    policy: str
    settings: tuple[tuple[str, int], ...] = ()
    cpus: int = 2
    memory_mib: int = 1024
    seed: int = 1
    files: Mapping[str, bytes | Path] = field(default_factory=dict)
    """Files by their names in /job/workloads, which is on the PATH of workloads."""
    objects: Path | None = None
    """Folder with schedlab-linux and its BPF objects; None means the built ones."""
    kvm: bool = True


def prepare_live(job: LiveJob, folder: Path, steering: int, control: int) -> Prepared:
    """Writes the guest's ramdisk to `folder` and returns the command that starts the machine there.

    The machine writes its trace to that folder. `steering` and `control` are inherited socket
    descriptors for commands to the guest and to QEMU.
    """
    build_linux("linux-host", "linux-workloads")
    guest_job = GuestJob(
        files={**programs(job.objects or LINUX), **workloads(job.files)},
        script=f"exec sh {LIVE_SCRIPT.name} {shlex.join(arguments(job))}\n",
        cpus=job.cpus,
        memory_mib=job.memory_mib,
        repeatable=False,
        seed=job.seed,
        programs=(),
        kvm=job.kvm,
    )
    return prepare(guest_job, folder, wiring(steering, control))


def wiring(steering: int, control: int) -> Wiring:
    """Returns the guest's console and ports: trace, commands, and QEMU's control."""
    options = (
        *("-serial", "stdio", *PORTS),
        *port("trace", 1, f"file,path={TRACE_FILE}"),
        *port("steering", 2, f"socket,fd={steering}"),
        *("-chardev", f"socket,id=control,fd={control}", "-mon", "chardev=control,mode=control"),
    )
    # Of KVM's clocks, only this one stops while the guest is paused.
    return Wiring(options, ("schedlab_live=1",), ("clocksource=kvm-clock",))


def programs(folder: Path) -> dict[str, Path]:
    """Returns the programs of a live guest, by their names below /job."""
    return {
        LIVE_SCRIPT.name: LIVE_SCRIPT,
        "schedlab-linux": folder / "schedlab-linux",
        "steer": LINUX / "steer",
        f"{WORKLOADS}/play": LINUX / "play",
        **{f"bpf/{path.name}": path for path in folder.glob("bpf/*.bpf.o")},
    }


def workloads(files: Mapping[str, bytes | Path]) -> dict[str, bytes | Path]:
    return {f"{WORKLOADS}/{name}": content for name, content in files.items()}


def arguments(job: LiveJob) -> list[str]:
    """Returns the arguments of linux/guest/live.sh."""
    words = [str(job.seed), job.policy]
    for name, value in job.settings:
        words += ["--set", f"{name}={value}"]
    return words

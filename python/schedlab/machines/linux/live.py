# SPDX-License-Identifier: MIT
"""A Linux guest that goes on until it is told to end, and meanwhile is watched and steered from
outside: its trace comes out of one port, commands go in by another (linux/guest/live.sh, steer.c).

Its time is the host's, or that of emulation as it comes. Where instructions are counted, nothing may
go in or out of a guest without being a part of what would have to be the same each time.
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
"""The folder, below /job, of what the guest can start."""


@dataclass(frozen=True)
class LiveJob:
    """What a live guest begins with."""

    policy: str
    settings: tuple[tuple[str, int], ...] = ()
    cpus: int = 2
    memory_mib: int = 1024
    seed: int = 1
    files: Mapping[str, bytes | Path] = field(default_factory=dict)
    """Files by their names below /job/workloads, which is on the PATH of what is started."""
    objects: Path | None = None
    """The folder that has schedlab-linux and its BPF objects; None: those of this house, made if
    need be."""
    kvm: bool = True


def prepare_live(job: LiveJob, folder: Path, steering: int, control: int) -> Prepared:
    """Writes the guest's ramdisk into `folder`; says how to start the machine, from within there,
    where it then writes its trace.

    `steering` and `control`: descriptors of sockets that it inherits, by which the guest and QEMU
    itself are told what to do.
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
    """A console, the trace's port, that for steering, and QEMU's own."""
    options = (
        *("-serial", "stdio", *PORTS),
        *port("trace", 1, f"file,path={TRACE_FILE}"),
        *port("steering", 2, f"socket,fd={steering}"),
        *("-chardev", f"socket,id=control,fd={control}", "-mon", "chardev=control,mode=control"),
    )
    # Of the clocks that KVM gives a guest, this one stands still while the guest is paused.
    return Wiring(options, ("schedlab_live=1",), ("clocksource=kvm-clock",))


def programs(folder: Path) -> dict[str, Path]:
    """The programs that a live guest needs, by their names below /job."""
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
    """The arguments of linux/guest/live.sh."""
    words = [str(job.seed), job.policy]
    for name, value in job.settings:
        words += ["--set", f"{name}={value}"]
    return words

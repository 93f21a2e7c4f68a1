# SPDX-License-Identifier: MIT
"""Plays workloads of the simulator's format on the kernel, on Spike, and in the simulator."""

from __future__ import annotations

from pathlib import Path

from built_once import build_once
from guest_machine import TICK_NS, Guest, run_guest, sound_trace
from schedlab import trace
from schedlab.base.toolchain.build import DISK_IMAGE
from schedlab.workload.binary_steps import encode_workload_text
from schedlab.workload.loading import PLAY_COMMAND, make_disk
from simulator_command import built, simulate


def played(
    folder: Path,
    text: str,
    policy: str = "rr",
    cpus: int = 1,
    tunables: str = "",
    tick_ns: int = TICK_NS,
) -> Guest:
    """Returns the outcome of the workload on the kernel, on Spike; `tunables` as NAME=VALUE,…"""
    build_once("image")
    disk = make_disk(DISK_IMAGE, encode_workload_text(text, tick_ns), built("mkfs"), folder)
    words = f"tick={tick_ns // 1000}us policy={policy}" + (f" set={tunables}" if tunables else "")
    return run_guest(folder, PLAY_COMMAND, cpus=cpus, arguments=words, traced=True, image=disk)


def play(
    folder: Path,
    text: str,
    policy: str = "rr",
    cpus: int = 1,
    tunables: str = "",
    tick_ns: int = TICK_NS,
) -> trace.Trace:
    """Returns the trace of the workload on the kernel, on Spike."""
    guest = played(folder, text, policy, cpus, tunables, tick_ns)
    assert guest.status == 0, guest.console
    return sound_trace(guest.trace)


def simulated(
    folder: Path, text: str, policy: str = "rr", cpus: int = 1, tunables: str = ""
) -> trace.Trace:
    """Returns the trace of the workload in the simulator; `tunables` as NAME=VALUE,…"""
    path = folder / "simulated.bin"
    options = ["--policy", policy, *(("--set", tunables) if tunables else ())]
    result = simulate(folder, text, *options, "--cpus", str(cpus), "--trace", str(path))
    assert result.returncode == 0, result.stderr
    return sound_trace(path)

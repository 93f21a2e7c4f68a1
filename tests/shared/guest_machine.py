# SPDX-License-Identifier: MIT
"""Starts the kernel for a test and waits for it to end."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from built_once import build_once
from schedlab import trace
from schedlab.base.toolchain.build import DISK_IMAGE, KERNEL_PROGRAM
from schedlab.machines import Boot, kernel_machine
from schedlab.machines.folder import TRACE_FILE

TICK_NS = 1_000_000
"""The tick of traced()."""
ROUND_NS = 5_000
"""A CPU is notified by another and reacts within this time."""


@dataclass(frozen=True)
class Guest:
    """The outcome of a machine: its exit status, its console, and its trace if requested."""

    status: int
    console: str
    trace: Path


def run_guest(
    folder: Path,
    command: str,
    *,
    machine: str = "spike",
    cpus: int = 1,
    arguments: str = "tick=1ms",
    limit: str = "120s",
    memory_mib: int = 512,
    image: Path = DISK_IMAGE,
    traced: bool = False,
    typed: str = "",
    replacement: tuple[str, str] | None = None,
    host_seconds: float = 300,
    options: Sequence[str] = (),
) -> Guest:
    """Boots, runs `command` from init, and returns the outcome. Raises TimeoutExpired.

    `options`: further options of the machine's program.

    Without a command init runs the shell, which reads `typed`. In the command that starts the
    machine, the first part of `replacement` is replaced by the second.
    """
    build_once("kernel", "image")
    words = [arguments, f"limit={limit}"]
    words += [f"trace={TRACE_FILE}"] if traced else []
    words += [f'run="{command}"'] if command else []
    boot = Boot(KERNEL_PROGRAM, image, cpus, memory_mib, " ".join(words), traced=traced)
    program, *start = kernel_machine(machine).command(boot)
    start = [program, *options, *start]
    result = subprocess.run(
        [word.replace(*replacement) if replacement else word for word in start],
        cwd=folder,
        input=typed,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=host_seconds,
        check=False,
    )
    return Guest(result.returncode, result.stdout, folder / TRACE_FILE)


def traced(
    folder: Path,
    command: str,
    cpus: int,
    arguments: str = "",
    *,
    tick_ns: int = TICK_NS,
    seed: int = 1,
    replacement: tuple[str, str] | None = None,
) -> trace.Trace:
    """Returns the sound trace of a successful run on Spike."""
    boot = f"tick={tick_ns}ns seed={seed} {arguments}"
    guest = run_guest(
        folder, command, cpus=cpus, arguments=boot, traced=True, replacement=replacement
    )
    assert guest.status == 0, guest.console
    return sound_trace(guest.trace)


def sound_trace(path: Path) -> trace.Trace:
    """Returns the trace in a file, after checking that it is complete and valid."""
    events = trace.read(path)
    trace.validate(events)
    assert events.lost == 0
    return events

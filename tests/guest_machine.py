# SPDX-License-Identifier: MIT
"""Starts our kernel for a test and waits for its end."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from schedlab.build import IMAGE, KERNEL, build
from schedlab.machines import Boot, machine_named
from schedlab.machines.base import TRACE_FILE


@dataclass(frozen=True)
class Guest:
    """How a machine ended: its exit status, its console, its trace if it was asked for one."""

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
    traced: bool = False,
    host_seconds: float = 300,
) -> Guest:
    """Boots, runs `command` from init, and gives what came of it. Raises TimeoutExpired."""
    build("kernel", "image")
    words = [arguments, f"limit={limit}"]
    words += [f"trace={TRACE_FILE}"] if traced else []
    words += [f'run="{command}"'] if command else []
    boot = Boot(KERNEL, IMAGE, cpus, memory_mib, " ".join(words), traced=traced)
    done = subprocess.run(
        machine_named(machine).command(boot),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=host_seconds,
        check=False,
    )
    return Guest(done.returncode, done.stdout, folder / TRACE_FILE)

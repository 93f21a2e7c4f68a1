# SPDX-License-Identifier: MIT
"""Tests that a monitor's commands to a machine on Spike are kept, and that replaying them
reproduces the run.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from processes import wait_until
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.machines import Boot, kernel_machine
from schedlab.machines.folder import TRACE_FILE, TYPED_FILE
from schedlab.machines.kernel import KERNEL_PARTS
from schedlab.monitor.system import Setup
from schedlab.monitor.systems.kernel import DISK_FILE, boot_arguments
from schedlab.runs.parts import build_parts
from schedlab.trace.format import AttributeKind
from schedlab.workload.loading import DISK_TOOLS
from test_monitor_kernel import Live

pytestmark = [pytest.mark.spike, pytest.mark.xdist_group("monitor_kernel")]
SETUP = Setup("spike", PolicyChoice("lottery"), workloads=("two-hogs", "interactive"))


def typed_lines(file: Path) -> list[str]:
    """Returns the commands, without their times and numbers."""
    text = "".join(line.partition(" ")[2] for line in file.read_text().splitlines())
    return [line.split(" ", 2)[2] for line in text.split("\\x0a") if line]


def hogs_of(live: Live) -> list[int]:
    """Returns PIDs. A process has its name only after its first act, which takes a while on a
    busy host.
    """
    return [row.pid for row in live.status().rows if row.name == "hog"]


def test_repeated_commands_give_the_same_run(tmp_path: Path) -> None:
    parts = build_parts((*KERNEL_PARTS, *DISK_TOOLS))
    (tmp_path / "live").mkdir()
    (tmp_path / "again").mkdir()
    live = Live(SETUP, tmp_path / "live")
    live.system.keep_trace = True
    live.do(live.system.begin())
    disk = tmp_path / "disk"
    shutil.copy(tmp_path / "live" / DISK_FILE, disk)
    wait_until(lambda: hogs_of(live), "no hog has begun")
    hog = hogs_of(live)[0]
    live.do(live.system.set_attribute(hog, AttributeKind.TICKETS, 7))
    live.do(live.system.pause())
    live.do(asyncio.sleep(0.1))
    live.do(live.system.resume())
    live.do(live.system.set_policy("mlfq"))
    live.now_ns()
    live.end()
    typed = tmp_path / "live" / TYPED_FILE
    lines = typed_lines(typed)
    assert f"set {hog} tickets 7" in lines
    assert "write sched_status mlfq" in lines
    assert lines[-1] == "end"
    boot = Boot(parts["kernel"], disk, SETUP.cpus, SETUP.memory_mib, boot_arguments(SETUP))
    boot = replace(boot, keeps_typed=True, typed=typed)
    command = kernel_machine("spike").command(boot)
    result = subprocess.run(command, cwd=tmp_path / "again", capture_output=True, check=False)
    assert result.returncode == 0
    for name in (TRACE_FILE, TYPED_FILE):
        actual = (tmp_path / "again" / name).read_bytes()
        assert actual == (tmp_path / "live" / name).read_bytes()

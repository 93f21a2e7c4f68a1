# SPDX-License-Identifier: MIT
"""Tests the devices of both machines in the running kernel."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from built_once import build_once
from guest_machine import run_guest, sound_trace
from schedlab import trace as traces
from schedlab.base.toolchain.build import DISK_IMAGE, KERNEL_PROGRAM
from schedlab.machines import machine_named
from schedlab.machines.outcome import FAILED, PANIC


@pytest.mark.spike
def test_unstorable_trace_ends_the_run(tmp_path: Path) -> None:
    """A run with an incomplete trace fails."""
    guest = run_guest(tmp_path, "true", arguments="tick=1ms trace=/dev/full")
    assert guest.status == FAILED
    assert "trace: the host" in guest.console


@pytest.mark.qemu
def test_trace_leaves_qemu_complete(tmp_path: Path) -> None:
    """Four CPUs send large blocks through the virtio console."""
    guest = run_guest(tmp_path, "test-pipes", machine="qemu", cpus=4, traced=True)
    assert guest.status == 0
    assert not sound_trace(guest.trace).truncated


@pytest.mark.spike
def test_ramdisk_takes_the_requested_time(tmp_path: Path) -> None:
    """A flush that takes 50 ms more makes a run with one flush at least 50 ms longer."""
    elapsed: list[int] = []
    for arguments in ("disk_write=0 disk_flush=0", "disk_write=0 disk_flush=50ms"):
        folder = tmp_path / str(len(elapsed))
        folder.mkdir()
        guest = run_guest(folder, "sync", arguments=f"tick=1ms {arguments}", traced=True)
        assert guest.status == 0
        elapsed.append(traces.read(guest.trace).end_ns)
    assert elapsed[1] - elapsed[0] >= 50_000_000


@pytest.mark.qemu
def test_the_old_virtio_interface_is_named(tmp_path: Path) -> None:
    """The message says what to do."""
    change = ("legacy=false", "legacy=true")
    guest = run_guest(tmp_path, "true", machine="qemu", replacement=change)
    assert guest.status == PANIC
    assert "-global virtio-mmio.force-legacy=false" in guest.console
    assert "disk: none" in guest.console


@pytest.mark.qemu
def test_a_disk_that_is_only_read_boots(tmp_path: Path) -> None:
    """A write to the read-only disk is an error, and has no other effect."""
    change = ("snapshot=on", "readonly=on")
    guest = run_guest(tmp_path, "true", machine="qemu", replacement=change)
    assert "read-only" in guest.console
    assert "assertion" not in guest.console


@pytest.mark.qemu
def test_the_initial_ramdisk_serves_on_qemu_too(tmp_path: Path) -> None:
    """It serves if there is no virtio disk."""
    image = tmp_path / "disk.img"
    build_once("kernel", "image")
    shutil.copy(DISK_IMAGE, image)
    program = machine_named("qemu").release().path
    command = [program, "-M", "virt", "-m", "256M", "-bios", "none", "-nographic"]
    command += ["-kernel", str(KERNEL_PROGRAM), "-initrd", str(image)]
    command += ["-append", "tick=1ms limit=60s run=ls"]
    result = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0
    assert "disk: initial ramdisk" in result.stdout


SCRIPT = "".join(f"echo number {number}\n" for number in range(300)) + "poweroff 9\n"


@pytest.mark.parametrize(
    "machine",
    [pytest.param("spike", marks=pytest.mark.spike), pytest.param("qemu", marks=pytest.mark.qemu)],
)
def test_a_script_on_the_console_loses_nothing(tmp_path: Path, machine: str) -> None:
    """The shell reads everything, though far more is typed ahead than the kernel's buffer holds."""
    guest = run_guest(tmp_path, "", machine=machine, cpus=2, typed=SCRIPT)
    assert guest.status == 9

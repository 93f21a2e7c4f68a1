# SPDX-License-Identifier: MIT
"""The devices of both machines, in the running kernel."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from guest_machine import run_guest
from schedlab import trace as traces
from schedlab.build import IMAGE, KERNEL, build
from schedlab.machines import Boot, machine_named

FAILED = 1
PANIC = 101


def start(
    folder: Path, machine: str, arguments: str, script: str = "", *, old: str = "\0", new: str = ""
) -> subprocess.CompletedProcess[str]:
    """Boots with a script on the console; `new` takes the place of `old` in the command."""
    build("kernel", "image")
    boot = Boot(KERNEL, IMAGE, 2, 256, f"tick=1ms limit=60s {arguments}", traced=False)
    command = [word.replace(old, new) for word in machine_named(machine).command(boot)]
    return subprocess.run(
        command,
        cwd=folder,
        input=script,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )


@pytest.mark.spike
@pytest.mark.parametrize("trace", ["/dev/full", "no/such/folder/trace.bin"])
def test_a_trace_that_cannot_be_kept_ends_the_run(tmp_path: Path, trace: str) -> None:
    """No run passes whose trace is not whole."""
    done = start(tmp_path, "spike", f"trace={trace} run=true")
    assert done.returncode == FAILED
    assert "trace: the host" in done.stdout


@pytest.mark.qemu
def test_a_trace_leaves_qemu_whole(tmp_path: Path) -> None:
    """Large blocks by the virtio console, from four CPUs."""
    guest = run_guest(tmp_path, "test-pipes", machine="qemu", cpus=4, traced=True)
    assert guest.status == 0
    trace = traces.read(guest.trace)
    traces.validate(trace)
    assert not trace.truncated


@pytest.mark.spike
def test_the_ramdisk_takes_the_time_that_is_asked_for(tmp_path: Path) -> None:
    """A flush of 50 ms more makes a run with a flush 50 ms longer, at least."""
    elapsed: list[int] = []
    for arguments in ("disk_write=0 disk_flush=0", "disk_write=0 disk_flush=50ms"):
        folder = tmp_path / str(len(elapsed))
        folder.mkdir()
        guest = run_guest(folder, "sync", arguments=f"tick=1ms {arguments}", traced=True)
        assert guest.status == 0
        elapsed.append(traces.read(guest.trace).end_ns)
    assert elapsed[1] - elapsed[0] >= 50_000_000


@pytest.mark.spike
@pytest.mark.parametrize("argument", ["disk_read=fast", "disk_depth=0", "disk_flush=11s"])
def test_a_wrong_disk_argument_is_named(tmp_path: Path, argument: str) -> None:
    """Rather than to measure another disk."""
    done = start(tmp_path, "spike", f"{argument} run=true")
    assert done.returncode == PANIC
    assert f"boot argument {argument.split('=')[0]}=" in done.stdout


@pytest.mark.qemu
def test_the_old_virtio_interface_is_named(tmp_path: Path) -> None:
    """The message says what to do."""
    done = start(tmp_path, "qemu", "run=true", old="legacy=false", new="legacy=true")
    assert done.returncode == PANIC
    assert "-global virtio-mmio.force-legacy=false" in done.stdout
    assert "disk: none" in done.stdout


@pytest.mark.qemu
def test_a_disk_that_is_only_read_boots(tmp_path: Path) -> None:
    """A write to it is an error, and no more than that."""
    done = start(tmp_path, "qemu", "run=true", old="snapshot=on", new="readonly=on")
    assert "read-only" in done.stdout
    assert "assertion" not in done.stdout


@pytest.mark.qemu
def test_the_initial_ramdisk_serves_on_qemu_too(tmp_path: Path) -> None:
    """Where there is no virtio disk."""
    image = tmp_path / "disk.img"
    build("kernel", "image")
    shutil.copy(IMAGE, image)
    program = machine_named("qemu").release().path
    command = [program, "-M", "virt", "-m", "256M", "-bios", "none", "-nographic"]
    command += ["-kernel", str(KERNEL), "-initrd", str(image)]
    command += ["-append", "tick=1ms limit=60s run=ls"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0
    assert "disk: initial ramdisk" in done.stdout


SCRIPT = "".join(f"echo number {number}\n" for number in range(300)) + "poweroff 9\n"


@pytest.mark.parametrize(
    "machine",
    [pytest.param("spike", marks=pytest.mark.spike), pytest.param("qemu", marks=pytest.mark.qemu)],
)
def test_a_script_on_the_console_loses_nothing(tmp_path: Path, machine: str) -> None:
    """Far more is typed ahead than the kernel keeps: the shell reads it all the same."""
    done = start(tmp_path, machine, "", SCRIPT)
    assert done.returncode == 9

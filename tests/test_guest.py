# SPDX-License-Identifier: MIT
"""Runs the kernel's tests from the inside: the programs of tests/guest, on both machines."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from guest_machine import run_guest
from schedlab.build import IMAGE, build, host_processors
from schedlab.paths import BUILD, ROOT

PROGRAMS = sorted(path.stem for path in (ROOT / "tests" / "guest").rglob("*.c"))
MEMORY_MIB = 512
LITTLE_MEMORY_MIB = 64
SMALL_DISK_BLOCKS = 3400
"""Room for a file that needs all levels of its tree of blocks, and for a second one."""
USES_UP = {"test-memory": "memory", "test-processes": "memory", "test-files": "disk"}
"""What programs take until there is none, again and again. How much there is proves nothing and
costs minutes, so there is little of it; test_all_memory_and_disk has as much as all others."""


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same files as on the disk of all runs, and less room."""
    build("image")
    image = tmp_path_factory.mktemp("disk") / "small.img"
    programs = [*(BUILD / "programs").iterdir(), *(BUILD / "raw").iterdir()]
    blocks = str(SMALL_DISK_BLOCKS)
    subprocess.run([BUILD / "mkfs", image, blocks, *sorted(programs)], check=True, timeout=60)
    return image


def check_guest_tests(
    folder: Path,
    command: str,
    machine: str,
    cpus: int,
    *,
    memory_mib: int = MEMORY_MIB,
    image: Path = IMAGE,
) -> None:
    guest = run_guest(
        folder, command, machine=machine, cpus=cpus, memory_mib=memory_mib, image=image
    )
    assert "FAILED" not in guest.console.replace("*** FAILED ***", ""), guest.console
    assert guest.status == 0, guest.console
    assert "\nok " in guest.console


def check_on_a_machine_of_its_size(
    folder: Path, small_disk: Path, program: str, machine: str, cpus: int
) -> None:
    used_up = USES_UP.get(program)
    check_guest_tests(
        folder,
        program,
        machine,
        cpus,
        memory_mib=LITTLE_MEMORY_MIB if used_up == "memory" else MEMORY_MIB,
        image=small_disk if used_up == "disk" else IMAGE,
    )


@pytest.mark.spike
@pytest.mark.parametrize(
    "cpus", [1, pytest.param(2, marks=pytest.mark.long), 4, pytest.param(8, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("program", PROGRAMS)
def test_on_spike(tmp_path: Path, small_disk: Path, program: str, cpus: int) -> None:
    """Each test of the program says ok, on a deterministic machine."""
    check_on_a_machine_of_its_size(tmp_path, small_disk, program, "spike", cpus)


@pytest.mark.spike
def test_four_thousand_processes(tmp_path: Path) -> None:
    """For which test-processes has too little memory above, and leaves them out."""
    check_guest_tests(tmp_path, "test-processes four_thousand_processes_at_once", "spike", 4)


@pytest.mark.spike
@pytest.mark.long
@pytest.mark.parametrize("program", USES_UP)
def test_all_memory_and_disk(tmp_path: Path, program: str) -> None:
    check_guest_tests(tmp_path, program, "spike", 4)


@pytest.mark.qemu
@pytest.mark.parametrize("program", PROGRAMS)
def test_on_qemu(tmp_path: Path, small_disk: Path, program: str) -> None:
    """The same with the host's own timing between the CPUs. More of them than the host has would
    spin for locks that others hold who have no turn there: minutes instead of seconds."""
    cpus = min(4, max(2, host_processors()))
    check_on_a_machine_of_its_size(tmp_path, small_disk, program, "qemu", cpus)

# SPDX-License-Identifier: MIT
"""Runs the programs of tests/guest, which test the kernel from the inside, on both machines."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from built_once import build_once
from guest_machine import run_guest
from schedlab.base.host.processor import count_host_cpus
from schedlab.base.toolchain.build import DISK_IMAGE
from schedlab.paths import BUILD_FOLDER, ROOT
from test_course_programs import ARGUMENTS as COURSE_ARGUMENTS

PROGRAMS = sorted(path.stem for path in (ROOT / "tests" / "guest").rglob("*.c"))
MEMORY_MIB = 512
LITTLE_MEMORY_MIB = 64
SMALL_DISK_BLOCKS = 3400
"""Room for one file that uses all levels of its block tree, and for a second file."""
USES_UP = {
    "test-memory": "memory",
    "test-last-page": "memory",
    "test-processes": "memory",
    "test-files": "disk",
}
"""The resource that a program repeatedly exhausts.

A larger resource proves no more and costs minutes, so these tests get little of it.
test_all_memory_and_disk has the usual amount.
"""

LEFT_TO_SPIKE = {"test-files": "a_full_disk_refuses_and_recovers"}
"""A test that takes long on QEMU. The kernel refuses before it accesses the disk, which is the
only difference between the machines."""

DIFFER_ON_QEMU = ("test-files", "test-pipes", "test-scheduler", "test-switching", "test-time")
"""Programs that depend on differences of QEMU: the disk, the clock, concurrent CPUs."""

LITTLE_MEMORY_ON_QEMU_MIB = 36
"""Leaves about as much free memory as Spike has, whose disk is in memory."""

ARGUMENTS = {"xv6-course": COURSE_ARGUMENTS}
"""Boot arguments of a program."""


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Disk with the same files as the usual disk, and less space."""
    build_once("image")
    image = tmp_path_factory.mktemp("disk") / "small.img"
    programs = [*(BUILD_FOLDER / "programs").iterdir(), *(BUILD_FOLDER / "raw").iterdir()]
    blocks = str(SMALL_DISK_BLOCKS)
    subprocess.run(
        [BUILD_FOLDER / "mkfs", image, blocks, *sorted(programs)], check=True, timeout=60
    )
    return image


def check_guest_tests(
    folder: Path,
    command: str,
    machine: str,
    cpus: int,
    *,
    memory_mib: int = MEMORY_MIB,
    image: Path = DISK_IMAGE,
    arguments: str = "",
) -> str:
    """Returns the console of a run whose tests all passed."""
    guest = run_guest(
        folder,
        command,
        machine=machine,
        cpus=cpus,
        arguments=f"tick=1ms {arguments}",
        memory_mib=memory_mib,
        image=image,
    )
    assert "FAILED" not in guest.console, guest.console
    assert guest.status == 0, guest.console
    assert "\nok " in guest.console
    return guest.console


def check_first_process(
    folder: Path, program: str, *, memory_mib: int = MEMORY_MIB, arguments: str = ""
) -> None:
    """Runs the program as init, which adopts all orphans, and checks its tests for that role."""
    build_once("image")
    (folder / "init").write_bytes((BUILD_FOLDER / "programs" / program).read_bytes())
    image = folder / "first.img"
    subprocess.run([BUILD_FOLDER / "mkfs", image, "2000", folder / "init"], check=True, timeout=60)
    check_guest_tests(
        folder, "", "spike", 2, memory_mib=memory_mib, arguments=arguments, image=image
    )


def check_on_a_machine_of_its_size(
    folder: Path, small_disk: Path, program: str, machine: str, cpus: int
) -> None:
    used_up = USES_UP.get(program)
    on_qemu = machine == "qemu"
    little_mib = LITTLE_MEMORY_ON_QEMU_MIB if on_qemu else LITTLE_MEMORY_MIB
    left_out = LEFT_TO_SPIKE.get(program) if on_qemu else None
    check_guest_tests(
        folder,
        f"{program} -{left_out}" if left_out else program,
        machine,
        cpus,
        memory_mib=little_mib if used_up == "memory" else MEMORY_MIB,
        image=small_disk if used_up == "disk" else DISK_IMAGE,
        arguments=ARGUMENTS.get(program, ""),
    )


@pytest.mark.spike
@pytest.mark.parametrize(
    "cpus", [4, *(pytest.param(cpus, marks=pytest.mark.long) for cpus in (1, 2, 8))]
)
@pytest.mark.parametrize("program", PROGRAMS)
def test_on_spike(tmp_path: Path, small_disk: Path, program: str, cpus: int) -> None:
    """Each test of the program passes on a deterministic machine."""
    check_on_a_machine_of_its_size(tmp_path, small_disk, program, "spike", cpus)


@pytest.mark.spike
def test_four_thousand_processes(tmp_path: Path) -> None:
    """test-processes skips this test above, for lack of memory."""
    check_guest_tests(tmp_path, "test-processes four_thousand_processes_at_once", "spike", 4)


@pytest.mark.spike
@pytest.mark.parametrize("cpus", [1, pytest.param(4, marks=pytest.mark.long)])
def test_forks_that_keep_their_promises(tmp_path: Path, cpus: int) -> None:
    """Without overcommitment, forks that cannot reserve memory fail."""
    check_guest_tests(
        tmp_path,
        "test-last-page",
        "spike",
        cpus,
        memory_mib=LITTLE_MEMORY_MIB,
        arguments="overcommit=0",
    )


@pytest.mark.spike
def test_a_limit_of_processes(tmp_path: Path) -> None:
    check_guest_tests(tmp_path, "test-last-page", "spike", 1, arguments="processes=64")


@pytest.mark.spike
def test_orphans_that_nobody_waits_for_are_freed(tmp_path: Path) -> None:
    """The first process only reads from a pipe, as on a busy host that takes its CPU away."""
    check_first_process(tmp_path, "test-processes", arguments="processes=16")


@pytest.mark.spike
def test_who_lacks_a_page_is_named(tmp_path: Path) -> None:
    command = "test-last-page a_writer_without_a_page_is_killed"
    console = check_guest_tests(tmp_path, command, "spike", 2, memory_mib=LITTLE_MEMORY_MIB)
    assert console.count("(test-last-page) killed: no memory is left at pc 0x") == 1


@pytest.mark.spike
def test_the_first_process_waits_for_memory(tmp_path: Path) -> None:
    """The init process of this disk waits for pages while its child holds all of them.

    Any other process would be killed. The child's end frees the pages.
    """
    check_first_process(tmp_path, "test-last-page", memory_mib=LITTLE_MEMORY_MIB)


@pytest.mark.spike
@pytest.mark.long
@pytest.mark.parametrize("program", USES_UP)
def test_all_memory_and_disk(tmp_path: Path, program: str) -> None:
    check_guest_tests(tmp_path, program, "spike", 4)


@pytest.mark.spike
@pytest.mark.parametrize(
    ("program", "cpus"), [("test-scheduler", 1), ("test-processes", 1), ("test-affinity", 2)]
)
def test_on_few_cpus(tmp_path: Path, small_disk: Path, program: str, cpus: int) -> None:
    check_on_a_machine_of_its_size(tmp_path, small_disk, program, "spike", cpus)


@pytest.mark.qemu
@pytest.mark.parametrize(
    "program",
    [
        name if name in DIFFER_ON_QEMU else pytest.param(name, marks=pytest.mark.long)
        for name in PROGRAMS
    ],
)
def test_on_qemu(tmp_path: Path, small_disk: Path, program: str) -> None:
    """The host determines the timing between CPUs.

    More CPUs than the host has would spin for locks of CPUs that do not run, and take minutes.
    """
    cpus = min(4, max(2, count_host_cpus()))
    check_on_a_machine_of_its_size(tmp_path, small_disk, program, "qemu", cpus)


@pytest.mark.qemu
@pytest.mark.long
@pytest.mark.parametrize("program", LEFT_TO_SPIKE)
def test_what_is_left_to_spike(tmp_path: Path, small_disk: Path, program: str) -> None:
    command = f"{program} {LEFT_TO_SPIKE[program]}"
    check_guest_tests(tmp_path, command, "qemu", 2, image=small_disk)

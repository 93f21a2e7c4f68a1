# SPDX-License-Identifier: MIT
"""Runs the kernel's tests from the inside: the programs of tests/guest, on both machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from guest_machine import run_guest
from schedlab.build import host_processors
from schedlab.paths import ROOT

PROGRAMS = sorted(path.stem for path in (ROOT / "tests" / "guest").rglob("*.c"))


def check_guest_tests(folder: Path, program: str, machine: str, cpus: int) -> None:
    guest = run_guest(folder, program, machine=machine, cpus=cpus)
    assert "FAILED" not in guest.console.replace("*** FAILED ***", ""), guest.console
    assert guest.status == 0, guest.console
    assert "\nok " in guest.console


@pytest.mark.spike
@pytest.mark.parametrize("cpus", [1, 2, 4, 8])
@pytest.mark.parametrize("program", PROGRAMS)
def test_on_spike(tmp_path: Path, program: str, cpus: int) -> None:
    """Each test of the program says ok, on a deterministic machine."""
    check_guest_tests(tmp_path, program, "spike", cpus)


@pytest.mark.qemu
@pytest.mark.parametrize("program", PROGRAMS)
def test_on_qemu(tmp_path: Path, program: str) -> None:
    """The same with the host's own timing between the CPUs. More of them than the host has would
    spin for locks that others hold who have no turn there: minutes instead of seconds."""
    check_guest_tests(tmp_path, program, "qemu", min(4, max(2, host_processors())))

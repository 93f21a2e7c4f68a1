# SPDX-License-Identifier: MIT
"""Tests that software interrupts of a hart do not lose or keep a device's signal."""

from __future__ import annotations

import os
import subprocess

import pytest

from built_once import build_once
from schedlab.machines import Boot, kernel_machine
from schedlab.paths import BUILD_FOLDER, ROOT

PROGRAM = BUILD_FOLDER / "device_signal.elf"
SLOW_LOCK = BUILD_FOLDER / "slow_lock.so"
NAMED_THREADS = ("-name", "guest,debug-threads=on")
"""SLOW_LOCK recognizes the threads of the guest's CPUs by name."""


def check_signals(command: list[str], preloaded: str = "") -> None:
    result = subprocess.run(
        command,
        env={**os.environ, "LD_PRELOAD": preloaded},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert "100 signals, 0 lost, 0 kept" in result.stdout, result.stdout
    assert result.returncode == 0


def command_of(machine: str) -> list[str]:
    return kernel_machine(machine).command(Boot(PROGRAM, None, 2, 64, "", traced=False))


@pytest.mark.spike
def test_no_signal_stays_on_spike() -> None:
    """A read-modify-write of the complete mip register keeps every signal."""
    build_once(str(PROGRAM.relative_to(ROOT)))
    check_signals(command_of("spike"))


@pytest.mark.qemu
def test_no_signal_is_lost_on_qemu() -> None:
    """QEMU reads a device's signal, takes a lock, then writes mip.

    Of 100 signals at random times, a write of the complete mip register loses about ten when the
    lock is late.
    """
    build_once(*(str(path.relative_to(ROOT)) for path in (PROGRAM, SLOW_LOCK)))
    check_signals([*command_of("qemu"), *NAMED_THREADS], str(SLOW_LOCK))

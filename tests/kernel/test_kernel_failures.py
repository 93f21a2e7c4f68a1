# SPDX-License-Identifier: MIT
"""Tests what the kernel does when it panics or is ended early."""

from __future__ import annotations

from pathlib import Path

import pytest

from guest_machine import run_guest, sound_trace
from schedlab import trace as traces
from schedlab.machines.outcome import LIMIT, PANIC

MESSAGES = {
    "panic": "injected",
    "null": "load page fault in the kernel",
    "stack": "store page fault in the kernel",
    "order": "lock order: outer taken while inner is held",
    "deadlock": "deadlock: lock lost is not given back",
}


@pytest.mark.spike
@pytest.mark.parametrize("kind", MESSAGES)
def test_panic_gives_its_reason_and_keeps_the_trace(tmp_path: Path, kind: str) -> None:
    """The output has the message, a backtrace with names, and status 101; the trace is complete."""
    arguments = f"tick=1ms inject={kind} inject_at=20ms"
    guest = run_guest(tmp_path, "cpu-bound", cpus=4, arguments=arguments, traced=True)
    assert guest.status == PANIC
    assert guest.console.count("panic: CPU") == 1
    assert MESSAGES[kind] in guest.console
    assert "tick_interrupt+0x" in guest.console or kind == "stack"
    trace = traces.read(guest.trace)
    assert trace.truncated
    assert len(trace.events) > 100


@pytest.mark.qemu
def test_a_panic_ends_qemu_too(tmp_path: Path) -> None:
    """QEMU's test device passes the status to the host."""
    arguments = "tick=1ms inject=panic inject_at=20ms"
    guest = run_guest(tmp_path, "cpu-bound", machine="qemu", cpus=2, arguments=arguments)
    assert guest.status == PANIC
    assert "injected" in guest.console


@pytest.mark.spike
def test_time_limit_ends_a_run_with_a_complete_trace(tmp_path: Path) -> None:
    """A workload without end stops in good order at the limit."""
    guest = run_guest(tmp_path, "sleep 100000", cpus=2, limit="50ms", traced=True)
    assert guest.status == LIMIT
    assert "the limit of this run" in guest.console
    assert not sound_trace(guest.trace).truncated


@pytest.mark.spike
@pytest.mark.parametrize(
    "argument",
    [
        "policy=unknown",
        "set=slice=0",
        "fork-delay=2s",
        "exec-delay=2s",
        "shape=core/0",
        "disk_depth=0",
    ],
)
def test_a_wrong_boot_argument_is_named(tmp_path: Path, argument: str) -> None:
    """A wrong boot argument ends the run instead of being ignored."""
    guest = run_guest(tmp_path, "true", arguments=f"tick=1ms {argument}")
    assert guest.status == PANIC
    assert f"boot argument {argument.split('=')[0]}=" in guest.console


@pytest.mark.spike
@pytest.mark.parametrize("cpus", [1, 256])
def test_power_off_reaches_the_host(tmp_path: Path, cpus: int) -> None:
    """The machine ends with the status that a program passes."""
    assert run_guest(tmp_path, "poweroff 42", cpus=cpus).status == 42

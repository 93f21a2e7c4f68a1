# SPDX-License-Identifier: MIT
"""Tests the driver of Spike's library: its runs equal those of Spike's program, byte for
byte, in less time.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from built_once import build_once
from schedlab import trace
from schedlab.base.toolchain.build import DISK_IMAGE, KERNEL_PROGRAM
from schedlab.machines import Boot
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.outcome import STUCK, interpret_exit
from schedlab.machines.spike import (
    STOCK_TURN,
    TURN_VARIABLE,
    build_driver,
    driver_command,
    requested_turn,
    stock_command,
)
from schedlab.machines.spike_install import PROGRAM, installed_spike

SETUPS = [
    (1, "mlfq", "study4 mixed -c 10 -i 4", "tick=10ms"),
    (3, "stride", "prioritytest mixed", "seed=7"),
    (5, "lottery", "lotterytest basic -t 100 -u 20", "set=slice=3"),
    (2, "rr", "test-stress", ""),
    (2, "priority", "false", ""),
    (2, "rr", "cpu-bound", "limit=30ms"),
    (3, "rr", "sleepers", "inject=panic"),
    (256, "mlfq", "true", "trace-queues=1"),
]


def run(command: list[str], folder: Path) -> tuple[int, bytes, bytes]:
    """Returns the exit status, the console and the trace."""
    folder.mkdir()
    result = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=300,
        check=False,
    )
    return result.returncode, result.stdout, (folder / TRACE_FILE).read_bytes()


@pytest.mark.spike
@pytest.mark.parametrize(("cpus", "policy", "workload", "more"), SETUPS)
def test_a_run_is_that_of_spike_itself(
    tmp_path: Path, cpus: int, policy: str, workload: str, more: str
) -> None:
    build_once("kernel", "image")
    words = f'policy={policy} tick=1ms limit=100s {more} trace={TRACE_FILE} run="{workload}"'
    boot = Boot(KERNEL_PROGRAM, DISK_IMAGE, cpus, 512, words)
    ours = run(driver_command(str(build_driver()), boot, STOCK_TURN), tmp_path / "ours")
    theirs = run(stock_command(str(installed_spike() / PROGRAM), boot), tmp_path / "theirs")
    assert len(ours[2]) > 1000
    assert ours == theirs


def compiled(source: bytes) -> bytes:
    """Returns dtc's output for a device tree's text."""
    words = ["dtc", "-q", "-I", "dts", "-O", "dtb"]
    return subprocess.run(words, input=source, stdout=subprocess.PIPE, check=True).stdout


@pytest.mark.spike
def test_the_device_tree_is_what_dtc_makes_of_spikes(tmp_path: Path) -> None:
    build_once("kernel", "image")
    boot = Boot(KERNEL_PROGRAM, DISK_IMAGE, 3, 512, 'policy=rr trace=x run="mixed -c 2"')
    spikes = stock_command(str(installed_spike() / PROGRAM), boot)
    dumped = subprocess.check_output([*spikes[:-1], "--dump-dts", spikes[-1]], cwd=tmp_path)
    of_driver = dumped.replace(b"pmpregions = <0x10>", b"pmpregions = <0x01>")
    assert of_driver != dumped
    tree_command = [*driver_command(str(build_driver()), boot), "--tree"]
    nothing = {"PATH": str(tmp_path)}
    assert subprocess.check_output(tree_command, cwd=tmp_path, env=nothing) == compiled(of_driver)


@pytest.mark.spike
def test_boot_arguments_of_a_device_tree(tmp_path: Path) -> None:
    """A backslash stays single; arguments that the library would garble are an error."""
    build_once("kernel", "image")

    def tree(arguments: str) -> subprocess.CompletedProcess[bytes]:
        words = [str(build_driver()), f"--arguments={arguments}", "--tree", str(KERNEL_PROGRAM)]
        return subprocess.run(words, capture_output=True, cwd=tmp_path, check=False)

    assert b'trace=a\\b "c" {;\0' in tree('trace=a\\b "c" {;').stdout
    done = tree("ends with \\")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"schedlab-spike: device tree: ")


@pytest.mark.spike
def test_a_guest_that_nothing_can_wake_is_ended(tmp_path: Path) -> None:
    build_once("kernel", "image")
    boot = Boot(KERNEL_PROGRAM, DISK_IMAGE, 4, 512, f"inject=hang trace={TRACE_FILE} run=sleepers")
    status, console, _ = run(driver_command(str(build_driver()), boot), tmp_path / "run")
    assert status == STUCK
    outcome = interpret_exit(status, console.decode())
    assert outcome.status == "hung"
    assert "nothing can wake one" in outcome.message


@pytest.mark.spike
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--harts=0", "x"], 2),
        (["--harts=257", "x"], 2),
        (["--harts=2x", "x"], 2),
        (["--turn=250", "x"], 2),
        (["--what", "x"], 2),
        ([], 2),
        (["--disk=none", "x"], 1),
        (["/bin/true"], 1),
        (["none"], 1),
    ],
)
def test_wrong_words_are_named(words: list[str], status: int) -> None:
    result = subprocess.run([build_driver(), *words], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (status, "")
    assert result.stderr.startswith("schedlab-spike: ")
    assert len(result.stderr.splitlines()) == 1


def wait_for_words(process: subprocess.Popen[bytes], words: bytes) -> bytes:
    """Returns the output up to these words."""
    assert process.stdout
    output = b""
    while words not in output:
        more = os.read(process.stdout.fileno(), 4096)
        assert more, output
        output += more
    return output


def idle_shell(pace: str) -> subprocess.Popen[bytes]:
    build_once("kernel", "image")
    boot = Boot(KERNEL_PROGRAM, DISK_IMAGE, 4, 512, "tick=10ms", live=True)
    command = [
        pace if word == "--pace=1" else word for word in driver_command(str(build_driver()), boot)
    ]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
    )


@pytest.mark.spike
def test_the_time_of_a_live_machine_does_not_run_ahead() -> None:
    """Without a pace, an idle machine would be hours ahead after the same time."""
    begin = time.monotonic()
    with idle_shell("--pace=1") as shell:
        assert shell.stdin
        wait_for_words(shell, b"$ ")
        time.sleep(1)
        shell.stdin.write(b"uptime\n")
        match = re.search(rb"([\d.]+) seconds", wait_for_words(shell, b" seconds"))
        passed = time.monotonic() - begin
        shell.stdin.write(b"poweroff\n")
        assert shell.wait(60) == 0
    assert match
    assert 0.9 < float(match[1]) <= passed


@pytest.mark.spike
@pytest.mark.parametrize(
    ("pace", "number"), [("--pace=1", signal.SIGINT), ("--pace=0", signal.SIGTERM)]
)
def test_a_live_machine_is_interrupted(pace: str, number: int) -> None:
    with idle_shell(pace) as shell:
        wait_for_words(shell, b"$ ")
        shell.send_signal(number)
        assert shell.wait(20) == 130


@pytest.mark.spike
@pytest.mark.parametrize(("turn", "step"), [("100", 100), ("", 500), ("1000", 1000)])
def test_a_turn_is_the_step_of_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turn: str, step: int
) -> None:
    monkeypatch.setenv(TURN_VARIABLE, turn)
    build_once("kernel", "image")
    boot = Boot(
        KERNEL_PROGRAM, DISK_IMAGE, 2, 512, f'tick=1ms limit=100s trace={TRACE_FILE} run="mixed"'
    )
    status, _, _ = run(
        driver_command(str(build_driver()), boot, requested_turn()), tmp_path / "run"
    )
    assert status == 0
    assert trace.read(tmp_path / "run" / TRACE_FILE).clock_step_ns == step

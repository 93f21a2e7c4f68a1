# SPDX-License-Identifier: MIT
"""Tests that the kernel on Spike ends soon under a wrong policy, and names the broken rule."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from built_once import build_once
from mistaken_policy import KERNEL, built, check_remark, line_of, mistakes
from schedlab import trace as traces
from schedlab.base.toolchain.build import DISK_IMAGE
from schedlab.machines import Boot, kernel_machine
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.outcome import FAILED, LIMIT, PANIC, Outcome, interpret_exit

FILE = "tests/mistakes/mistaken.c"
RULES = {
    "loop": f"mistaken_pick() does not end: there is an endless loop, in mistaken_search(), at {FILE}:",
    "null": f"mistaken_pick() writes to address 0x48, where nothing is, at {FILE}:",
    "lost": "its pick() returned null while",
    "cpu": "its place(), push() or balance() named a CPU that does not exist",
}

pytestmark = pytest.mark.spike


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_once("image")
    built(KERNEL)


def run(folder: Path, mistake: str, cpus: int) -> tuple[int, str, Outcome]:
    words = (
        f"policy=mistaken tick=1ms set=mistake={mistakes()[mistake]} limit=2s trace={TRACE_FILE}"
    )
    words += ' run="mixed -n 8 -g 20"'
    command = kernel_machine("spike").command(Boot(KERNEL, DISK_IMAGE, cpus, 512, words))
    result = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        check=False,
    )
    return (
        result.returncode,
        result.stdout,
        interpret_exit(result.returncode, result.stdout, LIMIT, KERNEL),
    )


@pytest.mark.parametrize("mistake", RULES)
def test_the_headline_is_the_rule(tmp_path: Path, mistake: str) -> None:
    status, console, outcome = run(tmp_path, mistake, 2)
    assert status == PANIC
    assert outcome.message.startswith(f"policy mistaken broke a rule: {RULES[mistake]}")
    assert "assertion failed" not in console
    if mistake == "null":
        assert f"{FILE}:{line_of('tasks.first->level = 1')}:" in outcome.message.splitlines()[0]
    trace = traces.read(tmp_path / TRACE_FILE)
    assert trace.truncated
    assert len(trace.events) > 100


@pytest.mark.parametrize(("mistake", "hook"), [("kill", "tick()"), ("turn_kill", "turn_over()")])
def test_kill_by_the_policy_counts_as_one(tmp_path: Path, mistake: str, hook: str) -> None:
    status, console, outcome = run(tmp_path, mistake, 1)
    assert status == FAILED
    assert f"ended by policy mistaken: its {hook} returned TICK_KILL" in console
    assert outcome.message.startswith("policy mistaken has ended ")
    assert f": its {hook} returned TICK_KILL" in outcome.message
    if hook == "tick()":
        check_remark(tmp_path / TRACE_FILE)

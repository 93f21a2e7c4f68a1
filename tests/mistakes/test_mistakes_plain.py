# SPDX-License-Identifier: MIT
"""Tests that the simulator reports mistakes without sanitizers, too."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mistaken_policy import PLAIN, built, check_remark, line_of, mistakes
from schedlab.machines.outcome import BROKEN_RULE, FAILED, interpret_exit
from schedlab.paths import ROOT
from simulator_command import write_workload

FILE = "tests/mistakes/mistaken.c"
SCENARIO = ROOT / "sim" / "checked" / "scenario.txt"
RULES = {
    "loop": (BROKEN_RULE, "mistaken_pick() does not end: there is an endless loop"),
    "null": (BROKEN_RULE, "mistaken_pick() reads or writes address 0x48, where nothing is"),
    "division": (BROKEN_RULE, "mistaken_enqueue() divides by zero"),
    "lost": (
        FAILED,
        "its pick() returned null while tasks are queued that may run: pid 10, queued since 20.000 ms",
    ),
    "verdict": (FAILED, "its tick() or turn_over() returned a verdict that does not exist"),
    "cpu": (FAILED, "its place(), push() or balance() named a CPU that does not exist"),
    "place": (FAILED, "its place() named a CPU on which the task may not run"),
}


@pytest.mark.parametrize("mistake", RULES)
def test_the_headline_is_the_rule(tmp_path: Path, mistake: str) -> None:
    built(PLAIN)
    scenario = write_workload(tmp_path, SCENARIO.read_text())
    status, rule = RULES[mistake]
    options = f"--policy mistaken --set mistake={mistakes()[mistake]} --costs none --cpus 4"
    result = subprocess.run(
        [str(PLAIN), *options.split(), "--no-trace", str(scenario)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    outcome = interpret_exit(result.returncode, result.stderr, program=PLAIN)
    assert result.returncode == status
    assert outcome.message.startswith(f"policy mistaken broke a rule: {rule}")
    if mistake == "null":
        assert f"{FILE}:{line_of('tasks.first->level = 1')}" in outcome.message.splitlines()[0]


def test_a_remark_is_in_the_trace(tmp_path: Path) -> None:
    built(PLAIN)
    words = "program root\n fork hog\n fork hog\n wait\n wait\nprogram hog\n run 1s\n"
    workload, events = write_workload(tmp_path, words), tmp_path / "trace.bin"
    options = f"--policy mistaken --set mistake={mistakes()['kill']} --cpus 2 --trace {events}"
    subprocess.run([str(PLAIN), *options.split(), str(workload)], timeout=120, check=True)
    check_remark(events)

# SPDX-License-Identifier: MIT
"""Tests that a policy in a separate virtual machine decides as it does in the simulator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from built_once import build_once
from conftest import ROOT
from schedlab.base.toolchain.build import SIMULATOR_LIBRARY
from schedlab.courses.grading.lab import Lab, LabTest, read
from schedlab.courses.submissions import sandbox, wasm_policy
from schedlab.courses.submissions.compiling import compile_policy
from schedlab.courses.submissions.trial import PolicyForm
from schedlab.workload import workload_files
from schedlab.workload.text import format_workload
from schedlab_simulator import Simulator
from submissions import small_lab

pytestmark = pytest.mark.xdist_group("grading")

WORKLOADS = ROOT / "workloads" / "files"
HEADERS = tuple(sorted(path.name for path in (ROOT / "policies").glob("*.h")))


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    build_once(str(wasm_policy.SIMULATOR_LIBRARY.relative_to(ROOT)), SIMULATOR_LIBRARY)
    return read(small_lab(tmp_path / "small"))


@pytest.mark.parametrize(
    ("policy", "cpus"),
    [("mlfq", 4), ("lottery", 2), ("edf", 2), ("hsfq", 3), ("shinjuku", 8), ("srpt", 8)],
)
def test_the_trace_is_that_of_the_simulator(
    lab: Lab, tmp_path: Path, policy: str, cpus: int
) -> None:
    """Covers levels, a boost, draws, timers, groups, and one queue for many CPUs.

    Each CPU is asked whether its task is preempted. The workload forks, sleeps, locks and uses
    pipes.
    """
    assert calls(lab, tmp_path, policy, cpus, WORKLOADS / "study4-mixed.json", {}) > 1000


@pytest.mark.parametrize("overtake", [1, 0])
def test_the_next_owner_of_a_lock_is_the_same(lab: Lab, tmp_path: Path, overtake: int) -> None:
    path = tmp_path / "lock.json"
    workload_text = (WORKLOADS / "tickets" / "mutex.json").read_text()
    path.write_text(workload_text.replace('"duration": 120', '"duration": 2'))
    assert calls(lab, tmp_path, "lottery", 2, path, {"transfers": 1, "overtake": overtake}) > 1000


def calls(
    lab: Lab, tmp_path: Path, policy: str, cpus: int, path: Path, tunables: dict[str, int]
) -> int:
    """Returns the number of calls of the policy; requires that both traces are equal."""
    workload = workload_files.read_workload_file(path)
    test: LabTest = replace(
        lab.tests[0], workload=workload, cpus=cpus, settings=tunables, limit_ns=10_000_000_000
    )
    source = ROOT / "policies" / f"{policy}.c"
    compiled = compile_policy(
        PolicyForm(policy, HEADERS), source, trusted=bool(sandbox.missing_requirement())
    )
    ran = wasm_policy.run(test, compiled, tmp_path / "apart.bin")
    within = tmp_path / "within.bin"
    text = format_workload(workload, test.seed, test.tick_ns, cpus)
    with Simulator(
        text,
        policy=policy,
        tunables=tunables,
        cpus=cpus,
        processes=512,
        costs="none",
        trace=within,
        trace_queues=True,
    ) as simulator:
        simulator.run()
    assert ran.trace.read_bytes() == within.read_bytes()
    return ran.calls


PREEMPTS = "    return shinjuku_quantum_is_over(queue, running);"


def traced(lab: Lab, folder: Path, act: str) -> bytes:
    """Returns the trace of shinjuku with extra code in the preemption check of CPU 5's task.

    CPU 0 is asked first.
    """
    text = (ROOT / "policies" / "shinjuku.c").read_text()
    assert PREEMPTS in text
    source = folder / "shinjuku.c"
    other = f"    if (running->cpu == 5) {{\n        {act}\n    }}\n{PREEMPTS}"
    source.write_text(text.replace(PREEMPTS, other, 1))
    compiled = compile_policy(
        PolicyForm("shinjuku", HEADERS), source, trusted=bool(sandbox.missing_requirement())
    )
    workload = workload_files.read_workload_file(WORKLOADS / "study4-mixed.json")
    test: LabTest = replace(lab.tests[0], workload=workload, cpus=8)
    return wasm_policy.run(test, compiled, folder / "apart.bin").trace.read_bytes()


@pytest.mark.parametrize(
    "act",
    [
        'SAY(queue, running, "asked", 0, 0);',
        "queue->alarm = queue->now + (uint64_t)running->pid * 100000;",
    ],
    ids=["says", "alarm"],
)
def test_what_a_hook_asks_for_is_heard_though_no_answer_is_expected(
    lab: Lab, tmp_path: Path, act: str
) -> None:
    """Requests of a hook count even if the hook's answer is not awaited.

    CPUs are asked one after the other. Without a change, the virtual machine sends no answer.
    """
    assert traced(lab, tmp_path, act) != traced(lab, tmp_path, "")


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        ("((task_t *)(uintptr_t)running)->run_time++;", "it wrote to task->run_time, which is"),
        ("queue->queued++;", "it wrote to queue->queued, which is the host's"),
    ],
    ids=["task", "queue"],
)
def test_late_broken_rule_is_reported(lab: Lab, tmp_path: Path, act: str, reason: str) -> None:
    with pytest.raises(wasm_policy.PolicyBroken, match=reason):
        traced(lab, tmp_path, act)

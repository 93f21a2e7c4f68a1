# SPDX-License-Identifier: MIT
"""What each policy must show, read from traces of the kernel on Spike.

Ties: a scenario in which many things happen at one tick (tests/scenario/ties.h) is acted out by
the kernel and by the model of the tests. Both must tell the story in tests/golden/. To write the
stories anew, and then review what changed:

    SCHEDLAB_GOLDEN=write ./schedlab test tests/test_kernel_policies.py -k ties
    git diff tests/golden
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from guest_machine import run_guest
from schedlab import trace
from schedlab.build import build
from schedlab.paths import BUILD, ROOT
from schedlab.policies import read_catalogue
from trace_story import Story

pytestmark = pytest.mark.spike

GOLDEN = ROOT / "tests" / "golden"
MODEL = BUILD / "scenario_model"
ACTED_TOGETHER = 3

PINNED = ("rr", "priority", "wrr", "lottery", "mlfq", "stride")
"""Policies whose stories are in tests/golden. Others must only act the scenario out."""

MEASURING = ("lottery", "stride")
"""Those that choose by the nanoseconds that a process ran. What is a tie on the model, which has
no costs, is none on the kernel, where system calls take time: the model's story is pinned."""


def policies_and_presets() -> list[str]:
    """All "policy" and "policy:preset" that are built in."""
    return [
        text
        for policy in read_catalogue().values()
        for text in (policy.name, *(f"{policy.name}:{preset}" for preset in policy.presets))
    ]


# Ties


def golden_file(policy: str, cpus: int) -> Path:
    return GOLDEN / f"ties-{policy.replace(':', '-')}-{cpus}.txt"


def told(path: Path, policy: str, cpus: int) -> str:
    """The story of a trace, with a heading."""
    events = trace.read(path)
    trace.validate(events)
    heading = f"# {policy}, {cpus} CPU{'s' if cpus > 1 else ''}: tick, CPU, what happens"
    return "\n".join([heading, *Story(events).lines(), ""])


def told_by_kernel(folder: Path, policy: str, cpus: int) -> str:
    arguments = f"tick=10ms seed=1 policy={policy}"
    guest = run_guest(folder, "scenario ties", cpus=cpus, arguments=arguments, traced=True)
    assert guest.status == 0, guest.console
    return told(guest.trace, policy, cpus)


def told_by_model(folder: Path, policy: str, cpus: int) -> str:
    build(str(MODEL.relative_to(ROOT)))
    path = folder / "model.bin"
    command = [str(MODEL), "ties", policy, str(cpus), "1", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (0, ACTED_TOGETHER), done.stderr
    if is_pinned(policy):
        assert done.returncode == 0, "two CPUs act together: give the roles other amounts of work"
    return told(path, policy, cpus)


def is_pinned(policy: str) -> bool:
    return policy.partition(":")[0] in PINNED


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("policy", policies_and_presets())
def test_ties_are_settled_the_same_everywhere(tmp_path: Path, policy: str, cpus: int) -> None:
    """By the rules of docs/policy-interface.md, "What happens first"."""
    by_kernel = told_by_kernel(tmp_path, policy, cpus)
    by_model = told_by_model(tmp_path, policy, cpus)
    if not is_pinned(policy):
        return
    golden = golden_file(policy, cpus)
    if os.environ.get("SCHEDLAB_GOLDEN") == "write":
        golden.write_text(by_model)
    assert golden.exists(), "write it: see the head of this file"
    assert by_model == golden.read_text()
    if policy not in MEASURING:
        assert by_kernel == golden.read_text()


def test_no_golden_story_is_left_over() -> None:
    known = {golden_file(policy, cpus) for policy in policies_and_presets() for cpus in (1, 2)}
    assert set(GOLDEN.glob("ties-*.txt")) <= known

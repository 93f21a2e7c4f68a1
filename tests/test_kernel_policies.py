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

PINNED = ("rr",)
"""Policies whose stories are in tests/golden; of others, kernel and model must only agree."""


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
    assert done.returncode == 0, done.stderr
    return told(path, policy, cpus)


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("policy", policies_and_presets())
def test_ties_are_settled_the_same_everywhere(tmp_path: Path, policy: str, cpus: int) -> None:
    """By the rules of docs/policy-interface.md, "What happens first"."""
    story = told_by_kernel(tmp_path, policy, cpus)
    golden = golden_file(policy, cpus)
    if os.environ.get("SCHEDLAB_GOLDEN") == "write":
        golden.write_text(story)
    assert story == told_by_model(tmp_path, policy, cpus)
    if policy.partition(":")[0] in PINNED:
        assert golden.exists(), "write it: see the head of this file"
        assert story == golden.read_text()


def test_no_golden_story_is_left_over() -> None:
    known = {golden_file(policy, cpus) for policy in policies_and_presets() for cpus in (1, 2)}
    assert set(GOLDEN.glob("ties-*.txt")) <= known

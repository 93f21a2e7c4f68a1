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

from feedback_reference import ALLOTMENT_BOOST, FOUR_QUANTA, Rules
from feedback_reference import schedule as reference_schedule
from guest_machine import run_guest
from schedlab import trace
from schedlab.build import build
from schedlab.paths import BUILD, ROOT
from schedlab.policies import read_catalogue
from schedlab.trace import Kind
from trace_story import Record, Story, records_of, role_names

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


# What runs when


def traced(folder: Path, command: str, cpus: int, arguments: str) -> trace.Trace:
    """The valid trace of a run that succeeded."""
    guest = run_guest(folder, command, cpus=cpus, arguments=f"seed=1 {arguments}", traced=True)
    assert guest.status == 0, guest.console
    events = trace.read(guest.trace)
    trace.validate(events)
    return events


def begin_together(events: trace.Trace, count: int) -> tuple[int, list[int]]:
    """The tick at which all processes of the group "cpu" wake on CPU 0, and their order."""
    groups = role_names(events)
    woken: list[Record] = []
    for each in records_of(events):
        tick = each.time_ns // events.header.tick_ns
        if each.kind == Kind.WAKEUP and groups.get(each.process) == "cpu":
            woken = [old for old in woken if old.time_ns // events.header.tick_ns == tick]
            woken.append(each)
            if len(woken) == count:
                return tick, [one.process for one in woken]
    raise AssertionError(f"no {count} processes wake at one tick")


def first_exit(events: trace.Trace, pids: list[int]) -> int:
    """The tick within which the first of them ends."""
    times = [
        each.time_ns
        for each in records_of(events)
        if each.kind == Kind.EXIT and each.process in pids
    ]
    return min(times) // events.header.tick_ns


def schedule_of(events: trace.Trace, begin: int, end: int) -> list[tuple[int, int, int]]:
    """Tick, PID, the policy's remark (0: none) of who runs in the middle of each tick on CPU 0."""
    rows = []
    tick, pid, remark, pending = begin, 0, 0, 0
    half = events.header.tick_ns // 2
    for each in records_of(events):
        while each.cpu == 0 and each.time_ns > tick * events.header.tick_ns + half:
            if tick >= end:
                return rows
            rows.append((tick, pid, remark))
            tick += 1
        if each.cpu != 0:
            continue
        if each.kind == Kind.SCHEDULER_ENTER:
            pending = 0
        elif each.kind == Kind.DECISION:
            pending = each.second
        elif each.kind == Kind.SCHEDULER_EXIT:
            pid, remark = each.process, pending
    return rows


def show_first_difference(
    real: list[tuple[int, int, int]], expected: list[tuple[int, int, int]]
) -> None:
    for one, other in zip(real, expected, strict=True):
        assert one == other, f"(tick, PID, level): {one}; by the rule: {other}"


@pytest.mark.parametrize(
    ("preset", "rules", "iterations", "least_ticks"),
    [
        ("allotment-boost", ALLOTMENT_BOOST, 32_000_000, 900),
        ("four-quanta", FOUR_QUANTA, 3_000_000, 40),
    ],
)
def test_feedback_queue_follows_its_rule_tick_by_tick(
    tmp_path: Path, preset: str, rules: Rules, iterations: int, least_ticks: int
) -> None:
    """Three CPU-bound processes: study 4's figure 7, with two boosts, and study 3's quanta."""
    command = f"ladder -n 3 -a 2 -d 0 -i {iterations}"
    events = traced(tmp_path, command, 1, f"tick=1ms policy=mlfq:{preset}")
    begin, pids = begin_together(events, 3)
    end = first_exit(events, pids)
    assert end - begin >= least_ticks
    show_first_difference(
        schedule_of(events, begin, end), reference_schedule(rules, pids, begin, end)
    )


def test_round_robin_goes_round_tick_by_tick(tmp_path: Path) -> None:
    """Study 4's figure 8."""
    events = traced(tmp_path, "ladder -n 3 -a 2 -d 0 -i 10000000", 1, "tick=1ms policy=rr")
    begin, pids = begin_together(events, 3)
    end = first_exit(events, pids)
    assert end - begin >= 250
    expected = [(tick, pids[(tick - begin) % 3], 0) for tick in range(begin, end)]
    show_first_difference(schedule_of(events, begin, end), expected)

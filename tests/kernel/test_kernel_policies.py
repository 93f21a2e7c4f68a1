# SPDX-License-Identifier: MIT
"""Tests what each policy must show, read from traces of the kernel on Spike.

Ties: the kernel and the model of the tests run a scenario with many events at one tick
(tests/scenario/ties.h). Both must match the files in tests/golden/, as must the simulator
(tests/sim/test_simulator_scenarios.py). To rewrite the files and review the changes:

    SCHEDLAB_GOLDEN=write ./schedlab test tests/kernel/test_kernel_policies.py -k ties
    git diff tests/golden
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from feedback_reference import ALLOTMENT_BOOST, FOUR_QUANTA, WHOLE_QUANTA, Rules
from feedback_reference import schedule as reference_schedule
from golden_stories import (
    GOLDEN,
    MEASURING,
    golden_file,
    is_pinned,
    model_schedule,
    policies_and_presets,
    schedule_text,
)
from guest_machine import ROUND_NS, TICK_NS, traced
from schedlab import trace
from schedlab.machines.spike import DEFAULT_TURN, STOCK_TURN
from schedlab.trace import AttributeKind, Kind
from trace_levels import Inversion, Values, longest_inversion, pieces_of
from trace_story import Record, records_of, role_names

pytestmark = pytest.mark.spike

TOGETHER = "stagger=0"
"""Boot argument: all CPUs have their ticks at the same time."""
COARSE = (f"--turn={DEFAULT_TURN}", f"--turn={STOCK_TURN}")
"""Round lengths of Spike's original program."""


# Ties


def kernel_schedule(folder: Path, policy: str, cpus: int) -> str:
    """Returns the kernel's events in a scenario with simultaneous ticks.

    A simulation round is long enough for all work of a tick. The CPUs therefore act in the order of
    their numbers, as in the model.
    """
    events = traced(
        folder, f"scenario ties {policy}", cpus, TOGETHER, tick_ns=10 * TICK_NS, replacement=COARSE
    )
    return schedule_text(events, policy, cpus)


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize(
    "policy", [policy for policy in policies_and_presets() if is_pinned(policy)]
)
def test_ties_are_settled_the_same_everywhere(tmp_path: Path, policy: str, cpus: int) -> None:
    """The rules are in docs/policy-interface.md, "What happens first"."""
    by_model, together = model_schedule(tmp_path, "ties", policy, cpus)
    golden = golden_file(policy, cpus)
    if os.environ.get("SCHEDLAB_GOLDEN") == "write":
        golden.write_text(by_model)
    assert by_model == golden.read_text()
    if policy not in MEASURING:
        assert not together, "two CPUs act together: give the roles other amounts of work"
        assert kernel_schedule(tmp_path, policy, cpus) == golden.read_text()


def test_no_golden_story_is_left_over() -> None:
    known = {golden_file(policy, cpus) for policy in policies_and_presets() for cpus in (1, 2)}
    assert set(GOLDEN.glob("ties-*.txt")) <= known


# Order of execution


def begin_together(events: trace.Trace, count: int) -> tuple[int, list[int]]:
    """Returns the common wake-up tick of all processes of group "cpu" on CPU 0, and their order."""
    groups = role_names(events)
    woken: list[Record] = []
    for record in records_of(events):
        tick = record.time_ns // events.header.tick_ns
        if record.kind == Kind.WAKEUP and groups.get(record.process) == "cpu":
            woken = [old for old in woken if old.time_ns // events.header.tick_ns == tick]
            woken.append(record)
            if len(woken) == count:
                return tick, [one.process for one in woken]
    raise AssertionError(f"no {count} processes wake at one tick")


def first_exit(events: trace.Trace, pids: list[int]) -> int:
    """Returns the tick during which the first of the processes ends."""
    times = [
        record.time_ns
        for record in records_of(events)
        if record.kind == Kind.EXIT and record.process in pids
    ]
    return min(times) // events.header.tick_ns


def schedule_of(events: trace.Trace, begin: int, end: int) -> list[tuple[int, int, int]]:
    """Returns (tick, PID, annotation or 0) of the process that runs on CPU 0 in mid-tick."""
    rows: list[tuple[int, int, int]] = []
    tick, pid, remark, pending = begin, 0, 0, 0
    half = events.header.tick_ns // 2
    for record in records_of(events):
        while record.cpu == 0 and record.time_ns > tick * events.header.tick_ns + half:
            if tick >= end:
                return rows
            rows.append((tick, pid, remark))
            tick += 1
        if record.cpu != 0:
            continue
        if record.kind == Kind.SCHEDULER_ENTER:
            pending = 0
        elif record.kind == Kind.DECISION:
            pending = record.second
        elif record.kind == Kind.SCHEDULER_EXIT:
            pid, remark = record.process, pending
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
        ("whole-quanta", WHOLE_QUANTA, 3_000_000, 40),
    ],
)
def test_feedback_queue_follows_its_rule_tick_by_tick(
    tmp_path: Path, preset: str, rules: Rules, iterations: int, least_ticks: int
) -> None:
    """Three CPU-bound processes run study 4's figure 7 with two boosts, and study 3's time
    slices."""
    command = f"ladder -n 3 -a 2 -d 0 -i {iterations}"
    events = traced(tmp_path, command, 1, f"policy=mlfq:{preset}")
    begin, pids = begin_together(events, 3)
    end = first_exit(events, pids)
    assert end - begin >= least_ticks
    show_first_difference(
        schedule_of(events, begin, end), reference_schedule(rules, pids, begin, end)
    )


# Priority


STRICT = "priority set=aging_interval=0"


@pytest.mark.parametrize(
    ("policy", "cpus", "load"),
    [
        (STRICT, 1, "-n 3 -d 3 -c 8"),
        (STRICT, 2, "-n 3 -d 3 -c 12"),
        (STRICT, 4, "-n 5 -d 1 -c 20"),
        ("hybrid", 1, "-n 3 -d 3 -c 8"),
        ("hybrid", 3, "-n 4 -d 2 -c 16"),
    ],
)
def test_no_lower_priority_runs_while_a_higher_one_waits(
    tmp_path: Path, policy: str, cpus: int, load: str
) -> None:
    """On several CPUs, an inversion lasts at most a tick plus Spike's rounds; on one, only rounds.

    At each tick, a CPU looks at the other queues. The processes change their priorities.

    A CPU looks without locks. It may skip a queue that another CPU is changing, and finds the
    waiting task at its next tick; of ten loads with 16 to 25 children, one has two such ticks in a
    row. With long rounds, each CPU finishes its tick in one round, so this cannot happen.
    """
    command = f"ladder -a 1 -f 2 {load} -i 2000000 -r 20"
    several = TICK_NS if cpus > 1 else 0
    fine = traced(tmp_path, command, cpus, f"policy={policy}")
    inversion = priority_inversion(fine)
    assert inversion.length_ns <= 3 * several + 2 * ROUND_NS, inversion
    coarse = traced(tmp_path, command, cpus, f"policy={policy} {TOGETHER}", replacement=COARSE)
    inversion = priority_inversion(coarse)
    assert inversion.length_ns <= several + 2 * ROUND_NS, inversion


def priority_inversion(events: trace.Trace) -> Inversion:
    """Returns the longest inversion by the users' priorities, not the policy's internal ones."""
    values = Values(events, AttributeKind.PRIORITY)
    return longest_inversion(
        pieces_of(events, values, "runnable"), pieces_of(events, values, "running")
    )


# Exact shares


# Draws

# SPDX-License-Identifier: MIT
"""What each policy must show, read from traces of the kernel on Spike.

Ties: a scenario in which many things happen at one tick (tests/scenario/ties.h) is acted out by
the kernel and by the model of the tests. Both must tell the story in tests/golden/, as must the
simulator (tests/sim/test_simulator_scenarios.py). To write the stories anew, and then review what changed:

    SCHEDLAB_GOLDEN=write ./schedlab test tests/kernel/test_kernel_policies.py -k ties
    git diff tests/golden
"""

from __future__ import annotations

import os
from itertools import permutations
from pathlib import Path

import polars as pl
import pytest

from feedback_reference import ALLOTMENT_BOOST, FOUR_QUANTA, Rules
from feedback_reference import schedule as reference_schedule
from golden_stories import (
    GOLDEN,
    LATE,
    MEASURING,
    golden_file,
    is_pinned,
    policies_and_presets,
    told,
    told_by_model,
)
from guest_machine import ROUND_NS, TICK_NS, traced
from schedlab import metrics, trace
from schedlab.machines.spike import SPIKES_TURN, STANDARD_TURN
from schedlab.trace import AttributeKind, Kind, ProcessState
from trace_levels import Inversion, Piece, Values, longest_inversion, pieces_of
from trace_story import Record, records_of, role_names

pytestmark = pytest.mark.spike

TOGETHER = "stagger=0"
"""CPUs have their ticks at the same moment."""
COARSE = (f"--turn={STANDARD_TURN}", f"--turn={SPIKES_TURN}")
"""Turns as Spike's own program has them."""
EXEMPT_PIDS = 2
"""Of priority: processes up to this PID do not age."""


# Ties


def told_by_kernel(folder: Path, policy: str, cpus: int) -> str:
    """CPUs have their ticks at the same moment, and turns so long that each does in one of them all
    that comes of its tick: so they act in their order, as those of the model."""
    events = traced(
        folder, f"scenario ties {policy}", cpus, TOGETHER, tick_ns=10 * TICK_NS, instead=COARSE
    )
    return told(events, policy, cpus)


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("policy", [each for each in policies_and_presets() if each not in LATE])
def test_ties_are_settled_the_same_everywhere(tmp_path: Path, policy: str, cpus: int) -> None:
    """By the rules of docs/policy-interface.md, "What happens first"."""
    by_kernel = told_by_kernel(tmp_path, policy, cpus)
    by_model, together = told_by_model(tmp_path, "ties", policy, cpus)
    if is_pinned(policy) and policy not in MEASURING:
        assert not together, "two CPUs act together: give the roles other amounts of work"
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
    """Tick, PID, the policy's remark (0: none) of the process that runs in the middle of each tick on CPU 0."""
    rows: list[tuple[int, int, int]] = []
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
    events = traced(tmp_path, command, 1, f"policy=mlfq:{preset}")
    begin, pids = begin_together(events, 3)
    end = first_exit(events, pids)
    assert end - begin >= least_ticks
    show_first_difference(
        schedule_of(events, begin, end), reference_schedule(rules, pids, begin, end)
    )


def test_round_robin_goes_round_tick_by_tick(tmp_path: Path) -> None:
    """Study 4's figure 8."""
    events = traced(tmp_path, "ladder -n 3 -a 2 -d 0 -i 10000000", 1, "policy=rr")
    begin, pids = begin_together(events, 3)
    end = first_exit(events, pids)
    assert end - begin >= 250
    expected = [(tick, pids[(tick - begin) % 3], 0) for tick in range(begin, end)]
    show_first_difference(schedule_of(events, begin, end), expected)


def test_feedback_queue_serves_the_higher_level(tmp_path: Path) -> None:
    """As shipped, beside sleepers: a process that waits at a level is passed over by no lower one.

    A level is known when a process is picked; while it waits, only a boost changes it.
    """
    events = traced(tmp_path, "mixed -n 6 -g 60", 1, "policy=mlfq")
    inversion = longest_inversion(*levels_by_remark(events, period_ns=480 * TICK_NS))
    assert inversion.length_ns <= 2 * ROUND_NS, inversion


def levels_by_remark(events: trace.Trace, period_ns: int) -> tuple[list[Piece], list[Piece]]:
    """The processes that waited and ran at each level, upside down; waits that a boost changed are left out.

    Without what the process did to its level itself while it ran.
    """
    top = 100
    waiting, running = [], []
    since: dict[int, int] = {}
    run = Piece(0, 0, 0, 0, 0)
    level = 0
    for each in records_of(events):
        if each.kind == Kind.SCHEDULER_ENTER:
            level = 0
            if each.process:
                running.append(run._replace(end=each.time_ns))
                since[each.process] = each.time_ns
        elif each.kind == Kind.WAKEUP:
            since[each.process] = each.time_ns
        elif each.kind == Kind.FORK:
            since[each.first] = each.time_ns
        elif each.kind == Kind.DECISION:
            level = each.second
        elif each.kind == Kind.SCHEDULER_EXIT and each.process:
            run = Piece(each.process, each.cpu, each.time_ns, each.time_ns, top - level)
            if since[each.process] // period_ns == each.time_ns // period_ns:
                waiting.append(run._replace(begin=since[each.process]))
    return waiting, running


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
    """On any CPU for longer than the bound: a tick, at which it looks at the others' queues, and
    Spike's rounds. Within a queue, so on one CPU, at once. The processes change priorities.

    A CPU looks without locks. It may pass over a queue that another CPU is changing just then, and
    finds what waits there at its next tick; not where each CPU does all of its tick in one turn.
    """
    command = f"ladder -a 1 -f 2 {load} -i 2000000 -r 20"
    several = TICK_NS if cpus > 1 else 0
    fine = traced(tmp_path, command, cpus, f"policy={policy}")
    inversion = priority_inversion(fine)
    assert inversion.length_ns <= 2 * several + 2 * ROUND_NS, inversion
    coarse = traced(tmp_path, command, cpus, f"policy={policy} {TOGETHER}", instead=COARSE)
    inversion = priority_inversion(coarse)
    assert inversion.length_ns <= several + 2 * ROUND_NS, inversion


def test_round_robin_breaks_the_law_of_priorities(tmp_path: Path) -> None:
    """So the law can be broken, and is seen to be."""
    command = "ladder -a 1 -f 2 -d 3 -n 3 -c 8 -i 2000000 -r 20"
    inversion = priority_inversion(traced(tmp_path, command, 1, "policy=rr"))
    assert inversion.length_ns > 5 * TICK_NS


def priority_inversion(events: trace.Trace) -> Inversion:
    """By the priorities that users set, whatever the policy makes of them."""
    values = Values(events, AttributeKind.PRIORITY)
    return longest_inversion(
        pieces_of(events, values, "runnable"), pieces_of(events, values, "running")
    )


@pytest.mark.parametrize("interval", [0, 5])
def test_aging_bounds_each_wait(tmp_path: Path, interval: int) -> None:
    """Ten raises bring the lowest to the top, where each of the others has a turn before it. Without
    aging it waits until the others have ended."""
    processes, ticks_each = 6, 50
    command = f"ladder -a 1 -f 0 -d 2 -n {processes} -i {ticks_each * 100_000}"
    arguments = f"policy=priority set=aging_interval={interval}"
    events = traced(tmp_path, command, 1, arguments)
    values = Values(events, AttributeKind.PRIORITY)
    waits = [piece for piece in pieces_of(events, values, "runnable") if piece.pid > EXEMPT_PIDS]
    longest = max(piece.end - piece.begin for piece in waits)
    if interval:
        assert longest <= (10 * interval + processes) * TICK_NS + 2 * ROUND_NS
    else:
        assert longest >= (processes - 1) * ticks_each * TICK_NS


# Shares that are exact


def turns_of(events: trace.Trace, pids: list[int], begin: int, end: int) -> list[Piece]:
    """Each time that one of the processes ran, within these ticks, in order."""
    tick_ns = events.header.tick_ns
    table = metrics.state_intervals(events).filter(
        (pl.col("state") == "running")
        & pl.col("pid").is_in(pids)
        & (pl.col("begin_ns") >= begin * tick_ns)
        & (pl.col("end_ns") <= end * tick_ns)
    )
    columns = table.sort("begin_ns").select("pid", "cpu", "begin_ns", "end_ns")
    return [Piece(pid, cpu, start, stop, 0) for pid, cpu, start, stop in columns.iter_rows()]


@pytest.mark.parametrize("preset", ["", ":linux"])
@pytest.mark.parametrize("sleepers", [0, 3])
@pytest.mark.parametrize("tick_ms", [1, 10])
def test_weighted_slices_are_exact(
    tmp_path: Path, tick_ms: int, sleepers: int, preset: str
) -> None:
    """Weight × 10 ms, in turn. Sleepers make turns begin within a tick: one that cannot end at its
    time ends at the nearest tick, and what is missing or too much is in the next one."""
    command = f"ladder -a 3 -f 1 -d 2 -n 3 -i 17000000 -z {sleepers} -r 60"
    events = traced(tmp_path, command, 1, f"policy=wrr{preset}", tick_ns=tick_ms * TICK_NS)
    weights = Values(events, AttributeKind.WEIGHT)
    begin, pids = begin_together(events, 3)
    end = first_exit(events, pids)
    turns = turns_of(events, pids, begin, end)
    if preset:  # the newest is the first
        pids.reverse()
    assert [turn.pid for turn in turns] == [pids[place % 3] for place in range(len(turns))]
    assert len(turns) >= 9

    off: dict[int, int] = dict.fromkeys(pids, 0)
    half_tick = tick_ms * 1_000_000 // 2 if sleepers else 0
    for turn in turns:
        error = turn.end - turn.begin - weights.at(turn.pid, turn.begin) * 10_000_000
        off[turn.pid] += error
        carried = error if preset else off[turn.pid]
        assert abs(carried) <= half_tick + 2 * ROUND_NS, turn


@pytest.mark.parametrize("sleepers", [0, 3])
def test_strides_keep_all_within_a_turn_of_their_shares(tmp_path: Path, sleepers: int) -> None:
    """Tickets 1, 3 and 5: of any two, the one that is ahead is so by less than one turn."""
    command = f"ladder -a 2 -f 1 -d 2 -n 3 -i 10000000 -z {sleepers} -r 60"
    events = traced(tmp_path, command, 1, "policy=stride")
    tickets = Values(events, AttributeKind.TICKETS)
    begin, pids = begin_together(events, 3)
    turns = turns_of(events, pids, begin, first_exit(events, pids))
    assert len(turns) > 100
    progress = dict.fromkeys(pids, 0.0)
    for turn in turns:
        progress[turn.pid] += (turn.end - turn.begin) / tickets.at(turn.pid, turn.begin)
        for one, other in permutations(pids, 2):
            a_turn = TICK_NS / min(tickets.at(pid, turn.begin) for pid in (one, other))
            assert progress[one] - progress[other] <= a_turn + 2 * ROUND_NS


def test_round_robin_serves_first_who_came_first(tmp_path: Path) -> None:
    """Beside sleepers: each pick is of the process that has waited longest."""
    events = traced(tmp_path, "ladder -a 2 -d 0 -n 4 -z 6 -i 3000000", 1, "policy=rr")
    begin, _ = begin_together(events, 4)
    line: list[int] = []
    picks = 0
    for each in records_of(events):
        if each.kind == Kind.WAKEUP:
            line.append(each.process)
        elif each.kind == Kind.FORK:
            line.append(each.first)
        elif each.kind == Kind.SWITCH:
            if each.first and each.second == ProcessState.RUNNABLE:
                line.append(each.first)
            if each.process:
                assert line.pop(0) == each.process, each
                picks += each.time_ns >= begin * TICK_NS
    assert picks > 100


# Draws


@pytest.mark.parametrize(
    ("policy", "tickets_of"),
    [
        ("lottery set=compensation=1", AttributeKind.TICKETS),
        ("lottery:linux", AttributeKind.WEIGHT),
        ("lottery:equal-lfsr", None),
    ],
)
def test_draws_are_of_a_ticket_in_the_queue(
    tmp_path: Path, policy: str, tickets_of: AttributeKind | None
) -> None:
    """Each draw says its ticket and how many lost: those that wait in the trace, and a ticket of
    theirs or the winner's. (None: 100 each.)"""
    attribute = 3 if tickets_of == AttributeKind.WEIGHT else 2
    command = f"ladder -a {attribute} -f 1 -d 2 -n 4 -z 4 -i 5000000"
    events = traced(tmp_path, command, 1, f"policy={policy}")
    values = Values(events, tickets_of) if tickets_of else None
    draws = 0
    highest = 0.0
    for each, queued in decisions_and_queues(events):
        assert each.first == len(queued) - 1
        total = sum(values.at(pid, each.time_ns) if values else 100 for pid in queued)
        assert each.second < total, (each, queued)
        draws += 1
        highest = max(highest, each.second / total)
    assert draws > 200
    assert highest > 0.9


def decisions_and_queues(events: trace.Trace) -> list[tuple[Record, list[int]]]:
    """Each draw on one CPU, and the processes in the queue, the winner included."""
    found = []
    leaving = 0
    queued: set[int] = set()
    for each in records_of(events):
        if each.kind == Kind.WAKEUP:
            queued.add(each.process)
        elif each.kind == Kind.FORK:
            queued.add(each.first)
        elif each.kind in (Kind.BLOCK, Kind.EXIT):
            leaving = each.process
        elif each.kind == Kind.SCHEDULER_ENTER:
            if each.process and each.process != leaving:
                queued.add(each.process)
            leaving = 0
        elif each.kind == Kind.DECISION:
            found.append((each, sorted(queued)))
        elif each.kind == Kind.SCHEDULER_EXIT:
            queued.discard(each.process)
    return found

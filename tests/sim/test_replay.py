# SPDX-License-Identifier: MIT
"""Tests replays of the simulator's recordings: the same decisions again, and the origin of each
line.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from random_workloads import workloads
from schedlab import trace
from schedlab.base.toolchain.policies import known_policies
from schedlab.paths import ROOT
from schedlab.runs.replay import Replayed, derive_workload, parse_charges
from schedlab.trace import BlockReason, Kind, MarkKind, PreemptReason
from simulator_command import simulate

INIT = 1
LIMIT_NS = 200_000_000
SWITCHES = (
    "policy mlfq",
    "policy rr:table-scan",
    "policy lottery",
    "policy priority",
    "policy wrr",
)


def recorded(
    folder: Path, text: str, name: str, *options: str, costs: str = "none"
) -> trace.Trace | None:
    """Returns the trace of a workload, or None if the run failed, for example because all of its
    processes wait.
    """
    path = folder / f"{name}.bin"
    arguments = ("--limit", str(LIMIT_NS), "--costs", costs, "--trace", str(path), *options)
    result = simulate(folder, text, *arguments)
    assert result.returncode in (0, 1, 3), result.stderr
    failed = result.returncode == 1 and "ended with status" not in result.stderr
    return None if failed else trace.read(path)


def story(events: trace.Trace) -> pl.DataFrame:
    """Returns all events, except the names of programs and of groups."""
    label = (pl.col("kind") == Kind.MARK) & (pl.col("first") == MarkKind.GROUP)
    unsaid = pl.col("kind").is_in([Kind.EXEC, Kind.TEXT, Kind.END]) | label
    return events.events.filter(~unsaid).drop("sequence")


def goes_by_slots(policy: str) -> bool:
    """True if a policy or preset orders processes by their slots, which a trace does not have."""
    name, _, preset = policy.partition(":")
    values = known_policies()[name].presets[preset].values if preset else {}
    return bool(values.get("table_scan"))


def in_force(policy: str, text: str) -> set[str]:
    """Returns the policies of a workload that begins under one and may switch."""
    return {policy, *re.findall(r"^\s*policy (\S+)", text, re.MULTILINE)}


def may_hide_waits(events: trace.Trace) -> bool:
    """Returns True if the trace cannot show whether a process has waited for all of its ended
    children.

    A wait that finds an ended child leaves no record. If a process leaves children behind, init
    wakes for them. But if init must reap the process itself, it wakes in any case.
    """
    parent: dict[int, int] = {}
    ended: dict[int, int] = {}
    waiting: set[int] = set()
    for kind, process, first in events.events.select("kind", "process", "first").iter_rows():
        if kind == Kind.FORK:
            parent[first] = process
        elif kind == Kind.BLOCK and first == BlockReason.CHILD:
            ended[process] = 0
            waiting.add(process)
        elif kind == Kind.EXIT:
            above = parent.get(process, 0)
            if above == INIT and ended.get(process):
                return True
            if above in waiting:
                waiting.remove(above)
            else:
                ended[above] = ended.get(above, 0) + 1
            parent |= {child: INIT for child, parent_pid in parent.items() if parent_pid == process}
    return False


def has_timed_turns(policy: str) -> bool:
    """Returns True if a policy or one of its presets may end a turn between ticks."""
    (source,) = (ROOT / "policies").rglob(f"{policy.partition(':')[0]}.c")
    return ".turn_over" in source.read_text()


def lost_its_work(events: trace.Trace) -> bool:
    """Returns True if a process had work left when its turn ended, and none at its next turn: it
    computed until a time that elapsed while it waited. The trace cannot show this difference
    from work that ends with the turn.
    """
    over: set[int] = set()
    back: dict[int, int] = {}
    acts = (Kind.BLOCK, Kind.YIELD, Kind.FORK, Kind.EXIT, Kind.MARK, Kind.WAKEUP, Kind.ATTRIBUTE)
    columns = ("time_ns", "cpu", "kind", "process", "first")
    running: dict[int, int] = {}
    for time, cpu, kind, process, first in events.events.select(columns).iter_rows():
        if kind == Kind.PREEMPT and first == PreemptReason.SLICE:
            over.add(process)
        elif kind == Kind.SWITCH:
            running[cpu] = process
            if process in over:
                over.remove(process)
                back[process] = time
        elif kind in acts and back.pop(running.get(cpu, 0), None) == time:
            return True
    return False


def check_same(text: str, policy: str, cpus: int, seed: int, keep_switches: bool = False) -> None:
    """Checks that replaying a recording under its policy reproduces the recording."""
    options = ("--policy", policy, "--cpus", str(cpus), "--seed", str(seed))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        first = recorded(folder, text, "recorded", *options)
        by_slots = any(map(goes_by_slots, in_force(policy, text)))
        if first is None or (by_slots and may_hide_waits(first)):
            return
        by_the_clock = "run until" in text and any(map(has_timed_turns, in_force(policy, text)))
        if by_the_clock and lost_its_work(first):
            return
        replayed = derive_workload(first, parse_charges("none"), keep_switches)
        again = recorded(folder, replayed.text, "replayed", *options)
        assert again is not None, replayed.text
        before, after = story(first), story(again)
        for row, (one, other) in enumerate(zip(before.rows(), after.rows(), strict=False)):
            assert one == other, f"record {row} of {story(first).columns}\n{replayed.text}"
        assert len(before) == len(after), replayed.text


OPEN = """
program root
  mark begin
  fork hog
  arrive job 2500us
  deliver card 2700us
  arrive urgent 3100us
  arrive job 3100us
  deliver card 9ms
  deliver card 9ms
  arrive urgent 12ms
  arrive job 30ms
  wait all
  mark end
program hog
  fork server
  loop 3
    run 1300us
    sleep 800us
  end
  run 9ms
program job
  tickets 20
  run 2700us
program urgent
  priority 1
  nice -5
  run 1ms
  sleep 300us
  run 900us
program server
  loop 3
    take card
    run 400us
  end
"""


@pytest.mark.parametrize(("policy", "cpus"), [("lottery", 1), ("priority", 2)])
def test_external_events_are_replayed(policy: str, cpus: int) -> None:
    """The replay includes processes with their attributes, device input, and the process that
    waited for all of them.
    """
    check_same(OPEN, policy, cpus, 1)


@pytest.mark.parametrize("policy", ["priority", "eevdf"])
def test_arrivals_do_not_wait_for_another_policy(tmp_path: Path, policy: str) -> None:
    """If all processes are jobs, a replay under another policy equals that policy's run of the same
    jobs.
    """
    jobs = re.sub(r".*(fork hog|deliver card).*\n", "", OPEN)
    first, expected = (recorded(tmp_path, jobs, name, "--policy", name) for name in ("rr", policy))
    assert first is not None
    assert expected is not None
    text = derive_workload(first, parse_charges("none")).text
    again = recorded(tmp_path, text, "again", "--policy", policy)
    assert again is not None
    assert story(again).rows() == story(expected).rows()
    assert story(first).rows() != story(expected).rows()


def test_events_happen_without_a_known_cause(tmp_path: Path) -> None:
    """The last signal finds its receiver running, so the trace has neither the signal nor the task
    that it released.
    """
    text = """
program root
  fork server
  deliver card 2ms
  deliver card 2100us
  wait
program server
  run 1ms
  take card
  run 500us
  take card
  run 500us
"""
    events = recorded(tmp_path, text, "recorded")
    assert events is not None
    replayed = derive_workload(events, parse_charges("none"))
    assert "deliver wake.3.2 2000000ns" in program(replayed, "start")
    assert program(replayed, "server")[:3] == ["run 1000000ns", "take wake.3.2", "run 1000000ns"]
    late = replayed.text.replace("  run 1000000ns\n  take", "  run 5ms\n  take")
    again = recorded(tmp_path, late, "late")
    assert again is not None
    assert max(_ends(again)) == 6_000_000, "it does not wait for what has come"


ROOT_LEAVES_A_CHILD = """
program root
  mark begin
  fork parent
  run 1ms
  fork parent
  fork parent
  fork parent
  mark end
program parent
  fork child
program child
  run 1ns
"""


IN_PARTS = """
program root
  mark begin
  fork parts
  fork other
  run 1ns
  fork other
  run 1ns
  mark end
program parts
  run 1ns
  run 1ns
program other
  run 1ns
"""
"""For a policy that uses a process's service before its act (`eevdf:paper`)."""

OWNERS_DRAW = "lottery:transfers"
"""A preset whose draws depend on lock owners. A recording does not name the process that is
waited for, and here each wait changes all later draws.
"""


@pytest.mark.parametrize("policy", known_policies())
@given(
    text=workloads(),
    cpus=st.sampled_from((1, 2, 3, 4, 8)),
    seed=st.integers(1, 1000),
    preset=st.integers(0, 5),
)
@example(text=ROOT_LEAVES_A_CHILD, cpus=1, seed=1, preset=0)
@example(text=IN_PARTS, cpus=2, seed=1, preset=2)
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_same_policy_makes_the_same_decisions(
    policy: str, text: str, cpus: int, seed: int, preset: int
) -> None:
    """Record for record: which process ran where, from when to when, and why it stopped. The
    workload has all kinds of steps, and lottery draws the same numbers.
    """
    choices = [policy, *(f"{policy}:{name}" for name in known_policies()[policy].presets)]
    choices = [choice for choice in choices if choice != OWNERS_DRAW]
    check_same(text, choices[preset % len(choices)], cpus, seed)


def test_work_by_the_clock_that_a_turn_cut_short_ends_with_that_turn(tmp_path: Path) -> None:
    """The first child has 0.5 ms to go when its turn ends, and nothing when it is back."""
    text = """
program root
  mark begin
  loop 3
    fork one
  end
  wait
  mark end
program one
  run until 3500us
"""
    first = recorded(tmp_path, text, "recorded", "--policy", "hsfq:unlimited", "--cpus", "2")
    assert first is not None
    assert lost_its_work(first)
    assert program(derive_workload(first, parse_charges("none")), "one") == [
        "run 3000000ns",
        "exit 0",
    ]


SWITCHED_TO_SLOTS = """
program root
  fork one
  run 1ns
  fork one
  wait
  fork two
program one
  run 1ns
program two
  policy rr:table-scan
"""
"""The situation of ROOT_LEAVES_A_CHILD, before the slot-ordered policy becomes active."""


@example(text=SWITCHED_TO_SLOTS, cpus=2)
@given(text=workloads(SWITCHES), cpus=st.integers(1, 4))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_policy_switches_are_replayed_on_request(text: str, cpus: int) -> None:
    check_same(text, "stride", cpus, 1, keep_switches=True)


LEFT_AS_IT_RAN = """
program root
  fork one
  fork one
  priority 6
program one
  run 1ms
"""
"""The machine ends before one of the children: by the recording, the child may run forever."""


@given(text=workloads(), policy=st.sampled_from(("mlfq", "priority", "stride", "wrr", "lottery")))
@example(text=LEFT_AS_IT_RAN, policy="priority")
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_another_policy_never_leaves_all_waiting(text: str, policy: str) -> None:
    """A process that was woken in the recording is woken in any order, so a replay adds no
    deadlock. A process that still ran at the recording's end has no end in the replay. Under a
    policy that starves others, the time limit then ends the run.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        first = recorded(folder, text, "recorded", "--cpus", "2")
        lasted = first is not None and first.end_ns < LIMIT_NS
        if first is None or not lasted:
            return
        replayed = derive_workload(first, parse_charges("none")).text
        options = ("--policy", policy, "--cpus", "2", "--costs", "none", "--no-trace")
        result = simulate(folder, replayed, *options)
        assert "all processes wait" not in result.stderr, replayed
        assert result.returncode in ((0, 1, 3) if has_no_end(replayed) else (0, 1)), result.stderr


def has_no_end(text: str) -> bool:
    """Returns whether a program of a workload has a loop without an exit."""
    return re.search(r"^ *loop$", text, re.MULTILINE) is not None


WITHOUT_TURNS = (
    "none,scheduler=296,switch=145,tick=5523,interrupt=7500,call=2700,sleep=1900,pipe=2100,"
    "fork=15000,exit=17300,reap=800"
)
"""All costs except those of calls within a turn, whose times no trace shows."""
TOGETHER = ",stagger=0"
"""All CPUs tick at the same moment. Otherwise events within microseconds of ticks decide
which CPU is found idle, and a process may end a tick later.
"""
HOW = {WITHOUT_TURNS: 0, f"kernel{TOGETHER}": 40_000}
"""Costs, and the tolerance of the processes' end times in nanoseconds."""


@pytest.mark.parametrize("costs", list(HOW), ids=["exactly", "kernel"])
@pytest.mark.parametrize(
    ("policy", "cpus"), [("rr", 4), ("mlfq", 1), ("priority", 2), ("stride", 3), ("wrr", 1)]
)
def test_what_the_machine_costs_is_paid_once(
    tmp_path: Path, policy: str, cpus: int, costs: str
) -> None:
    """Each process computes as long between its acts as recorded, minus the costs that the replay
    charges again.
    """
    options = ("--policy", policy, "--cpus", str(cpus))
    text = """
channel go 0
program root
  group root
  mark begin
  loop 5
    fork worker
  end
  fork server
  fork client
  loop 7
    wait
  end
  mark end
program worker
  run 7ms
  loop 3
    sleep 2ticks
    run 1234us
    yield
    run 3ms
  end
program server
  loop 9
    take go
    run 500us
  end
program client
  loop 9
    sleep 4321us
    run 250us
    give go
  end
"""
    first = recorded(tmp_path, text, "recorded", *options, costs=costs)
    assert first is not None
    replayed = derive_workload(first, parse_charges(costs, policy))
    again = recorded(tmp_path, replayed.text, "replayed", *options, costs=costs)
    assert again is not None
    if HOW[costs] == 0:
        assert story(again).rows() == story(first).rows()
    assert _ends(again) == pytest.approx(_ends(first), abs=HOW[costs])


def _ends(events: trace.Trace) -> list[int]:
    """Returns when each process ended, in nanoseconds, by PID."""
    rows = events.events.filter(kind=int(Kind.EXIT)).sort("process")
    return [int(time) for time in rows["time_ns"]]


# --- the origin of lines


def replay_of(folder: Path, text: str, *options: str, keep_switches: bool = False) -> Replayed:
    events = recorded(folder, text, "recorded", *options)
    assert events is not None
    return derive_workload(events, parse_charges("none"), keep_switches)


def program(replayed: Replayed, name: str) -> list[str]:
    """Returns its lines, without their indents."""
    bodies = replayed.text.split("program ")[1:]
    (body,) = (candidate for candidate in bodies if candidate.split("\n")[0] == name)
    return [line.strip() for line in body.split("\n")[1:] if line.strip()]


def replay_lines(folder: Path, *lines: str, others: str = "") -> list[str]:
    """Returns the inferred program of a process that does this, without `exit 0`."""
    text = "program root\nfork one\nrun 1ms\nsleep 90ms\nprogram one\n" + "\n".join(lines) + "\n"
    replayed = replay_of(folder, text + others, "--cpus", "2")
    program_lines = program(replayed, "one")
    assert program_lines[-1] == "exit 0"
    return program_lines[:-1]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["run 3ms", "run 2ms"], ["run 5000000ns"]),
        (["run 3ms", "sleep 2500us"], ["run 3000000ns", "sleep 2500000ns"]),
        (["run 300us", "sleep 2ticks"], ["run 300000ns", "sleep 2ticks"]),
        (["run 1ms", "yield", "run 1ms"], ["run 1000000ns", "yield", "run 1000000ns"]),
        (["priority 3", "tickets 8", "weight 2"], ["priority 3", "tickets 8", "weight 2"]),
        (["group a", "mark note 9"], ["group a", "mark note 9"]),
        (["run until 7ms"], ["run 7000000ns"]),
        (
            ["loop 9", "run 100us", "sleep 777us", "end"],
            ["loop 9", "run 100000ns", "sleep 777000ns", "end"],
        ),
        (["fork two", "run 1ms", "wait"], ["fork two", "run 1000000ns", "wait"]),
    ],
)
def test_lines(tmp_path: Path, lines: list[str], expected: list[str]) -> None:
    two = "program two\nrun 5ms\n" if "fork two" in lines else ""
    assert replay_lines(tmp_path, *lines, others=two) == expected


def test_what_competes_until_the_window_ends_does_so_again(tmp_path: Path) -> None:
    """The work it had computed by then is the CPU time it received, not the time it needed."""
    text = """
program root
  mark begin
  fork one
  fork one
  sleep 20ms
  mark end
program one
  loop
    run 1ms
  end
"""
    replayed = replay_of(tmp_path, text, "--cpus", "3")
    assert program(replayed, "one") == ["run until 20000000ns", "loop", "run 1s", "end"]


def test_a_trace_that_was_cut_off(tmp_path: Path) -> None:
    """A computing process keeps computing; a sleeping one keeps sleeping."""
    text = """
program root
  fork busy
  fork idle
  wait
program busy
  run 900ms
program idle
  sleep 500ms
"""
    events = recorded(tmp_path, text, "recorded")
    assert events is not None
    content = (tmp_path / "recorded.bin").read_bytes()
    (tmp_path / "cut.bin").write_bytes(content[: len(content) // 2 // 32 * 32 + 7])
    cut = trace.read(tmp_path / "cut.bin")
    assert cut.truncated
    replayed = derive_workload(cut, parse_charges("none"))
    assert program(replayed, "busy") == ["loop", "run 1s", "end"]
    assert program(replayed, "idle") == ["sleep 1000000s"]
    assert any("incomplete" in note for note in replayed.notes)


def test_killed_processes_would_have_continued(tmp_path: Path) -> None:
    """As on the kernel, the process ends with -1, regardless of its next act."""
    events = recorded(tmp_path, "program root\nfork one\nwait\nprogram one\nrun 5ms\n", "recorded")
    assert events is not None
    content = bytearray((tmp_path / "recorded.bin").read_bytes())
    kinds = [
        int.from_bytes(content[position + 16 : position + 18], "little")
        for position in range(64, len(content), 32)
    ]
    first_exit = 64 + 32 * kinds.index(Kind.EXIT)
    content[first_exit + 20 : first_exit + 24] = b"\xff" * 4
    (tmp_path / "killed.bin").write_bytes(content)
    replayed = derive_workload(trace.read(tmp_path / "killed.bin"), parse_charges("none"))
    assert program(replayed, "one") == ["run until 5000000ns", "exit 1"]


def test_processes_from_before_the_trace(tmp_path: Path) -> None:
    """As on a machine that is recorded while it runs, something must start them."""
    text = """
program root
  fork one
  run 20ms
  give bell
  wait
program one
  take bell
  run 5ms
"""
    events = recorded(tmp_path, text, "recorded")
    assert events is not None
    without = tmp_path / "without.bin"
    content = (tmp_path / "recorded.bin").read_bytes()
    records = [content[position : position + 32] for position in range(64, len(content), 32)]
    kinds = [int.from_bytes(record[16:18], "little") for record in records]
    blocked = kinds.index(Kind.BLOCK, kinds.index(Kind.BLOCK) + 1)
    without.write_bytes(content[:64] + records[0] + b"".join(records[blocked + 4 :]))
    replayed = derive_workload(trace.read(without), parse_charges("none"))
    starter = program(replayed, "start")
    assert sum(line.startswith("fork ") for line in starter) == 3  # init, root and one
    assert any("take wake.3" in line for line in replayed.text.split("\n"))
    assert any("give wake.3" in line for line in replayed.text.split("\n"))
    assert simulate(tmp_path, replayed.text, "--no-trace").returncode == 0

# SPDX-License-Identifier: MIT
"""The simulator, with the kernel's costs, against the kernel on Spike: the same work, as a program
there and as a workload file here. Where the n-th draw decides, one decision more or less on the way
there makes another schedule, as another seed does; if both begin with the same number of draws, they
make the same decisions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from chessboard import chessboard

from guest_machine import TICK_NS, traced
from played import play, simulated
from schedlab import metrics, trace
from schedlab.machines.spike import TURN_VARIABLE, find_spike
from schedlab.paths import ROOT
from schedlab.trace import Kind
from schedlab.workload.delays import delayed_costs
from simulator_command import simulate

pytestmark = pytest.mark.spike

POLICIES = ("rr", "wrr", "priority", "mlfq", "stride")
NEARNESS = 0.02
"""Of a time; or else a tick."""
FORK_KNOWN_NS = 20
"""A cost that changes by less has not drifted, says `./schedlab calibrate`."""

CPU_BOUND = """
program root
  group root
  mark begin
  loop 8
    fork worker
  end
  loop 8
    wait
  end
  mark end
program worker
  group cpu
  run 30ms
"""

LADDER = """
program root
  group root
  mark begin
  fork one
  fork two
  fork three
  fork four
  loop 4
    wait
  end
  mark end
""" + "".join(
    f"program {name}\n  group cpu\n  tickets {tickets}\n  sleep 1tick\n  run 30ms\n"
    for name, tickets in (("one", 10), ("two", 20), ("three", 30), ("four", 40))
)

WORK = {
    "cpu-bound -n 8 -i 3000000": CPU_BOUND,
    "ladder -n 4 -a 2 -f 10 -d 10 -i 3000000": LADDER,
}


def turnarounds(events: trace.Trace) -> list[int]:
    """Of the processes that compute, the shortest first."""
    processes = metrics.compute(events).processes.filter(group="cpu")
    return sorted(int(time) for time in processes["turnaround_ns"])


TESTS = {
    "switch": ("loop 200\n fork child\n wait\n wait\n end", ""),
    "creation": ("loop 50\n fork child\n end\n loop 51\n wait\n end", ""),
    "io-bound": (
        "loop 2\n loop 50\n fork child\n end\n loop 51\n wait\n end\n end",
        "sleep 10ticks",
    ),
    "cpu-heavy": ("loop 10\n fork child\n end\n loop 11\n wait\n end", "run 8600us"),
}
"""Of study 1: what the root does, and each child. A parent waits until it is told that there is no
child left; a child asks for the time first, which is a call as any that does nothing."""


def study_test(test: str, before: str = "") -> str:
    root, child = TESTS[test]
    return (
        f"program root\n group root\n mark begin\n {before}\n {root}\n wait\n mark end\n"
        f"program child\n group cpu\n sleep until 0ns\n {child}\n"
    )


def booted(
    folder: Path, text: str, policy: str, cpus: int, boot_ns: int, costs: str = "kernel"
) -> trace.Trace:
    path = folder / "simulated.bin"
    machine = ("--policy", policy, "--cpus", str(cpus), "--costs", f"{costs},boot={boot_ns}")
    done = simulate(folder, text, *machine, "--trace", str(path))
    assert done.returncode == 0, done.stderr
    events = trace.read(path)
    trace.validate(events)
    return events


def first_fork(events: trace.Trace) -> int:
    """Of the workload's root: its row."""
    begin = int(events.rows(Kind.MARK)[events.column("first")[events.rows(Kind.MARK)] == 1][0])
    forks = events.rows(Kind.FORK)
    return int(forks[forks > begin][0])


def begun_together(
    folder: Path,
    there: trace.Trace,
    text: str,
    policy: str,
    cpus: int,
    costs: str = "kernel",
    shift_ns: int = 100,
) -> trace.Trace:
    """Simulated, with the first fork so long after the kernel's. Where in a tick that is decides who
    is first; it hangs on how long the kernel boots, and on what the program does before."""
    boot = 4_000_000
    wanted = int(there.column("time_ns")[first_fork(there)]) + shift_ns
    for _ in range(2):
        here = booted(folder, text, policy, cpus, boot, costs)
        boot += wanted - int(here.column("time_ns")[first_fork(here)])
    return here


def is_near(here: float, there: float) -> bool:
    return abs(here - there) <= max(NEARNESS * there, TICK_NS)


SHIFTS_NS = (100, 10_000, -10_000, 20_000, -20_000)
"""About a fork, the time by which simulator and kernel may see a tick on different sides of one."""


def summary(times: list[int]) -> tuple[float, int, int]:
    """The mean, the shortest and the longest."""
    return sum(times) / len(times), times[0], times[-1]


@pytest.mark.parametrize(("command", "policy", "cpus"), chessboard(list(WORK), POLICIES, (1, 2, 3)))
def test_completion_times(tmp_path: Path, command: str, policy: str, cpus: int) -> None:
    """A few instructions decide whether a tick comes before one of the forks, and that shifts all
    turns. So one of several beginnings must agree in all three times, and on one CPU the command
    begins after a tick."""
    begun = f"sh -c 'sleep 1; {command}'" if cpus == 1 else command
    kernel = traced(tmp_path, begun, cpus, f"policy={policy}")
    there = turnarounds(kernel)
    told = [f"kernel {summary(there)}"]
    for shift_ns in SHIFTS_NS:
        events = begun_together(tmp_path, kernel, WORK[command], policy, cpus, shift_ns=shift_ns)
        here = turnarounds(events)
        assert len(here) == len(there)
        told.append(f"simulator {shift_ns:+} ns {summary(here)}")
        if all(map(is_near, summary(here), summary(there))):
            return
    pytest.fail("\n".join(told))


SLEEPERS = """
program root
  group root
  mark begin
  loop 9
    fork sleeper
  end
  loop 9
    wait
  end
  mark end
program sleeper
  loop 20
    run 1100us
    sleep 1tick
  end
"""


def within_ticks(events: trace.Trace, kind: Kind) -> list[int]:
    """Of each CPU: how early in a tick a record of a kind comes that an interrupt makes."""
    rows = events.rows(kind)
    rows = rows[events.at("first", rows) == (1 if kind == Kind.PREEMPT else 0)]
    cpu, time = events.at("cpu", rows), events.at("time_ns", rows) % TICK_NS
    return [int(time[cpu == each].min()) for each in range(events.header.cpus)]


def test_ticks_are_as_far_apart_as_the_kernels(tmp_path: Path) -> None:
    """What comes of CPU 0's tick comes first, and of each other one's a microsecond later; and so do
    processes wake that sleep until a tick."""
    kernel = within_ticks(
        traced(tmp_path, "cpu-bound -n 8 -i 3000000", 3, "policy=rr"), Kind.PREEMPT
    )
    assert [each - kernel[0] for each in kernel] == [0, 1000, 2000]
    preempted = booted(tmp_path, CPU_BOUND, "rr", 3, 0)
    assert within_ticks(preempted, Kind.PREEMPT) == [0, 1000, 2000]
    woken = booted(tmp_path, SLEEPERS, "rr", 3, 0)
    assert [each // 1000 for each in within_ticks(woken, Kind.WAKEUP)] == [0, 1, 2]
    at_once = booted(tmp_path, SLEEPERS, "rr", 3, 0, "kernel,stagger=0")
    assert [each // 1000 for each in within_ticks(at_once, Kind.WAKEUP)] == [0, 0, 0]


def forks_of(policy: str, change_ns: int) -> str:
    """The kernel's costs, with the policy's fork dearer by so much."""
    built_in = json.loads((ROOT / "sim/costs/kernel.json").read_text())["costs"]
    name = f"fork.{policy}" if f"fork.{policy}" in built_in else "fork"
    return f"kernel,{name}={built_in[name]['ns'] + change_ns}"


@pytest.fixture
def shortest_turns(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Of the machine's CPUs: which Spike there is, is found anew."""
    monkeypatch.setenv(TURN_VARIABLE, "100")
    find_spike.cache_clear()
    yield
    find_spike.cache_clear()


@pytest.mark.usefixtures("shortest_turns")
@pytest.mark.parametrize("cpus", [1, 5])
@pytest.mark.parametrize("policy", ["rr", "mlfq", "lottery"])
@pytest.mark.parametrize("test", ["switch", "creation", "io-bound"])
def test_processes_that_are_forked(tmp_path: Path, test: str, policy: str, cpus: int) -> None:
    """The kernel lies between two simulations whose forks differ by what a cost is known to, with
    an eighth of a tick to either side: there are 50 to 200 forks in it. Where a few instructions
    decide whether a fork fits into a turn, the two are far apart, and the kernel has some forks of
    either kind; elsewhere they are the same. The machine's own turns are the shortest: with those of
    500 instructions what goes from CPU to CPU is rounded to 0.5 us, 200 times."""
    there = traced(tmp_path, f"timingtests {test}", cpus, f"policy={policy}")
    kernel = metrics.compute(there).summary["completion_ns"][0]
    found = []
    for change in (-FORK_KNOWN_NS, FORK_KNOWN_NS):
        costs = forks_of(policy, change)
        here = begun_together(tmp_path, there, study_test(test), policy, cpus, costs)
        found.append(metrics.compute(here).summary["completion_ns"][0])
    print(f"completion: simulator {found[0]} to {found[1]} ns, kernel {kernel} ns")
    margin = max(0.002 * kernel, TICK_NS / 8)
    assert min(found) - margin <= kernel <= max(found) + margin


@pytest.mark.parametrize(
    ("test", "policy", "cpus"),
    chessboard(list(TESTS), ("rr:table-scan", "priority:thesis"), (1, 3)),
)
def test_forks_that_are_delayed(tmp_path: Path, test: str, policy: str, cpus: int) -> None:
    """By 0.38 ticks, as forks took on study 1's machine: kernel and simulator agree as they do
    without it."""
    there = traced(tmp_path, f"timingtests {test}", cpus, f"policy={policy} fork-delay=380us")
    costs = delayed_costs("kernel", (("fork", 380_000),))
    here = begun_together(tmp_path, there, study_test(test), policy, cpus, costs)
    kernel, simulator = (
        metrics.compute(each).summary["completion_ns"][0] for each in (there, here)
    )
    print(f"completion: simulator {simulator} ns, kernel {kernel} ns")
    assert is_near(simulator, kernel)


def draws(events: trace.Trace) -> tuple[int, list[tuple[int, int]]]:
    """How many there are before the first fork; after it: which process wins, and by which ticket."""
    picks, begin = events.rows(Kind.SCHEDULER_EXIT), first_fork(events)
    before = (picks < begin) & (events.column("process")[picks] != 0)
    rows = events.rows(Kind.DECISION)
    columns = [events.column(name)[rows[rows > begin]].tolist() for name in ("process", "second")]
    return int(before.sum()), list(zip(*columns, strict=True))


def test_lottery_draw_by_draw(tmp_path: Path) -> None:
    """As many draws before the workload, and all that follow are the same, and so are their winners."""
    there = traced(tmp_path, "timingtests cpu-heavy", 1, "policy=lottery")
    before, wanted = draws(there)
    yields, late = 1, 1_000_000
    for _ in range(4):
        waits = f"loop {yields}\n yield\n end\n run until {late}ns\n"
        here = booted(tmp_path, study_test("cpu-heavy", waits), "lottery", 1, 0)
        found, made = draws(here)
        yields += before - found
        times = [int(each.column("time_ns")[first_fork(each)]) for each in (there, here)]
        late += (times[0] - times[1] + TICK_NS // 2) % TICK_NS - TICK_NS // 2
    assert found == before
    children = len(made) - 1  # the last is init's: the kernel's root prints, too
    assert children > 100
    assert made[:children] == wanted[:children]


CHANGES = """
program a
  run 10ms
  fork b
  run 30ms
  priority 5 b
  run 2ms
  policy rr
  run 2ms
  set slice=1
  run 2ms
  wait
program b
  run 100ms
"""
"""a, on CPU 1, changes what concerns b, on CPU 0."""


def delays(events: trace.Trace) -> list[int]:
    """Of each change: nanoseconds until the other CPU enters the scheduler; 0 within the clock's step."""
    records = list(events.events.select("time_ns", "cpu", "kind").iter_rows())
    kinds = (Kind.ATTRIBUTE, Kind.POLICY, Kind.TUNABLE)
    begin = next(t for t, cpu, kind in records if kind == Kind.FORK and cpu == 1)
    changes = [(t, cpu) for t, cpu, kind in records if kind in kinds and t > begin]
    return [
        next(
            t for t, cpu, kind in records if t >= told and kind == Kind.SCHEDULER_ENTER and cpu == 0
        )
        - told
        for told, teller in changes
        if teller == 1
    ]


def test_another_cpu_hears_of_a_change_when_it_does_on_the_kernel(tmp_path: Path) -> None:
    """Of an attribute, the policy, a tunable: to a fifth of a turn."""
    kernel = delays(play(tmp_path, CHANGES, "rr", 2))
    found = delays(simulated(tmp_path, CHANGES, "rr", 2))
    assert len(kernel) == len(found) == 3
    assert all(abs(here - there) < 1000 for here, there in zip(found, kernel, strict=True))

# SPDX-License-Identifier: MIT
"""Tests the simulator, with the kernel's costs, against the kernel on Spike.

Both do the same work: a program on the kernel, a workload file in the simulator. If the n-th draw
decides, one earlier decision more or less gives another schedule, as another seed would. If both
begin with the same number of draws, they make the same decisions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from guest_machine import TICK_NS, traced
from schedlab import metrics, trace
from schedlab.machines.spike import TURN_VARIABLE, find_spike
from schedlab.paths import ROOT
from schedlab.trace import Kind
from simulator_command import simulate

pytestmark = pytest.mark.spike

FORK_KNOWN_NS = 20
"""`./schedlab calibrate` reports no drift for a cost that changes by less."""

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


TESTS = {
    "switch": ("loop 200\n fork child\n wait\n wait\n end", ""),
    "creation": ("loop 50\n fork child\n end\n loop 51\n wait\n end", ""),
    "io-bound": (
        "loop 2\n loop 50\n fork child\n end\n loop 51\n wait\n end\n end",
        "sleep 10ticks",
    ),
    "cpu-heavy": ("loop 10\n fork child\n end\n loop 11\n wait\n end", "run 8600us"),
}
"""Study 1's programs: the root's steps, and each child's. A parent waits until no child is
left. A child first asks for the time, as an example of a call without effect.
"""


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
    result = simulate(folder, text, *machine, "--trace", str(path))
    assert result.returncode == 0, result.stderr
    events = trace.read(path)
    trace.validate(events)
    return events


def first_fork(events: trace.Trace) -> int:
    """Returns the row of the first fork of the workload's root."""
    begin = int(events.rows(Kind.MARK)[events.column("first")[events.rows(Kind.MARK)] == 1][0])
    forks = events.rows(Kind.FORK)
    return int(forks[forks > begin][0])


def started_together(
    folder: Path,
    kernel_trace: trace.Trace,
    text: str,
    policy: str,
    cpus: int,
    costs: str = "kernel",
    shift_ns: int = 100,
) -> trace.Trace:
    """Simulates with the first fork at the kernel's delay. Its place in a tick decides the order of
    processes; it depends on the kernel's boot time and on the program's earlier steps.
    """
    boot = 4_000_000
    target_ns = int(kernel_trace.column("time_ns")[first_fork(kernel_trace)]) + shift_ns
    for _ in range(2):
        simulated_trace = booted(folder, text, policy, cpus, boot, costs)
        boot += target_ns - int(simulated_trace.column("time_ns")[first_fork(simulated_trace)])
    return simulated_trace


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
    """Returns, for each CPU, how early in a tick a record caused by an interrupt can occur."""
    rows = events.rows(kind)
    rows = rows[events.at("first", rows) == (1 if kind == Kind.PREEMPT else 0)]
    cpu, time = events.at("cpu", rows), events.at("time_ns", rows) % TICK_NS
    return [int(time[cpu == cpu_number].min()) for cpu_number in range(events.header.cpus)]


def test_tick_intervals_equal_the_kernels(tmp_path: Path) -> None:
    """CPU 0 ticks first, and each further CPU a microsecond later. Processes that sleep until a
    tick wake in the same way.
    """
    kernel = within_ticks(
        traced(tmp_path, "cpu-bound -n 8 -i 3000000", 3, "policy=rr"), Kind.PREEMPT
    )
    assert [tick_ns - kernel[0] for tick_ns in kernel] == [0, 1000, 2000]
    preempted = booted(tmp_path, CPU_BOUND, "rr", 3, 0)
    assert within_ticks(preempted, Kind.PREEMPT) == [0, 1000, 2000]
    woken = booted(tmp_path, SLEEPERS, "rr", 3, 0)
    assert [offset_ns // 1000 for offset_ns in within_ticks(woken, Kind.WAKEUP)] == [0, 1, 2]
    at_once = booted(tmp_path, SLEEPERS, "rr", 3, 0, "kernel,stagger=0")
    assert [offset_ns // 1000 for offset_ns in within_ticks(at_once, Kind.WAKEUP)] == [0, 0, 0]


def forks_of(policy: str, change_ns: int) -> str:
    """Returns the kernel's costs, with the policy's fork more expensive by this much."""
    built_in = json.loads((ROOT / "sim/costs/kernel.json").read_text())["costs"]
    name = f"fork.{policy}" if f"fork.{policy}" in built_in else "fork"
    return f"kernel,{name}={built_in[name]['ns'] + change_ns}"


@pytest.fixture
def shortest_turns(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sets the machine's CPU turns to the minimum, and detects the installed Spike again."""
    monkeypatch.setenv(TURN_VARIABLE, "100")
    find_spike.cache_clear()
    yield
    find_spike.cache_clear()


@pytest.mark.usefixtures("shortest_turns")
@pytest.mark.parametrize(
    ("test", "policy", "cpus"),
    [("switch", "rr", 5), ("creation", "lottery", 1), ("io-bound", "mlfq", 5)],
)
def test_processes_that_are_forked(tmp_path: Path, test: str, policy: str, cpus: int) -> None:
    """The kernel lies between two simulations. Their fork costs differ by the uncertainty of a
    cost, with a margin of an eighth of a tick on either side: it contains 50 to 200 forks.

    Where a few instructions decide whether a fork fits into a turn, the two are far apart, and the
    kernel has forks of either kind. Elsewhere they are the same. The machine's turns are the
    shortest: turns of 500 instructions round messages between CPUs to 0.5 us, 200 times.
    """
    kernel_trace = traced(tmp_path, f"timingtests {test}", cpus, f"policy={policy}")
    kernel = metrics.compute(kernel_trace).summary["completion_ns"][0]
    completion_times = []
    for change in (-FORK_KNOWN_NS, FORK_KNOWN_NS):
        costs = forks_of(policy, change)
        simulated_trace = started_together(
            tmp_path, kernel_trace, study_test(test), policy, cpus, costs
        )
        completion_times.append(metrics.compute(simulated_trace).summary["completion_ns"][0])
    print(
        f"completion: simulator {completion_times[0]} to {completion_times[1]} ns, kernel {kernel} ns"
    )
    margin = max(0.002 * kernel, TICK_NS / 8)
    assert min(completion_times) - margin <= kernel <= max(completion_times) + margin


def draws(events: trace.Trace) -> tuple[int, list[tuple[int, int]]]:
    """Returns the number of draws before the first fork; then each winner and its ticket."""
    picks, begin = events.rows(Kind.SCHEDULER_EXIT), first_fork(events)
    before = (picks < begin) & (events.column("process")[picks] != 0)
    rows = events.rows(Kind.DECISION)
    columns = [events.column(name)[rows[rows > begin]].tolist() for name in ("process", "second")]
    return int(before.sum()), list(zip(*columns, strict=True))


def test_lottery_draw_by_draw(tmp_path: Path) -> None:
    """Both have as many draws before the workload, and all later draws and winners are the same."""
    kernel_trace = traced(tmp_path, "timingtests cpu-heavy", 1, "policy=lottery")
    before, kernel_draws = draws(kernel_trace)
    yields, late = 1, 1_000_000
    for _ in range(4):
        waits = f"loop {yields}\n yield\n end\n run until {late}ns\n"
        simulated_trace = booted(tmp_path, study_test("cpu-heavy", waits), "lottery", 1, 0)
        early_draws, made = draws(simulated_trace)
        yields += before - early_draws
        times = [
            int(run_trace.column("time_ns")[first_fork(run_trace)])
            for run_trace in (kernel_trace, simulated_trace)
        ]
        late += (times[0] - times[1] + TICK_NS // 2) % TICK_NS - TICK_NS // 2
    assert early_draws == before
    children = len(made) - 1  # the last is init's: the kernel's root also prints
    assert children > 100
    assert made[:children] == kernel_draws[:children]

# SPDX-License-Identifier: MIT
"""Tests the allowed CPUs of processes under each policy, in the simulator and on the kernel.

`sound_trace` checks each SWITCH against the process's set. The remaining tests: a process that may
not stay leaves, and no CPU idles while a process that may run there waits.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from golden_stories import policies_and_presets
from guest_machine import TICK_NS
from played import play, simulated
from schedlab import trace
from schedlab.trace import Kind
from schedlab_simulator import SetupRefused, Simulator, WorkloadRefused

CPUS = 4
Machine = Callable[[Path, str, str, int], trace.Trace]
MACHINES = [simulated, pytest.param(play, marks=pytest.mark.spike)]

LEAVING = """
program root
  mark begin
  fork mover
  fork pinned
  sleep 10ms
  cpus 0 pinned
  loop 2
    wait
  end
  mark end
program mover
  group mover
  cpus 1
  run 5ms
  cpus 2-3
  run 5ms
  fork child
  wait
  cpus 0
  run 5ms
program child
  group child
  run 5ms
program pinned
  group pinned
  cpus 3
  run 20ms
"""


def runs_of(events: trace.Trace, group: str) -> list[int]:
    """Returns the CPU of each run of the group's process, in order."""
    label = int.from_bytes(group.encode(), "little")
    (pid,) = events.events.filter(kind=Kind.MARK, first=3, second=label)["process"]
    cpus = events.events.filter(kind=Kind.SWITCH, process=pid)["cpu"].to_list()
    return [cpu for index, cpu in enumerate(cpus) if index == 0 or cpu != cpus[index - 1]]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("policy", ["rr:table-scan", "priority", "edf:global"])
def test_a_process_leaves_a_cpu_on_which_it_may_not_run(
    tmp_path: Path, policy: str, machine: Machine
) -> None:
    """It leaves at once, by its own act and by another's; its child begins on an allowed CPU."""
    events = machine(tmp_path, LEAVING, policy, CPUS)
    mover, child, pinned = (runs_of(events, group) for group in ("mover", "child", "pinned"))
    last = len(mover) - 1 - mover[::-1].index(1)
    assert set(mover[last + 1 : -1]) <= {2, 3}
    assert mover[-1] == 0
    assert set(child) <= {2, 3}
    assert pinned[-2:] == [3, 0]


def programs(seed: int) -> str:
    """Returns a workload whose processes compute, sleep, fork and change each other's sets."""
    source = random.Random(seed)

    def some_cpus() -> str:
        return ",".join(str(cpu) for cpu in source.sample(range(CPUS), source.randint(1, CPUS)))

    names = [f"p{number}" for number in range(10)]
    lines = ["program root", "cpus 0-1", "mark begin"]
    for name in names:
        lines += [f"fork {name}", f"cpus {some_cpus()} {name}"]
    lines += [f"loop {len(names)}", "wait", "end", "mark end"]
    for number, name in enumerate(names):
        lines += [f"program {name}", f"priority {number % 3 + 4}", f"loop {source.randint(2, 5)}"]
        lines += [f"run {source.randint(1, 9)}ms"]
        acts = [f"cpus {some_cpus()}", f"cpus {some_cpus()} {source.choice(names)}"]
        lines += source.sample([*acts, "yield", f"sleep {source.randint(1, 4)}ms", "fork leaf"], 3)
        lines += ["run 2ms", "end", "loop 9", "wait", "end"]
    return "\n".join([*lines, "program leaf", "run 3ms"]) + "\n"


def idle_while_work_waits(events: trace.Trace) -> Iterator[str]:
    """Returns each CPU that idles for two ticks while a process that may run there waits. A third
    tick is allowed for the kernel's own time.
    """
    everywhere = 2**CPUS - 1
    allowed: dict[int, int] = {}
    waiting: set[int] = set()
    running = dict.fromkeys(range(CPUS), 0)
    since: dict[tuple[int, int], int] = {}
    for time, cpu, kind, pid, first, second in events.events.select(
        "time_ns", "cpu", "kind", "process", "first", "second"
    ).iter_rows():
        if kind == Kind.FORK:
            allowed[first] = allowed.get(pid, everywhere)
            waiting.add(first)
        elif kind == Kind.AFFINITY:
            allowed[pid] = second
        elif kind == Kind.WAKEUP:
            waiting.add(pid)
        elif kind == Kind.SWITCH:
            waiting.discard(pid)
            if first and second == trace.ProcessState.RUNNABLE:
                waiting.add(first)
            running[cpu] = pid
        now = {
            (idle, process): since.get((idle, process), time)
            for idle, current in running.items()
            if not current
            for process in waiting
            if allowed.get(process, everywhere) >> idle & 1
        }
        for (idle, process), begin in now.items():
            if time - begin > 3 * TICK_NS:
                yield f"CPU {idle} idles at {time} ns, and pid {process} waits since {begin}"
        since = now


@pytest.mark.parametrize("policy", policies_and_presets())
def test_no_cpu_idles_while_an_allowed_process_waits(tmp_path: Path, policy: str) -> None:
    seed = policies_and_presets().index(policy) % 3
    events = simulated(tmp_path, programs(seed), policy, CPUS)
    assert events.events.filter(kind=Kind.AFFINITY).height > 10
    if policy not in STAYING:
        assert not list(idle_while_work_waits(events))


STAYING = ("lottery:thesis", "priority:thesis", "priority:passes")
"""Presets that never migrate processes."""


@pytest.mark.spike
@pytest.mark.parametrize("policy", ["rr:table-scan", "mlfq"])
def test_the_kernel_does_so_too(tmp_path: Path, policy: str) -> None:
    events = play(tmp_path, programs(1), policy, CPUS)
    assert not list(idle_while_work_waits(events))


@pytest.mark.parametrize("policy", policies_and_presets())
def test_a_cpu_that_no_process_may_use_changes_nothing(tmp_path: Path, policy: str) -> None:
    """Four processes compute on CPU 0 alone, and CPU 1 asks for a task at each tick. They end as
    early as without CPU 1.

    The tolerance of 10 ms covers two effects: slices of cfs and eevdf are longer on two CPUs, and a
    lottery draws before the processes are bound. A process skipped once per round would end 1,250
    ms later.
    """
    text = "program root\ncpus 0\nmark begin\nloop 4\nfork a\nend\nloop 4\nwait\nend\nmark end\n"
    text += "program a\nrun 1250ms\n"
    alone, with_unused_cpu = (
        simulated(tmp_path, text, policy, cpus)
        .events.filter(kind=Kind.EXIT)["time_ns"]
        .sort()
        .to_list()
        for cpus in (1, 2)
    )
    assert len(alone) == len(with_unused_cpu) == 5
    assert all(abs(one - two) < 10_000_000 for one, two in zip(alone, with_unused_cpu, strict=True))


@pytest.mark.parametrize("cpus", ["", "3-1", "1024", "0,", "-1", "0--1", "1 2 3"])
def test_what_is_no_list_of_cpus(cpus: str) -> None:
    text = f"program root\ncpus {cpus}\nrun 1ms\n"
    with pytest.raises((WorkloadRefused, SetupRefused), match=r"workload:2: |unknown list of CPUs"):
        Simulator(text)

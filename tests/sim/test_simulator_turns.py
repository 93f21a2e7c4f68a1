# SPDX-License-Identifier: MIT
"""Traps that end turns, as on Spike: when CPUs hear of each other, and what the kernel keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedlab import trace
from schedlab.trace import Kind
from simulator_command import simulate

TURN = 5000
COSTS = "none,turn=5000,interrupt=100,call=200,fork=1000"


def events(folder: Path, text: str, cpus: int, costs: str = COSTS) -> list[tuple[int, ...]]:
    """Time, CPU, kind and process of each record."""
    path = folder / "trace.bin"
    done = simulate(folder, text, "--cpus", str(cpus), "--costs", costs, "--trace", str(path))
    assert done.returncode == 0, done.stderr
    read = trace.read(path)
    trace.validate(read)
    return list(read.events.select("time_ns", "cpu", "kind", "process").iter_rows())


def first(found: list[tuple[int, ...]], kind: Kind, cpu: int, after: int = 0) -> int:
    """The time of the CPU's first record of the kind."""
    return next(t for t, c, k, _ in found if t >= after and c == cpu and k == kind)


CALLS = """
program a
  run 100us
  fork b
  run 1ms
  wait
program b
  run 100us
"""
"""init is on CPU 0, a on CPU 1, b on CPU 0."""


def test_a_higher_cpu_hears_in_the_same_round(tmp_path: Path) -> None:
    found = events(tmp_path, CALLS, 2)
    forked = first(found, Kind.FORK, 0, after=1)
    heard = first(found, Kind.SCHEDULER_ENTER, 1, after=forked)
    assert heard == forked // TURN * TURN + TURN + 100


def test_a_lower_cpu_hears_a_round_later(tmp_path: Path) -> None:
    found = events(tmp_path, CALLS, 2)
    forked = first(found, Kind.FORK, 1)
    heard = first(found, Kind.SCHEDULER_ENTER, 0, after=forked)
    assert heard == forked // TURN * TURN + 2 * TURN + 100


TOLD = """
program a
  run 100us
  fork b
  {a}
  run 3ms
  wait
program b
  {b}
  run 1ms
"""
"""a is on CPU 1, b on CPU 0. At about 410 us one of them tells the other something."""
OTHER = {"a": "b", "b": "a"}
OTHER_ACTS = ["run 200us", "run 200us\n  sleep 10us"]
"""What the other process does meanwhile: it computes, or it is in a call, which takes long."""


def heard(folder: Path, teller: str, act: str, other_act: str) -> int:
    """When the CPU of the other process enters the scheduler after it was told."""
    other = OTHER[teller]
    text = TOLD.format(**{teller: f"run 300us\n  {act}", other: other_act})
    found = events(folder, text, 2, f"{COSTS},sleep=400000")
    kinds = (Kind.ATTRIBUTE, Kind.POLICY, Kind.TUNABLE)
    told = next(t for t, _, k, _ in found if t > 0 and k in kinds)
    return first(found, Kind.SCHEDULER_ENTER, "ba".index(other), after=told + 1)


@pytest.mark.parametrize("other_act", OTHER_ACTS)
@pytest.mark.parametrize("teller", ["a", "b"])
def test_a_switch_of_policy_is_heard_when_a_change_of_attribute_is(
    tmp_path: Path, teller: str, other_act: str
) -> None:
    attribute = heard(tmp_path, teller, f"priority 5 {OTHER[teller]}", other_act)
    assert heard(tmp_path, teller, "policy rr", other_act) == attribute
    assert heard(tmp_path, teller, "set slice=2", other_act) == attribute


KEPT = """
program a
  run until 980us
  fork b
  run 1ms
  wait
program b
  run 10us
"""


@pytest.mark.parametrize(
    "costs", ["none,fork=50000,tick=600", "none,turn=5000,fork=50000,tick=600"]
)
def test_the_tick_waits_for_the_call(tmp_path: Path, costs: str) -> None:
    """The fork is under way at 1 ms, when the tick is due; its child runs after that."""
    found = events(tmp_path, KEPT, 1, costs)
    forked = first(found, Kind.FORK, 0, after=900_000)
    preempted = first(found, Kind.PREEMPT, 0)
    assert 1_030_000 <= forked <= preempted <= forked + TURN

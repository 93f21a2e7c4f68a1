# SPDX-License-Identifier: MIT
"""Tests priority inheritance, in the simulator and on the kernel.

A low-priority process holds a lock that an urgent one wants. Under a policy that asks for owners, a
process of middle priority does not delay the holder.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from played import play, simulated
from schedlab import metrics, trace
from schedlab.trace import Kind, MarkKind

INVERSION = """
channel disk 1
program root
  group root
  mark begin
  fork lowly
  sleep 20ms
  fork urgent
  fork middle
  loop 3
    wait
  end
  mark end
program lowly
  priority 10
  run 5ms
  lock disk ceiling 0
  run 60ms
  give disk
program middle
  group middle
  priority 5
  run 500ms
program urgent
  group urgent
  priority 0
  run 2ms
  lock disk ceiling 0
  run 4ms
  give disk
"""
LOCKED_MS = 5 + 60 + 4 + 2
"""End of the urgent process if it waits only for the lock, in ms after the root's first fork."""
ASKING = ("priority:inheritance", "priority:ceiling")
Machine = Callable[[Path, str, str], trace.Trace]
MACHINES = [simulated, pytest.param(play, marks=pytest.mark.spike)]


def ended_ms(events: trace.Trace, group: str) -> float:
    """Returns when the group's one process ended, in ms after the first fork in the window."""
    label = int.from_bytes(group.encode(), "little")
    marks = events.events.filter(kind=Kind.MARK)
    (pid,) = marks.filter(first=3, second=label)["process"]
    (begin,) = marks.filter(first=1)["time_ns"]
    exit_ = events.events.filter(pl.col("kind") == Kind.EXIT, pl.col("process") == pid)
    return (int(exit_["time_ns"].item()) - int(begin)) / 1e6


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("policy", ASKING)
def test_the_urgent_one_waits_for_the_lock_alone(
    tmp_path: Path, policy: str, machine: Machine
) -> None:
    events = machine(tmp_path, INVERSION, policy)
    assert ended_ms(events, "urgent") == pytest.approx(LOCKED_MS, abs=0.5)
    assert ended_ms(events, "middle") > 500


TICKETS = """
channel query 0
channel reply 0
program root
  group root
  tickets 1000000
  mark begin
  fork serve
  fork ask
  fork other
  tickets 100 other
  sleep until 620ms
  mark end
  exit 0
program serve
  group serve
  tickets 300
  give reply
  take query
  tickets 1
  loop
    run 10ms
    give reply
    take query
  end
program ask
  group ask
  tickets 300
  loop
    take reply
    give query
  end
program other
  group other
  run 10s
"""


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("policy", "due"), [("lottery:transfers", 0.75), ("lottery", 0.01)])
def test_a_server_works_with_the_tickets_of_its_client(
    tmp_path: Path, machine: Machine, policy: str, due: float
) -> None:
    """The tolerance is four standard errors of 600 draws."""
    groups = metrics.compute(machine(tmp_path, TICKETS, policy)).groups
    ran = dict(groups.select("group", "running_ns").iter_rows())
    part = ran["serve"] / (ran["serve"] + ran["other"])
    assert part == pytest.approx(due, abs=4 * (due * (1 - due) / 600) ** 0.5)


LINE = """
channel disk 1
program root
  set overtake={overtake}
  fork holder
  fork first
  fork second
  fork third
  fork fourth
  wait all
program holder
  lock disk
  sleep 20ms
  give disk
{takers}
"""
TAKER = """program {name}
  priority {priority}
  sleep {place}ms
  lock disk
  mark note {priority}
  run 100us
  give disk
"""
CAME = {"first": 7, "second": 5, "third": 2, "fourth": 9}
"""Priorities, in the order of the processes' waits."""


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("overtake", "had_it"), [(1, [2, 5, 7, 9]), (0, [7, 5, 2, 9])])
def test_a_lock_goes_to_the_most_urgent_that_waits(
    tmp_path: Path, machine: Machine, overtake: int, had_it: list[int]
) -> None:
    takers = "".join(
        TAKER.format(name=name, priority=priority, place=1 + index)
        for index, (name, priority) in enumerate(CAME.items())
    )
    events = machine(tmp_path, LINE.format(overtake=overtake, takers=takers), "priority")
    assert notes(events) == had_it


def notes(events: trace.Trace) -> list[int]:
    """Returns the marked numbers in order."""
    marks = events.events.filter(pl.col("kind") == Kind.MARK, pl.col("first") == MarkKind.NOTE)
    return [int(number) for number in marks["second"]]

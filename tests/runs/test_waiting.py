# SPDX-License-Identifier: MIT
"""Tests tasks that wait for free CPUs of the host."""

from __future__ import annotations

from dataclasses import replace

from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.machines import machine_named
from schedlab.machines.spec import RunSpec
from schedlab.runs.executor import WaitingRuns
from schedlab.runs.worker import Task

RUN = RunSpec("mixed", PolicyChoice("rr"), (), 1, machine_named("spike"), 1, 10**6, 10**9, 64)


def waiting_of(**cpus: int) -> WaitingRuns:
    tasks = [Task(name, replace(RUN, cpus=count)) for name, count in cpus.items()]
    return WaitingRuns(tasks, lambda task: task.run.cpus)


def started_titles(waiting: WaitingRuns, free: int) -> list[str]:
    keys = []
    while cpus := waiting.next_cpus(free):
        keys.append(waiting.take(cpus).key)
        free -= cpus
    return keys


def test_the_first_come_first_as_far_as_cpus_go() -> None:
    waiting = waiting_of(a=1, b=1, c=1, d=1, e=1)
    assert started_titles(waiting, 2) == ["a", "b"]
    assert started_titles(waiting, 0) == []
    assert started_titles(waiting, 1) == ["c"]
    assert started_titles(waiting, 2) == ["d", "e"]
    assert not waiting


def test_one_that_needs_less_overtakes() -> None:
    waiting = waiting_of(a=3, b=4, c=1, d=2)
    assert started_titles(waiting, 4) == ["a", "c"]
    assert started_titles(waiting, 1) == []
    assert started_titles(waiting, 4) == ["b"]
    assert started_titles(waiting, 4) == ["d"]


def test_requeued_tasks_are_first() -> None:
    waiting = waiting_of(a=1, b=2, c=1)
    first = waiting.take(1)
    waiting.put_back([first], 1)
    assert len(waiting) == 3
    assert started_titles(waiting, 4) == ["a", "b", "c"]

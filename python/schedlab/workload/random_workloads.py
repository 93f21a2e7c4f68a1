# SPDX-License-Identifier: MIT
"""Generates random workload files for tests: processes compute, sleep, run periodically, share a lock."""

from __future__ import annotations

import random
from typing import Any


def random_workload(seed: int) -> dict[str, Any]:
    """Returns a workload of two to four tasks, with one to three processes each.

    Each process computes for at most about 60 ms. No task arrives at a tick, because there the
    microseconds of a fork would decide which process runs next.
    """
    generator = random.Random(f"workload {seed}")
    return {"tasks": {f"task-{i}": _random_task(generator) for i in range(generator.randint(2, 4))}}


def exact_workload(seed: int, tasks: int) -> dict[str, Any]:
    """Returns a workload for a simulator without costs, where decisions at a tick are repeatable.

    Its tasks also arrive at ticks, work for whole ticks, yield, hold two locks and change
    attributes.
    """
    generator = random.Random(f"exact workload {seed}")
    return {"tasks": {f"task-{i}": _random_exact_task(generator) for i in range(tasks)}}


def _random_exact_task(generator: random.Random) -> dict[str, Any]:
    """Returns a task for `exact_workload`: a random task that may also act exactly at ticks."""
    task = _random_task(generator)
    for key in [key for key in task if key.startswith("run")]:
        if generator.random() < 0.5:
            task[key] = f"{generator.randint(1, 6)}ticks"
    if generator.random() < 0.5:
        task["delay"] = generator.randint(0, 30) * 1000
    if generator.random() < 0.3:
        task |= {"yield": "", "run30": 300}
    if generator.random() < 0.3:
        task |= {"lock40": "k", "lock41": "l", "run40": "1tick", "unlock40": "l", "unlock41": "k"}
    if generator.random() < 0.2:
        attributes = ("priority", "tickets", "weight")
        changed = {"loop": 1, "run": "3ticks"} | {
            key: generator.randint(1, 9) for key in attributes
        }
        steps = {key: task.pop(key) for key in [*task] if key.rstrip("0123456789") in _STEPS}
        task["phases"] = {"first": steps, "changed": changed}
    return task


_STEPS = frozenset(("run", "sleep", "lock", "unlock", "timer", "yield"))


def _random_task(generator: random.Random) -> dict[str, Any]:
    """Returns a task with random steps, which never act exactly at ticks."""
    loops = generator.randint(1, 8)
    task: dict[str, Any] = {
        "instance": generator.randint(1, 3),
        "loop": loops,
        "delay": generator.randint(0, 30) * 1000 + 500,
        "priority": generator.randint(0, 10),
        "tickets": generator.randint(1, 40),
        "weight": generator.randint(1, 10),
    }
    for step in range(generator.randint(1, 3)):
        task[f"run{step}"] = generator.randint(300, 20_000 // loops)
        if generator.random() < 0.3:
            task |= {f"lock{step}": "l", f"run{step + 10}": 400, f"unlock{step}": "l"}
        if generator.random() < 0.6:
            task[f"sleep{step}"] = _random_sleep(generator)
    if generator.random() < 0.2:
        task["timer"] = {"ref": "unique", "period": generator.randint(5000, 20_000)}
    return task


def _random_sleep(generator: random.Random) -> str | int:
    ticks = generator.random() < 0.5
    return f"{generator.randint(1, 8)}ticks" if ticks else generator.randint(500, 9000)

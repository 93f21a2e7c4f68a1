# SPDX-License-Identifier: MIT
"""Workload files drawn at random: processes that compute, sleep, keep periods and share a lock."""

from __future__ import annotations

import random
from typing import Any


def random_workload(seed: int) -> dict[str, Any]:
    """Two to four tasks of one to three processes. Each process computes for 60 ms or so at most.

    No task comes at a tick: there, the microseconds that a fork takes decide which runs next.
    """
    generator = random.Random(f"workload {seed}")
    return {"tasks": {f"task-{i}": _task(generator) for i in range(generator.randint(2, 4))}}


def _task(generator: random.Random) -> dict[str, Any]:
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
            task[f"sleep{step}"] = _sleep(generator)
    if generator.random() < 0.2:
        task["timer"] = {"ref": "unique", "period": generator.randint(5000, 20_000)}
    return task


def _sleep(generator: random.Random) -> str | int:
    ticks = generator.random() < 0.5
    return f"{generator.randint(1, 8)}ticks" if ticks else generator.randint(500, 9000)

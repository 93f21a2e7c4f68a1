# SPDX-License-Identifier: MIT
"""Tests that a mistake is shown by a workload that breaks the same rule, where such a workload
exists."""

from __future__ import annotations

import json

import pytest

from built_once import build_once
from schedlab.machines import exploration
from schedlab.machines.exploration import Limits
from schedlab.machines.operations_workload import Operation, make_workload, parse_operations
from schedlab.machines.outcome import BROKEN_RULE
from test_planted import SOURCE, WORDS, mistakes

LIMITS = Limits(tasks=3, depth=8, memory_mib=64)


def breaking(mistake: str) -> str | None:
    build_once("explorer", EXPLORED="tests/explore/planted.c")
    settings = f"mistake={mistakes()[mistake]}"
    return exploration.find_breaking_workload(SOURCE, WORDS, "planted", settings, LIMITS)


def test_a_task_that_is_lost_at_a_move_is_lost_in_a_run() -> None:
    """A third task waits until the second CPU is idle and takes it."""
    workload = breaking("move")
    assert workload
    tasks = json.loads(workload)["tasks"]
    assert [task["delay"] for task in tasks.values()] == [1, 2, 3]
    assert tasks["task2"]["phases"] == {"phase1": {"run": {"until": "4us"}}}


def test_no_workload_without_a_run_that_shows_the_mistake() -> None:
    """The simulator knows no levels, and a correct policy breaks no rule."""
    assert breaking("inversion") is None
    assert breaking("none") is None


def test_no_workload_of_a_rule_that_breaks_before_the_first_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        exploration, "_run_search", lambda *_: (BROKEN_RULE, ["act tick 0 0 0"], [])
    )
    assert exploration.find_breaking_workload(SOURCE, WORDS, "planted", "", LIMITS) is None


def test_acts_become_phases_at_their_times() -> None:
    lines = ["act new 0 0 0", "act tick 0 0 0", "act set 0 2 1000000", "act yield 0 0 0"]
    lines += [
        "act block 0 0 0",
        "act tick 0 0 0",
        "act wake 0 0 0",
        "  1. task 1 is forked",
        "act end 0 0 0",
    ]
    acts = [
        *parse_operations(lines),
        Operation("new", 0),
        Operation("set", 0, 6, 10_000_000),
        Operation("block", 0),
    ]
    first, second = json.loads(make_workload(acts, "a test"))["tasks"].values()
    assert [list(phase.items()) for phase in first["phases"].values()] == [
        [("run", {"until": "10001us"})],
        [("tickets", 1_000_000), ("run", {"until": "10002us"}), ("yield", "")],
        [("run", {"until": "10003us"})],
        [("sleep", {"until": "20001us"})],
        [("run", {"until": "20002us"})],
    ]
    assert (first["delay"], second["delay"]) == (1, 20_003)
    run, blocked, rest = second["phases"].values()
    assert run == {"run": {"until": "20004us"}}
    assert blocked == {"dl-runtime": "10000000ns", "run": {"until": "20005us"}}
    assert list(rest) == ["sleep"]

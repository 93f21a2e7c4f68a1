# SPDX-License-Identifier: MIT
"""Tests that the search finds planted mistakes with a shortest sequence of operations."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from built_once import build_once
from schedlab.errors import RuleBroken, WrongUsage
from schedlab.machines import exploration
from schedlab.machines.exploration import Limits
from schedlab.paths import ROOT

SOURCE = ROOT / "tests" / "explore" / "planted.c"
WORDS = ("tickets",)
"""Words that the policy reads; time does not pass here, though one mistake reads the clock."""

PLANTED_FLAWS = {
    "twice": (
        4,
        "pick() returned pid 3, which is not queued",
        "task 3 is killed while it is queued",
    ),
    "move": (2, "pick() returned null while 1 task is queued", "task 1 is moved to CPU 1"),
    "count": (
        4,
        "pick() returned null while 1 task is queued",
        "task 3 is killed while it is queued",
    ),
    "overflow": (
        2,
        "enqueue(): signed integer overflow: 1000000 * 3000",
        "task 1 gets tickets 1000000",
    ),
    "order": (5, "pick() returned pid 3, although pid 1 came first", ""),
    "inversion": (7, "pick() returned pid 1 of level 1 while pid 2 of level 0 waits", "a tick"),
    "beyond": (6, "tick(): index 2 out of bounds", "a tick"),
    "state": (6, "tick() reads or writes beyond its state", "a tick"),
    "ended": (4, "pick() reads or writes beyond its state", "task 1 is killed while it is queued"),
    "adopted": (2, "pick() returned null while 1 task is queued", "the policy starts again"),
    "host": (6, "tick() wrote to queue->running, which is the host's", "a tick"),
    "held": (4, "1 tasks of queue 0 are held, of 0 that are queued", "task 1 is killed"),
    "vain": (4, "pick() or steal() for a CPU that no queued task may use", "task"),
    "group": (3, "enqueue(): signed integer overflow: 10000 * 300000", "task 1 gets group 1"),
    "depth": (3, "enqueue(): index 2 out of bounds", ""),
    "period": (3, "enqueue(): division by zero", ""),
    "starved": (7, "pid 1 does not run within", ""),
    "waiter": (7, "overtakes(): index 2 out of bounds", "tasks 1 and 2 wait for the same"),
}
"""Mistake → number of operations in the shortest sequence, the rule, and the last operation."""
OF_CPU_SETS = ("vain", "starved")
OF_GROUPS = ("group", "depth", "period")
"""Mistakes that only group settings reveal."""


def mistakes() -> dict[str, int]:
    names = re.findall(r"^    MISTAKE_([A-Z_]+),", SOURCE.read_text(), re.MULTILINE)
    return {name.lower(): number for number, name in enumerate(names)}


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_once("explorer", EXPLORED=str(SOURCE.relative_to(ROOT)))


def explore(
    mistake: str, depth: int, workers: int = 1, groups: bool | None = None
) -> exploration.ExplorationResult:
    limits = Limits(
        tasks=3,
        depth=depth,
        memory_mib=64,
        workers=workers,
        cpu_sets=mistake in OF_CPU_SETS,
        groups=mistake in OF_GROUPS if groups is None else groups,
    )
    words = (*WORDS, "group") if mistake in OF_GROUPS else WORDS
    return exploration.run_exploration(
        SOURCE, words, "planted", f"mistake={mistakes()[mistake]}", limits
    )


@pytest.mark.parametrize("mistake", PLANTED_FLAWS)
def test_shortest_sequence_is_reported(mistake: str) -> None:
    count, rule, last = PLANTED_FLAWS[mistake]
    with pytest.raises(RuleBroken) as error:
        explore(mistake, count)
    headline, shortest, *lines = str(error.value).splitlines()
    steps = [line for line in lines if re.match(r" +\d+\. ", line)]
    assert headline.startswith(f"policy planted broke a rule: {rule}")
    assert shortest == f"    no shorter sequence of operations breaks a rule than {count}:"
    assert len(steps) == count
    assert steps[-1].split(". ", 1)[1].startswith(last)


def test_no_shorter_sequence_breaks_a_rule_and_none_does_without_the_mistake() -> None:
    assert explore("inversion", PLANTED_FLAWS["inversion"][0] - 1).end == "depth"
    sound = explore("none", 6)
    assert (sound.end, sound.depth) == ("depth", 6)
    assert sound.states == explore("none", 6, workers=2).states


@pytest.mark.parametrize("workers", [1, 2])
def test_a_level_that_the_memory_does_not_hold_does_not_count(workers: int) -> None:
    limits = Limits(tasks=3, memory_mib=1, workers=workers)
    explored = exploration.run_exploration(SOURCE, WORDS, "planted", "", limits)
    assert explored.end == "memory"
    assert explored.states == explore("none", explored.depth).states < (1 << 20) // 28


@pytest.mark.parametrize(("mistake", "holds"), [("none", True), ("clock", False)])
def test_a_law_that_times_may_be_moved_is_tried(mistake: str, holds: bool) -> None:
    settings = f"mistake={mistakes()[mistake]}"
    limits = Limits(tasks=3, memory_mib=64)
    words = (*WORDS, "now")
    assert exploration.is_time_invariant(SOURCE, words, "planted", settings, limits) is holds


def test_what_a_policy_reads_is_what_the_compiler_misses(tmp_path: Path) -> None:
    """Comments and a policy's private fields do not count; reads by functions of policy.h do."""
    assert exploration.find_host_fields_read(SOURCE) == ("now", *WORDS, "group")
    assert exploration.find_host_fields_read(ROOT / "policies" / "rr.c") == ("slot",)
    changed = tmp_path / "planted.c"
    text = SOURCE.read_text().replace(
        "state->ticks++;", "state->ticks += run_time_now(queue, task) > 9;"
    )
    changed.write_text(text.replace("#include", "/* task->nice, queue->now */\n#include", 1))
    assert exploration.find_host_fields_read(changed) == (
        "now",
        "run_time",
        "counted",
        *WORDS,
        "group",
    )


@pytest.mark.parametrize("name", ["a b/mine.c", "no.c", "empty.c"])
def test_a_file_that_is_no_policy_is_refused(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    if name != "no.c":
        file.write_text("" if name == "empty.c" else SOURCE.read_text())
    with pytest.raises(WrongUsage):
        exploration.read_policy_name(file)

# SPDX-License-Identifier: MIT
"""Tests quotas of groups under `hsfq` against an infinitely divisible CPU: a throttled group saves
no credit.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from fluid_quotas import FluidGroup, fluid_service
from schedlab import trace
from schedlab.metrics import state_intervals
from simulator_command import simulate

MS = 1_000_000
BEGIN = 1_000 * MS
"""Start of all groups' tasks, in ns: a multiple of each period."""
PERIODS = (20 * MS, 40 * MS, 50 * MS, 100 * MS)
FIRST_PID = 3
"""Init and the first process have lower PIDs than the tasks."""

Turns = list[tuple[int, int]]
"""A task's runs: begins and ends, in nanoseconds after BEGIN."""


def run_groups(
    folder: Path,
    groups: Sequence[FluidGroup],
    end: int,
    *,
    setup: Sequence[str] = (),
    later: Sequence[str] = (),
) -> list[Turns]:
    """Returns when the one task of each group ran. Groups are numbered from 2. `setup`, `later`:
    steps of the first process before and after BEGIN.
    """
    lines = ["program root", "  nice -20", "  taskgroup 31", "  setgroup 31 weight 10000"]
    programs: list[str] = []
    for number, group in enumerate(groups, 2):
        lines += [f"  setgroup {number} weight {group.weight}"]
        lines += [f"  setgroup {number} period {group.period}ns"]
        lines += [f"  setgroup {number} quota {group.quota}ns"]
        lines += [f"  fork task{number}"]
        programs += [f"program task{number}", f"  taskgroup {number}", "  nice 0"]
        programs += [f"  sleep until {BEGIN}ns", "  run 1000s"]
    lines += [*setup, f"  sleep until {BEGIN}ns", *later, f"  sleep until {BEGIN + end}ns"]
    events = folder / "trace.bin"
    options = ("--policy", "hsfq", "--set", "slice_us=200,wakeup_us=100")
    text = "\n".join(lines + programs) + "\n"
    result = simulate(folder, text, *options, "--costs", "none", "--trace", str(events))
    assert result.returncode == 0, result.stderr
    turns: list[Turns] = [[] for _ in groups]
    rows = state_intervals(trace.read(events)).select("pid", "state", "begin_ns", "end_ns")
    for pid, state, begin, stop in rows.iter_rows():
        if state == "running" and 0 <= pid - FIRST_PID < len(groups) and stop > BEGIN:
            turns[pid - FIRST_PID].append((max(begin - BEGIN, 0), min(stop - BEGIN, end)))
    return turns


def service(turns: Turns, begin: int = 0) -> int:
    """Returns the CPU time after a given time."""
    return sum(end - max(start, begin) for start, end in turns if end > begin)


def longest_wait(turns: Turns, begin: int) -> int:
    """Returns the longest time without the CPU after a given time."""
    late = [(max(start, begin), end) for start, end in turns if end > begin]
    return max(
        start - end for (start, _), end in zip(late, [begin, *(e for _, e in late)], strict=False)
    )


def random_groups(seed: int) -> list[FluidGroup]:
    source = random.Random(seed)
    groups = []
    for _ in range(source.randint(2, 5)):
        period = source.choice(PERIODS)
        quota = round(source.uniform(0.05, 0.6) * period) if source.random() < 0.8 else 0
        groups.append(FluidGroup(source.randint(20, 400), quota, period))
    return groups


@pytest.mark.parametrize("seed", range(12))
def test_groups_get_what_a_divisible_cpu_gives(tmp_path: Path, seed: int) -> None:
    groups = random_groups(seed)
    end = 2_000 * MS
    got = [service(turns) / end for turns in run_groups(tmp_path, groups, end)]
    due = [service / end for service in fluid_service(groups, end)]
    assert got == pytest.approx(due, abs=0.01), groups


def test_quotas_that_fit_are_had_in_full(tmp_path: Path) -> None:
    """23 of 50 ms and 6 of 20 ms leave a quarter of the CPU idle."""
    groups = [FluidGroup(100, 23 * MS, 50 * MS), FluidGroup(50, 6 * MS, 20 * MS)]
    got = [service(turns) for turns in run_groups(tmp_path, groups, 1_000 * MS)]
    assert got == pytest.approx([460 * MS, 300 * MS], rel=0.01)


def test_a_group_whose_quota_is_lifted_has_no_credit(tmp_path: Path) -> None:
    groups = [FluidGroup(100, 10 * MS), FluidGroup(100)]
    lifted = 3_000 * MS
    later = (f"  sleep until {BEGIN + lifted}ns", "  setgroup 2 quota 0ns")
    _, other = run_groups(tmp_path, groups, lifted + 500 * MS, later=later)
    assert longest_wait(other, lifted) <= 1 * MS
    assert service(other, lifted) == pytest.approx(250 * MS, abs=1 * MS)


def test_a_period_that_begins_holds_up_no_other_group(tmp_path: Path) -> None:
    """40 of 100 ms: both share at once, in turns, until the quota is used up."""
    groups = [FluidGroup(100, 40 * MS), FluidGroup(100)]
    limited, other = run_groups(tmp_path, groups, 1_000 * MS)
    assert longest_wait(other, 100 * MS) <= 1 * MS
    assert service(limited) == pytest.approx(400 * MS, rel=0.01)


def test_throttled_group_has_no_credit(tmp_path: Path) -> None:
    """Group 1 has no limit, but contains only group 2."""
    groups = [FluidGroup(100, 10 * MS), FluidGroup(100)]
    lifted = 1_000 * MS
    later = (f"  sleep until {BEGIN + lifted}ns", "  setgroup 2 quota 0ns")
    setup = ("  setgroup 1 weight 100", "  setgroup 2 parent 1")
    _, other = run_groups(tmp_path, groups, lifted + 500 * MS, setup=setup, later=later)
    assert longest_wait(other, lifted) <= 1 * MS
    assert service(other, lifted) == pytest.approx(250 * MS, abs=1 * MS)

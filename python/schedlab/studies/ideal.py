# SPDX-License-Identifier: MIT
"""What no scheduler can beat in the studies' tests, with the derivation of each value.

Nothing here costs time but the processes' own work and sleeps: no fork, no switch, no disk.
Times are in ticks, work in ticks of one CPU.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean

from schedlab.metrics import ideal_shares
from schedlab.studies.figures import select

CPUS = (1, 2, 3, 4, 5)


def completion(work: Sequence[float], cpus: int) -> float:
    """Ticks until processes that only compute, and begin together, have all ended.

    The greater of the longest one's work, since no process runs on two CPUs at once, and the sum
    of all ÷ CPUs. A preemptive schedule meets it: the wrap-around rule of McNaughton (1959).
    """
    _check(work, cpus)
    return max([*work, sum(work) / cpus], default=0.0)


def least_mean_turnaround(work: Sequence[float], cpus: int) -> float:
    """Mean ticks from the common start to the end, by the best schedule for it.

    Shortest first: each goes to the CPU that is free first (Conway, Maxwell, Miller, 1967);
    preemption does not help (McNaughton, 1959).
    """
    _check(work, cpus)
    if not work:
        raise ValueError("there must be a process")
    free_at = [0.0] * cpus
    ends = []
    for each in sorted(work):
        ends.append(heapq.heappushpop(free_at, free_at[0] + each) + each)
    return fmean(ends)


def shared_mean_turnaround(work: Sequence[float], cpus: int) -> float:
    """The same if all that are left share the CPUs equally at every moment, none more than one.

    What round-robin with slices of length 0 comes to (processor sharing: Kleinrock, 1967).
    """
    _check(work, cpus)
    if not work:
        raise ValueError("there must be a process")
    now = done = 0.0
    ends = []
    left = len(work)
    for each in sorted(work):
        now += (each - done) / min(1.0, cpus / left)
        done = each
        ends.append(now)
        left -= 1
    return fmean(ends)


def _check(work: Sequence[float], cpus: int) -> None:
    if cpus < 1:
        raise ValueError("there must be a CPU")
    if any(each < 0 for each in work):
        raise ValueError("work must not be below 0")


# Study 1, sections 4.1 and 4.2.

ITERATIONS_PER_TICK = 10 * 20e6 / 86
"""Of the loop of study 1 on its machine: its ten processes of 20 million iterations took 86
ticks of one CPU under round-robin (table 1). So that cell is its own ideal, by definition."""


@dataclass(frozen=True)
class TimingTest:
    """A test of tables 1 and 2: batches of processes, each batch after the end of the one before."""

    row: str
    batches: int
    computing: int
    """Processes in a batch that compute."""
    iterations: float = 0
    """Iterations of one of them, each time."""
    rounds: int = 1
    """So many times."""
    pause: float = 0
    """Ticks that it sleeps after each time."""
    light_iterations: float = 0
    """Iterations of one more process, which computes once."""
    sleeping: float = 0
    """Ticks that others in the batch sleep, and do nothing else."""
    tells_sleepers: bool = False
    """The suite tells the least time of those that sleep, not that of the last of all. (By the
    study's text, its programs do; they return the number 50.)"""

    def completion(self, cpus: int) -> float:
        """Ticks until all have ended, at best.

        A batch takes at least as long as its longest process alone, and as its work on all
        CPUs; where there are pauses, one of them follows the last of the work. Without pauses
        that is met (McNaughton); with them it is a bound that need not be met.
        """
        work = self.iterations / ITERATIONS_PER_TICK
        light = self.light_iterations / ITERATIONS_PER_TICK
        alone = self.rounds * (work + self.pause)
        shared = completion([self.rounds * work] * self.computing + [light], cpus) + self.pause
        return self.batches * max(alone, shared, self.sleeping)

    def told(self, cpus: int) -> float:
        """Ticks of what the study tells, at best."""
        return self.sleeping if self.tells_sleepers else self.completion(cpus)


_COMMON = (
    TimingTest("CPU-heavy", 1, 10, 20e6),
    TimingTest("Switch Overhead", 200, 1),
    TimingTest("Mixed Load", 1, 5, 50e6, sleeping=50, tells_sleepers=True),
    TimingTest("Process Creation", 50, 1),
    TimingTest("Low Process Count", 4, 50, 10e3),
    TimingTest("Starvation Check", 1, 5, 20e6, light_iterations=50e3),
)
TIMING_TESTS: dict[int, tuple[TimingTest, ...]] = {
    1: (*_COMMON, TimingTest("I/O-bound", 2, 0, sleeping=10)),
    2: (*_COMMON, TimingTest("I/O-bound", 1, 50, 100e3, rounds=10, pause=1)),
}
"""By table. Switch Overhead and Process Creation do nothing but fork: ideally, no time at all.
The sizes of batches and of the bursts are those of the study's programs (docs/workloads.md).
Study 2 has the same tests, except for its 500 processes in the second; on two CPUs, by its figures."""


def ideal_completion(table: int, row: str, cpus: int) -> float:
    """Ticks until all have ended, in a test of study 1's table 1 or 2; KeyError for no test."""
    return _timing_test(table, row).completion(cpus)


def ideal_told(table: int, row: str, cpus: int) -> float:
    """Ticks, for what the cell tells: another time in Mixed Load, the least of the sleepers'."""
    return _timing_test(table, row).told(cpus)


def _timing_test(table: int, row: str) -> TimingTest:
    for test in TIMING_TESTS[table]:
        if test.row == row:
            return test
    raise KeyError(row)


# Study 1, section 4.3.


@dataclass(frozen=True)
class LotteryGroup:
    """Processes with the same tickets: a row of tables 3 to 8."""

    row: str
    processes: int
    tickets: int
    demand: float = 1.0
    """CPUs that each asks for."""


LOTTERY_GROUPS: dict[int, tuple[LotteryGroup, ...]] = {
    3: (
        LotteryGroup("A (30 tickets)", 1, 30),
        LotteryGroup("B (20 tickets)", 1, 20),
        LotteryGroup("C (10 tickets)", 1, 10),
    ),
    4: (
        LotteryGroup("A+B (30+30)", 2, 30),
        LotteryGroup("C+D (20+20)", 2, 20),
        LotteryGroup("E+F (10+10)", 2, 10),
        LotteryGroup("G+H (5+5)", 2, 5),
    ),
    5: (
        LotteryGroup("A (30 tickets)", 17, 30),
        LotteryGroup("B (20 tickets)", 17, 20),
        LotteryGroup("C (10 tickets)", 16, 10),
    ),
    6: (
        LotteryGroup("A+B (50+50)", 2, 50),
        LotteryGroup("C+D (10+10)", 2, 10),
        LotteryGroup("E+F+G+H (1+1+1+1)", 4, 1),
    ),
    7: (
        LotteryGroup("1 (10×1)", 10, 1),
        LotteryGroup("2 (10×5)", 10, 5),
        LotteryGroup("3 (10×10)", 10, 10),
    ),
    8: (
        LotteryGroup("CPU-heavy (5×20)", 5, 20),
        LotteryGroup("I/O-bound (5×15)", 5, 15, demand=0.01),
        LotteryGroup("Short-lived (5×10)", 5, 10, demand=0.2 / 500),
        LotteryGroup("Mixed (5×5)", 5, 5, demand=0.8),
    ),
}
"""By table. All want a CPU all the time but those of table 8, where the demands are those of
workloads/lotterytest.c: a hundredth of each tick; a fifth of one of 500 ticks; four fifths of
the time. The study's own programs ask for less still (docs/workloads.md)."""


def ticket_shares(table: int) -> dict[str, float]:
    """What part of all tickets each group holds, by row, in parts of 1.

    It is what the study expects each to get of the CPU time. That supposes that a process asks
    for all it could get, and could run on several CPUs at once.
    """
    groups = LOTTERY_GROUPS[table]
    tickets = [group.processes * group.tickets for group in groups]
    return {group.row: each / sum(tickets) for group, each in zip(groups, tickets, strict=True)}


def ideal_group_shares(table: int, cpus: int, *, all_compute: bool = False) -> dict[str, float]:
    """What part of the CPU time used each group should get, by row, in parts of 1.

    The weighted max-min allocation (`schedlab.metrics.ideal_shares`): by tickets, but no
    process gets more than one CPU or more than it asks for. `all_compute` supposes that each
    asks for a CPU.
    """
    return dict(_ideal_group_shares(table, cpus, all_compute))


@cache
def _ideal_group_shares(table: int, cpus: int, all_compute: bool) -> Mapping[str, float]:
    """The same, which a page asks for in each cell."""
    groups = LOTTERY_GROUPS[table]
    members = [group for group in groups for _ in range(group.processes)]
    allotted = ideal_shares(
        [each.tickets for each in members],
        [1.0 if all_compute else each.demand for each in members],
        cpus,
    )
    shares = {group.row: 0.0 for group in groups}
    for member, part in zip(members, allotted, strict=True):
        shares[member.row] += float(part) / float(allotted.sum())
    return shares


def unmeetable(table: int, cpus: int, *, points: float = 1.0) -> dict[str, tuple[float, float]]:
    """Expectations of study 1 that are `points` or more off the ideal share, in percent.

    By row: what the study expects, and the ideal. Its expectations are cut off or rounded to
    whole percents, hence the point.
    """
    ideal = ideal_group_shares(table, cpus)
    expected = select(study=1, place=f"table {table}", kind="expectation")
    return {
        each.row: (each.value, 100 * ideal[each.row])
        for each in expected
        if abs(each.value - 100 * ideal[each.row]) >= points
    }


# Studies 3 and 4: docs/workloads.md derives the work.

STUDY_3_WORK = 2.9
"""Ticks of a CPU-bound process of study 3, a million cycles each, on its three CPUs."""
STUDY_4_WORK = 61.0
"""Ticks of a CPU-bound process of study 4's mixed benchmark."""
INTERACTIVE_TICKS = 20 * 5.0
"""An interactive process of study 4 sleeps 20 times for 5 ticks; writing a line takes next to none.
So it ends after 100 ticks under a scheduler that lets it run as soon as it wakes."""
SLEEPER_TICKS = 5.0
"""What the sleeper of study 4 asks for, and gets if it runs as soon as it wakes."""


@dataclass(frozen=True)
class IdealBatch:
    """Equal processes that begin together and only compute."""

    throughput: float
    """Processes a tick, until the last has ended."""
    least_turnaround: float
    """Mean ticks, one after the other."""
    shared_turnaround: float
    """Mean ticks if all share the CPUs equally."""


def ideal_batch(processes: int, work: float, cpus: int) -> IdealBatch:
    """Of study 3's CPU-bound workload: 40 processes of STUDY_3_WORK on 3 CPUs.

    No schedule has a shorter mean turnaround than the first. The second is the longest that
    one without idle CPUs can have, since it lets all end last; but all then took equally
    long, so that Jain's index of turnaround is 1. No scheduler is best in both.
    """
    all_work = [work] * processes
    return IdealBatch(
        processes / completion(all_work, cpus),
        least_mean_turnaround(all_work, cpus),
        shared_mean_turnaround(all_work, cpus),
    )


def ideal_mixed_benchmark(cpu_bound: int) -> tuple[float, float]:
    """Mean ticks of study 4's interactive and CPU-bound processes on one CPU, at best for each.

    Interactive ones: INTERACTIVE_TICKS, however many compute. CPU-bound ones that share one
    CPU equally end all together, after all of their work.
    """
    if cpu_bound < 1:
        raise ValueError("there must be a CPU-bound process")
    return INTERACTIVE_TICKS, shared_mean_turnaround([STUDY_4_WORK] * cpu_bound, 1)

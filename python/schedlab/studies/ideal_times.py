# SPDX-License-Identifier: MIT
"""Computes bounds for any scheduler in the studies' tests, and derives each value.

Only the processes' own work and sleeps take time: forks, switches and disks are free. Times are in
ticks, work in ticks of one CPU.
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
    """Returns the ticks until all processes have ended, if they begin together and only compute.

    It is the maximum of the longest work, because no process runs on two CPUs at once, and of the
    total work ÷ CPUs. A preemptive schedule reaches it: the wrap-around rule of McNaughton (1959).
    """
    _check(work, cpus)
    return max([*work, sum(work) / cpus], default=0.0)


def least_mean_turnaround(work: Sequence[float], cpus: int) -> float:
    """Returns the smallest possible mean turnaround in ticks, if all begin together.

    Shortest first: each process gets the CPU that becomes free first (Conway, Maxwell, Miller,
    1967). Preemption does not improve it (McNaughton, 1959).
    """
    _check(work, cpus)
    if not work:
        raise ValueError("there must be a process")
    free_at = [0.0] * cpus
    ends = []
    for length in sorted(work):
        ends.append(heapq.heappushpop(free_at, free_at[0] + length) + length)
    return fmean(ends)


def shared_mean_turnaround(work: Sequence[float], cpus: int) -> float:
    """Returns the mean turnaround in ticks if the remaining processes always share the CPUs
    equally, with at most one CPU each.

    It is the limit of round-robin with time slices of length 0 (processor sharing: Kleinrock,
    1967).
    """
    _check(work, cpus)
    if not work:
        raise ValueError("there must be a process")
    now = done = 0.0
    ends = []
    left = len(work)
    for length in sorted(work):
        now += (length - done) / min(1.0, cpus / left)
        done = length
        ends.append(now)
        left -= 1
    return fmean(ends)


def _check(work: Sequence[float], cpus: int) -> None:
    if cpus < 1:
        raise ValueError("there must be a CPU")
    if any(length < 0 for length in work):
        raise ValueError("work must not be below 0")


# Study 1, sections 4.1 and 4.2.

ITERATIONS_PER_TICK = 10 * 20e6 / 86
"""Iterations per tick of study 1's loop on its machine. Ten processes of 20 million iterations took
86 ticks of one CPU under round-robin (table 1). That cell is therefore its own ideal, by
definition.
"""


@dataclass(frozen=True)
class TimingTest:
    """A test of tables 1 and 2: batches of processes, each after the end of the previous one."""

    row: str
    batches: int
    computing: int
    """Computing processes in a batch."""
    iterations: float = 0
    """Iterations per round of one of them."""
    rounds: int = 1
    """Number of rounds."""
    pause: float = 0
    """Ticks of sleep after each round."""
    light_iterations: float = 0
    """Iterations of one additional process, which computes once."""
    sleeping: float = 0
    """Ticks of the processes in the batch that only sleep."""
    reports_sleepers: bool = False
    """True if the suite reports the shortest time of the sleeping processes, not the end of the
    last one. (This is the study's description; its programs return the number 50.)
    """

    def completion(self, cpus: int) -> float:
        """Returns the smallest possible number of ticks until all have ended.

        A batch takes at least as long as its longest process alone, and as its work on all CPUs. If
        there are pauses, one of them follows the last work. Without pauses the bound is reached
        (McNaughton); with pauses it may not be.
        """
        work = self.iterations / ITERATIONS_PER_TICK
        light = self.light_iterations / ITERATIONS_PER_TICK
        alone = self.rounds * (work + self.pause)
        shared = completion([self.rounds * work] * self.computing + [light], cpus) + self.pause
        return self.batches * max(alone, shared, self.sleeping)

    def reported(self, cpus: int) -> float:
        """Returns the smallest possible value that the study reports, in ticks."""
        return self.sleeping if self.reports_sleepers else self.completion(cpus)


_COMMON = (
    TimingTest("CPU-heavy", 1, 10, 20e6),
    TimingTest("Switch Overhead", 200, 1),
    TimingTest("Mixed Load", 1, 5, 50e6, sleeping=50, reports_sleepers=True),
    TimingTest("Process Creation", 50, 1),
    TimingTest("Low Process Count", 4, 50, 10e3),
    TimingTest("Starvation Check", 1, 5, 20e6, light_iterations=50e3),
)
TIMING_TESTS: dict[int, tuple[TimingTest, ...]] = {
    1: (*_COMMON, TimingTest("I/O-bound", 2, 0, sleeping=10)),
    2: (*_COMMON, TimingTest("I/O-bound", 1, 50, 100e3, rounds=10, pause=1)),
}
"""By table. Switch Overhead and Process Creation only fork, so their ideal is 0.

Sizes of batches and bursts are those of the study's programs (docs/workloads.md). Study 2 has the
same tests, except for its 500 processes in the second one; its figures correspond to two CPUs.
"""


def ideal_completion(table: int, row: str, cpus: int) -> float:
    """Returns the ticks until all have ended, in a test of study 1's table 1 or 2. Raises KeyError
    for an unknown test.
    """
    return _timing_test(table, row).completion(cpus)


def ideal_printed(table: int, row: str, cpus: int) -> float:
    """Returns the ideal value of the cell in ticks. In Mixed Load, it is the shortest time of the sleepers."""
    return _timing_test(table, row).reported(cpus)


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
    """Demand of each process, in CPUs."""


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
"""By table. All processes demand a full CPU except in table 8, where demands follow
workloads/lotterytest.c: a hundredth of each tick; a fifth of one of 500 ticks; four fifths of the
time. The study's own programs demand even less (docs/workloads.md).
"""


def ticket_shares(table: int) -> dict[str, float]:
    """Returns each group's fraction of all tickets, by row.

    The study expects this fraction of the CPU time for each group. It assumes that each process
    demands all it can get, and could run on several CPUs at once.
    """
    groups = LOTTERY_GROUPS[table]
    tickets = [group.processes * group.tickets for group in groups]
    return {
        group.row: tickets_of_group / sum(tickets)
        for group, tickets_of_group in zip(groups, tickets, strict=True)
    }


def ideal_group_shares(table: int, cpus: int, *, all_compute: bool = False) -> dict[str, float]:
    """Returns each group's ideal fraction of the used CPU time, by row.

    It is the weighted max-min allocation (`schedlab.metrics.ideal_shares`) by tickets: no process
    gets more than one CPU or more than its demand. `all_compute` assumes that each demands a full
    CPU.
    """
    return dict(_ideal_group_shares(table, cpus, all_compute))


@cache
def _ideal_group_shares(table: int, cpus: int, all_compute: bool) -> Mapping[str, float]:
    """Caches ideal_group_shares, because a page needs it in each cell."""
    groups = LOTTERY_GROUPS[table]
    members = [group for group in groups for _ in range(group.processes)]
    allotted = ideal_shares(
        [member.tickets for member in members],
        [1.0 if all_compute else member.demand for member in members],
        cpus,
    )
    shares = {group.row: 0.0 for group in groups}
    for member, part in zip(members, allotted, strict=True):
        shares[member.row] += float(part) / float(allotted.sum())
    return shares


def unmeetable(table: int, cpus: int, *, points: float = 1.0) -> dict[str, tuple[float, float]]:
    """Returns study 1's expectations that differ from the ideal share by at least `points`, in percent.

    By row: expectation and ideal. The expectations are truncated or rounded to whole percents,
    hence the default of one point.
    """
    ideal = ideal_group_shares(table, cpus)
    expected = select(study=1, place=f"table {table}", kind="expectation")
    return {
        figure.row: (figure.value, 100 * ideal[figure.row])
        for figure in expected
        if abs(figure.value - 100 * ideal[figure.row]) >= points
    }


# Studies 3 and 4: docs/workloads.md derives the work.

STUDY_3_WORK = 2.9
"""Ticks of a CPU-bound process of study 3, of a million cycles each, on its three CPUs."""
STUDY_4_WORK = 61.0
"""Ticks of a CPU-bound process of study 4's mixed benchmark."""
INTERACTIVE_TICKS = 20 * 5.0
"""Duration of an interactive process of study 4, which sleeps 20 times for 5 ticks. Writing a line
takes almost no time, so it ends after 100 ticks if it runs as soon as it wakes up.
"""
SLEEPER_TICKS = 5.0
"""Requested sleep of study 4's sleeper, which is also the ideal: it then runs as soon as it wakes up."""


@dataclass(frozen=True)
class IdealBatch:
    """Equal processes that begin together and only compute."""

    throughput: float
    """Processes per tick, until the last has ended."""
    least_turnaround: float
    """Mean ticks, one process after the other."""
    shared_turnaround: float
    """Mean ticks if all share the CPUs equally."""


def ideal_batch(processes: int, work: float, cpus: int) -> IdealBatch:
    """Returns the bounds for study 3's CPU-bound workload: 40 processes of STUDY_3_WORK on 3 CPUs.

    No schedule has a shorter mean turnaround than `least_turnaround`. `shared_turnaround` is the
    longest without idle CPUs, because all processes end last. They then take equally long, so
    Jain's index of turnaround is 1. No scheduler is best in both.
    """
    all_work = [work] * processes
    return IdealBatch(
        processes / completion(all_work, cpus),
        least_mean_turnaround(all_work, cpus),
        shared_mean_turnaround(all_work, cpus),
    )


def ideal_mixed_benchmark(cpu_bound: int) -> tuple[float, float]:
    """Returns the best mean ticks of study 4's interactive and CPU-bound processes on one CPU.

    Interactive processes take INTERACTIVE_TICKS, regardless of the load. CPU-bound processes that
    share a CPU equally all end together, after all their work.
    """
    if cpu_bound < 1:
        raise ValueError("there must be a CPU-bound process")
    return INTERACTIVE_TICKS, shared_mean_turnaround([STUDY_4_WORK] * cpu_bound, 1)

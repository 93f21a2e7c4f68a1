# SPDX-License-Identifier: MIT
"""Computes bounds for any scheduler in the studies' tests, and derives each value.

Only the processes' own work and sleeps take time: forks, switches and disks are free. Times are in
ticks, work in ticks of one CPU.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean

from schedlab.metrics import ideal_shares
from schedlab.studies.figures import select
from schedlab.studies.lottery_tests import TESTS_BY_TABLE

CPUS = (1, 2, 3, 4, 5)


def completion_time(work: Sequence[float], cpus: int) -> float:
    """Returns the ticks until all processes have ended, if they begin together and only compute.

    It is the maximum of the longest work, because no process runs on two CPUs at once, and of the
    total work ÷ CPUs. A preemptive schedule reaches it: the wrap-around rule of McNaughton (1959).
    """
    _check_work(work, cpus)
    return max([*work, sum(work) / cpus], default=0.0)


def smallest_mean_turnaround(work: Sequence[float], cpus: int) -> float:
    """Returns the smallest possible mean turnaround in ticks, if all begin together.

    Shortest first: each process gets the CPU that becomes free first (Conway, Maxwell, Miller,
    1967). Preemption does not improve it (McNaughton, 1959).
    """
    _check_work(work, cpus)
    if not work:
        raise ValueError("there must be a process")
    free_at = [0.0] * cpus
    end_times = []
    for length in sorted(work):
        end_times.append(heapq.heappushpop(free_at, free_at[0] + length) + length)
    return fmean(end_times)


def shared_mean_turnaround(work: Sequence[float], cpus: int) -> float:
    """Returns the mean turnaround in ticks if the remaining processes always share the CPUs
    equally, with at most one CPU each.

    It is the limit of round-robin with time slices of length 0 (processor sharing: Kleinrock,
    1967).
    """
    _check_work(work, cpus)
    if not work:
        raise ValueError("there must be a process")
    now = finished_work = 0.0
    end_times = []
    remaining = len(work)
    for length in sorted(work):
        now += (length - finished_work) / min(1.0, cpus / remaining)
        finished_work = length
        end_times.append(now)
        remaining -= 1
    return fmean(end_times)


def _check_work(work: Sequence[float], cpus: int) -> None:
    """Raises ValueError for negative work or for no CPU."""
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
    """The test's name in the tables."""
    batches: int
    computing_processes: int
    """Computing processes in a batch."""
    iterations: float = 0
    """Iterations per round of one of them."""
    rounds: int = 1
    """Number of rounds."""
    pause_ticks: float = 0
    """Ticks of sleep after each round."""
    light_iterations: float = 0
    """Iterations of one additional process, which computes once."""
    sleep_ticks: float = 0
    """Ticks of the processes in the batch that only sleep."""
    reports_sleepers: bool = False
    """True if the suite reports the shortest time of the sleeping processes, not the end of the
    last one. (The study's text says the shortest time of all; its programs return the number 50.)
    """

    def completion_time(self, cpus: int) -> float:
        """Returns the smallest possible number of ticks until all have ended.

        A batch takes at least as long as its longest process alone, and as its work on all CPUs. If
        there are pauses, one of them follows the last work. Without pauses the bound is reached
        (McNaughton); with pauses it may not be.
        """
        work = self.iterations / ITERATIONS_PER_TICK
        light_work = self.light_iterations / ITERATIONS_PER_TICK
        longest_process = self.rounds * (work + self.pause_ticks)
        all_work = (
            completion_time([self.rounds * work] * self.computing_processes + [light_work], cpus)
            + self.pause_ticks
        )
        return self.batches * max(longest_process, all_work, self.sleep_ticks)

    def reported_ticks(self, cpus: int) -> float:
        """Returns the smallest possible value that the study reports, in ticks."""
        return self.sleep_ticks if self.reports_sleepers else self.completion_time(cpus)


_COMMON_TESTS = (
    TimingTest("CPU-heavy", 1, 10, 20e6),
    TimingTest("Switch Overhead", 200, 1),
    TimingTest("Mixed Load", 1, 5, 50e6, sleep_ticks=50, reports_sleepers=True),
    TimingTest("Process Creation", 50, 1),
    TimingTest("Low Process Count", 4, 50, 10e3),
    TimingTest("Starvation Check", 1, 5, 20e6, light_iterations=50e3),
)
TIMING_TESTS: dict[int, tuple[TimingTest, ...]] = {
    1: (*_COMMON_TESTS, TimingTest("I/O-bound", 2, 0, sleep_ticks=10)),
    2: (*_COMMON_TESTS, TimingTest("I/O-bound", 1, 50, 100e3, rounds=10, pause_ticks=1)),
}
"""By table. Switch Overhead and Process Creation only fork, so their ideal is 0.

Sizes of batches and bursts are those of the study's programs (docs/workloads.md). Study 2 has the
same tests, except for its 500 processes in the second one; its figures correspond to two CPUs.
"""


def ideal_completion(table: int, row: str, cpus: int) -> float:
    """Returns the ticks until all have ended, in a test of study 1's table 1 or 2. Raises KeyError
    for an unknown test.
    """
    return _timing_test(table, row).completion_time(cpus)


def ideal_reported(table: int, row: str, cpus: int) -> float:
    """Returns the ideal value of the cell in ticks. In Mixed Load, it is the shortest time of the sleepers."""
    return _timing_test(table, row).reported_ticks(cpus)


def _timing_test(table: int, row: str) -> TimingTest:
    """Returns the test of a row of table 1 or 2. Raises KeyError."""
    for test in TIMING_TESTS[table]:
        if test.row == row:
            return test
    raise KeyError(row)


# Study 1, section 4.3.


@cache
def ideal_group_shares(table: int, cpus: int) -> Mapping[str, float]:
    """Returns each group's ideal fraction of the used CPU time, by row.

    It is the weighted max-min allocation (`schedlab.metrics.ideal_shares`) by tickets: no process
    gets more than one CPU or more than its demand. Cached, because a page needs it in each cell.
    """
    groups = TESTS_BY_TABLE[table].groups
    members = [group for group in groups for _ in range(group.processes)]
    member_shares = ideal_shares(
        [member.tickets for member in members], [member.demand for member in members], cpus
    )
    shares = {group.row: 0.0 for group in groups}
    for member, member_share in zip(members, member_shares, strict=True):
        shares[member.row] += float(member_share) / float(member_shares.sum())
    return shares


@cache
def unmeetable_expectations(table: int, cpus: int) -> Mapping[str, tuple[float, float]]:
    """Returns study 1's expectations that differ from the ideal share by a point or more, in percent.

    By row: expectation and ideal. The expectations are truncated or rounded to whole percents,
    hence the point.
    """
    ideal = ideal_group_shares(table, cpus)
    expected = select(study=1, place=f"table {table}", kind="expectation")
    return {
        figure.row: (figure.value, 100 * ideal[figure.row])
        for figure in expected
        if abs(figure.value - 100 * ideal[figure.row]) >= 1
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
        processes / completion_time(all_work, cpus),
        smallest_mean_turnaround(all_work, cpus),
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

# SPDX-License-Identifier: MIT
"""Lists study 1's six lottery tests: the groups of workloads/lotterytest.c, and tables 3 to 8."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LotteryGroup:
    """Processes with the same tickets: a row of a table."""

    name: str
    """The program's name of the group."""
    row: str
    """The study's name of the group."""
    processes: int
    tickets: int
    demand: float = 1.0
    """Demand of each process, in CPUs."""


@dataclass(frozen=True)
class LotteryTest:
    """A test of workloads/lotterytest.c, and its place in study 1."""

    number: int
    name: str
    title: str
    groups: tuple[LotteryGroup, ...]

    @property
    def table(self) -> int:
        """The number of the study's table."""
        return self.number + 2

    @property
    def rows(self) -> dict[str, str]:
        """The study's name of each group."""
        return {group.name: group.row for group in self.groups}


LOTTERY_TESTS = (
    LotteryTest(
        1,
        "low",
        "Low Process Count",
        (
            LotteryGroup("A", "A (30 tickets)", 1, 30),
            LotteryGroup("B", "B (20 tickets)", 1, 20),
            LotteryGroup("C", "C (10 tickets)", 1, 10),
        ),
    ),
    LotteryTest(
        2,
        "basic",
        "Basic Fairness",
        (
            LotteryGroup("A+B", "A+B (30+30)", 2, 30),
            LotteryGroup("C+D", "C+D (20+20)", 2, 20),
            LotteryGroup("E+F", "E+F (10+10)", 2, 10),
            LotteryGroup("G+H", "G+H (5+5)", 2, 5),
        ),
    ),
    LotteryTest(
        3,
        "switch",
        "Switch Overhead",
        (
            LotteryGroup("A", "A (30 tickets)", 17, 30),
            LotteryGroup("B", "B (20 tickets)", 17, 20),
            LotteryGroup("C", "C (10 tickets)", 16, 10),
        ),
    ),
    LotteryTest(
        4,
        "starve",
        "Starvation Check",
        (
            LotteryGroup("A+B", "A+B (50+50)", 2, 50),
            LotteryGroup("C+D", "C+D (10+10)", 2, 10),
            LotteryGroup("E+F+G+H", "E+F+G+H (1+1+1+1)", 4, 1),
        ),
    ),
    LotteryTest(
        5,
        "grouped",
        "Grouped Ticket Levels",
        (
            LotteryGroup("1", "1 (10×1)", 10, 1),
            LotteryGroup("2", "2 (10×5)", 10, 5),
            LotteryGroup("3", "3 (10×10)", 10, 10),
        ),
    ),
    LotteryTest(
        6,
        "mixed",
        "Mixed Load",
        (
            LotteryGroup("CPU", "CPU-heavy (5×20)", 5, 20),
            LotteryGroup("I/O", "I/O-bound (5×15)", 5, 15, demand=0.01),
            LotteryGroup("short", "Short-lived (5×10)", 5, 10, demand=0.2 / 500),
            LotteryGroup("mixed", "Mixed (5×5)", 5, 5, demand=0.8),
        ),
    ),
)
"""All processes demand a full CPU except in the last test: there, a hundredth of each tick; a fifth
of one of 500 ticks; four fifths of the time. The study's own programs demand even less
(docs/workloads.md).
"""
TESTS_BY_NAME = {test.name: test for test in LOTTERY_TESTS}
TESTS_BY_TABLE = {test.table: test for test in LOTTERY_TESTS}

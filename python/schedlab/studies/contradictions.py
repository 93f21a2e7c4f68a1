# SPDX-License-Identifier: MIT
"""What does not fit together in a study: two or more of its places, and why they disagree.

Whoever compares with a study should know which of its numbers to compare with. Each statement
is told in our words with the numbers that stand at its place, so that a test can look them up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Sort = Literal["number", "conclusion", "comparison", "method", "expectation"]
"""Two numbers for one thing; a conclusion that its numbers deny; two things compared that differ
in more than what is compared; a measure that does not tell what it is said to; an expectation
that cannot be met."""


@dataclass(frozen=True)
class Statement:
    """What one place says, in our words."""

    place: str
    """`table 3` or `section 5.3`."""
    says: str
    numbers: tuple[str, ...] = ()
    """As they stand there: in this row of the table, in one paragraph of the section."""
    row: str = ""
    """Of a table; empty: anywhere in it."""
    words: tuple[str, ...] = ()
    """Terms that stand in that paragraph."""

    def __str__(self) -> str:
        """With those numbers that `says` leaves out."""
        more = [each for each in self.numbers if each not in re.findall(r"[\d.]*\d", self.says)]
        return f"{self.place}: {self.says}" + (f" ({', '.join(more)})" if more else "")


@dataclass(frozen=True)
class Contradiction:
    """Statements of a study that cannot all be meant."""

    study: int
    name: str
    sort: Sort
    statements: tuple[Statement, ...]
    reason: str

    def __str__(self) -> str:
        """Places, and then the reason."""
        places = "; ".join(str(each) for each in self.statements)
        return f"{places[0].upper()}{places[1:]}. {self.reason}"


_STUDY_1 = (
    Contradiction(
        1,
        "starvation-time",
        "conclusion",
        (
            Statement(
                "section 6.2",
                "priorities improve the starvation check",
                ("44", "33", "46", "14"),
                words=("improves",),
            ),
            Statement("table 1", "round-robin", ("46", "23", "17", "14"), "Starvation Check"),
            Statement("table 2", "priorities", ("44", "27", "29", "28", "33"), "Starvation Check"),
        ),
        "Priorities are 2 ticks faster on one CPU, and slower on two to five: 33 ticks against 14 on"
        " five. Sections 7.1 and 9 repeat it.",
    ),
    Contradiction(
        1,
        "starvation-whose-time",
        "method",
        (
            Statement(
                "section 6.1",
                "the light process waits for 46 ticks on one CPU",
                ("46",),
                words=("lightweight",),
            ),
            Statement("table 1", "10 heavy processes take 86 ticks", ("86",), "CPU-heavy"),
            Statement("section 4.1", "the check has 5 heavy ones of the same size", ("20", "5")),
        ),
        "86 ticks ÷ 10 × 5 = 43, and the forks: about the 46 until all six have ended. When the light"
        " process ended was measured under neither scheduler; it may have been in the first tick.",
    ),
    Contradiction(
        1,
        "aging-too-late",
        "conclusion",
        (
            Statement("section 3.1", "priorities age every 50 ticks", ("50",), words=("Aging",)),
            Statement(
                "section 6.2",
                "the starvation check shows that aging works",
                ("44", "33", "46", "14"),
                words=("aging", "evident"),
            ),
            Statement("table 2", "it lasts 27 to 44 ticks", ("44", "27"), "Starvation Check"),
        ),
        "A test of at most 44 ticks sees one round of aging at most. Nor does it need one: once the"
        " light process has ended, all that are left have the same priority.",
    ),
    Contradiction(
        1,
        "starvation-decreasing",
        "number",
        (
            Statement("section 7.3", "decreases from 44 to 28 ticks", ("44", "28")),
            Statement(
                "table 2",
                "33 on five CPUs; the least is 27, on two",
                ("27", "33"),
                "Starvation Check",
            ),
            Statement("section 6.2", "44 to 33", ("44", "33")),
        ),
        "28 is the figure of four CPUs. From two CPUs on the time rises, from 27 to 33.",
    ),
    Contradiction(
        1,
        "mixed-switches",
        "conclusion",
        (
            Statement(
                "section 6.2",
                "priorities switch less often in the mixed load",
                ("242", "396", "185", "421"),
                words=("lower",),
            ),
            Statement("table 1", "round-robin", ("185", "259"), "Mixed Load"),
            Statement("table 2", "priorities", ("242", "291"), "Mixed Load"),
        ),
        "On one and two CPUs they switch more often: 242 against 185, 291 against 259.",
    ),
    Contradiction(
        1,
        "mixed-constant",
        "method",
        (
            Statement("table 1", "50 ticks on one to five CPUs", ("50",), "Mixed Load"),
            Statement("table 2", "50 ticks as well", ("50",), "Mixed Load"),
            Statement(
                "section 4.1", "the least time of all is reported", ("50",), words=("minimum",)
            ),
            Statement(
                "section 7.2",
                "processes of priority 0 complete faster",
                ("0",),
                words=("faster",),
            ),
        ),
        "The least time is that of a process that sleeps 50 ticks and does nothing else. It is 50 under"
        " each scheduler, and says nothing on those that compute.",
    ),
    Contradiction(
        1,
        "io-other-work",
        "comparison",
        (
            Statement("section 4.1", "100 processes that sleep 10 ticks", ("100", "10")),
            Statement(
                "section 4.2", "50 processes that sleep 1 tick, again and again", ("50", "1")
            ),
            Statement(
                "section 7.1",
                "27 to 44 against 51 to 66 ticks, owing to priorities",
                ("27", "44", "51", "66"),
                words=("significantly",),
            ),
        ),
        "The two suites run different tests of this name. Section 6.2 says so for the context switches"
        " and not for the ticks; section 9 repeats the comparison.",
    ),
    Contradiction(
        1,
        "cpu-heavy-switches",
        "number",
        (
            Statement("section 7.2", "95 on one CPU, 131 on five", ("95", "131")),
            Statement("section 6.2", "94 on one CPU, 131 on five", ("94", "131")),
            Statement("table 2", "94", ("94",), "CPU-heavy"),
        ),
        "Sections 7.2, 7.3, 8.1 and 8.3 have 95.",
    ),
    Contradiction(
        1,
        "priorities-reset",
        "method",
        (
            Statement("section 3.1", "processes with PIDs above 100 have priority 5", ("100", "5")),
            Statement(
                "section 4.2",
                "the second test starts 200 processes",
                ("200",),
                words=("Switch",),
            ),
            Statement(
                "section 4.2",
                "a later one has priorities 0 and 10",
                ("0", "10"),
                words=("Starvation",),
            ),
        ),
        "Each test runs five times, so that over 1000 PIDs are used up before the tests that set"
        " priorities. Run as published, tests 3 to 7 are without.",
    ),
    Contradiction(
        1,
        "fast-lane",
        "method",
        (
            Statement(
                "section 3.1",
                "the line of priority 5 is served first",
                ("5",),
                words=("first", "FIFO"),
            ),
            Statement(
                "section 3.1",
                "who has a higher priority always runs first",
                ("0", "10"),
                words=("guarantees",),
            ),
        ),
        "Priority 5 is the default and goes before priority 0, the highest.",
    ),
    Contradiction(
        1,
        "decay-without-effect",
        "method",
        (
            Statement(
                "section 3.2",
                "every 100 decisions a count of selections shrinks to 3/4",
                ("100", "3", "4"),
                words=("recent_schedules",),
            ),
            Statement(
                "section 3.2",
                "the draw depends on the tickets",
                words=("winner", "effective_tickets"),
            ),
            Statement("section 6.3", "it shrinks too seldom to be fair", ("100", "3", "4")),
        ),
        "As published, no step of the draw reads that count: to shrink it oftener changes nothing.",
    ),
    Contradiction(
        1,
        "more-is-not-starvation",
        "conclusion",
        (
            Statement(
                "section 8.2",
                "low-ticket processes starve",
                ("5.5", "36.8", "3"),
                words=("starvation",),
            ),
            Statement(
                "table 6",
                "they get more than expected",
                ("5.5", "17.9", "25.5", "28.7", "36.8"),
                "E+F+G+H (1+1+1+1)",
            ),
        ),
        "To get more than one's tickets say is not to starve.",
    ),
    Contradiction(
        1,
        "unfair-on-one-cpu",
        "method",
        (
            Statement("table 6", "A+B get 66.3 % of one CPU", ("66.3",), "A+B (50+50)"),
            Statement("table 6", "81 are expected", ("81",), "A+B (50+50)"),
            Statement(
                "section 6.3",
                "the decay and the queues of several CPUs are why",
                ("66.3", "81"),
                words=("decay", "multi-CPU"),
            ),
        ),
        "One CPU has one queue, and there 80.6 % could be met. But the program's processes end when"
        " each has yielded so many times, those with most tickets first. Were all to end, each would"
        " have been picked as often, and A+B have 25 %.",
    ),
    Contradiction(
        1,
        "lottery-switch-a",
        "number",
        (
            Statement("section 6.3", "50 to 51 % on all numbers of CPUs", ("50", "51")),
            Statement("section 7.2", "49.2 to 50.9 %", ("49.2", "50.9")),
            Statement("section 9", "50.1 to 50.9 %", ("50.1", "50.9")),
            Statement("table 5", "48.7 to 50.9 %", ("48.7", "50.9"), "A (30 tickets)"),
        ),
        "Three ranges for one row; the least of it, 48.7 on four CPUs, is in none of them.",
    ),
    Contradiction(
        1,
        "lottery-mixed-cpu",
        "number",
        (
            Statement("section 8.2", "64.5 to 65.2 %", ("64.5", "65.2")),
            Statement("table 8", "63.5 to 65.2 %", ("63.5", "65.2"), "CPU-heavy (5×20)"),
        ),
        "64.5 is the figure of one CPU, not the least.",
    ),
    Contradiction(
        1,
        "lottery-grouped-3",
        "number",
        (
            Statement("section 7.4", "59.7 to 51.6 %", ("59.7", "51.6", "33.2", "35.3")),
            Statement("table 7", "59.7 to 51.1 %", ("59.7", "51.1", "51.6"), "3 (10×10)"),
        ),
        "51.6 is the figure of five CPUs, 51.1 the least; for group 2 the same sentence has the extremes.",
    ),
    Contradiction(
        1,
        "lottery-sum",
        "number",
        (
            Statement("table 3", "two CPUs: 37.6", ("37.6",), "A (30 tickets)"),
            Statement("table 3", "two CPUs: 43.3", ("43.3",), "B (20 tickets)"),
            Statement("table 3", "two CPUs: 12.2", ("12.2",), "C (10 tickets)"),
        ),
        "Shares of all three processes that add up to 93.1 %. All other columns of tables 3 to 8 add up"
        " to between 99.5 and 100.5.",
    ),
    Contradiction(
        1,
        "shares-of-selections",
        "method",
        (
            Statement(
                "section 4.3", "shares of CPU time are expected", ("50", "33", "16"), words=("CPU",)
            ),
            Statement(
                "section 4.3",
                "what is counted is how often each was picked",
                ("50",),
                words=("events",),
            ),
        ),
        "The two are the same only if all run equally long when picked. Those that sleep or yield early"
        " do not.",
    ),
    Contradiction(
        1,
        "expected-of-unequal-groups",
        "expectation",
        (
            Statement("section 4.3", "groups of 17, 17 and 16 processes", ("17", "16")),
            Statement("table 5", "A shall get 50 %", ("50",), "A (30 tickets)"),
            Statement("table 5", "B shall get 33 %", ("33",), "B (20 tickets)"),
            Statement("table 5", "C shall get 16 %", ("16",), "C (10 tickets)"),
        ),
        "Those are the parts of 30 : 20 : 10, cut off to whole percents, as of three equal groups."
        " By all tickets it is 50.5, 33.7 and 15.8 %.",
    ),
    Contradiction(
        1,
        "expected-beyond-one-cpu",
        "expectation",
        (
            Statement("table 6", "A+B shall get 81 %", ("81",), "A+B (50+50)"),
            Statement("table 6", "they get 39.8 % of five CPUs", ("39.8",), "A+B (50+50)"),
            Statement("section 6.3", "which is too little", ("39.8", "66.3", "81")),
        ),
        "Two processes cannot have more than two CPUs: 40 % of five, 50 % of four, 66.7 % of three. The"
        " same holds for A of table 3 from three CPUs on, and for A+B of table 4 on five.",
    ),
    Contradiction(
        1,
        "expected-beyond-demand",
        "expectation",
        (
            Statement("table 8", "the short-lived shall get 20 %", ("20",), "Short-lived (5×10)"),
            Statement("table 8", "they get 0.3 %", ("0.3",), "Short-lived (5×10)"),
            Statement("section 4.3", "40, 30, 20 and 10 %, by tickets", ("40", "30", "20", "10")),
        ),
        "By tickets, 40 : 30 : 20 : 10 supposes that all want the CPU all the time. Who ends at once or"
        " sleeps leaves it to the others under any scheduler.",
    ),
    Contradiction(
        1,
        "ended-before-it-ran",
        "conclusion",
        (
            Statement(
                "section 6.3",
                "short-lived processes end before they are scheduled",
                ("0.3", "20"),
                words=("terminate",),
            ),
            Statement("table 8", "they were picked", ("0.3",), "Short-lived (5×10)"),
        ),
        "A process ends by running. These got all that they asked for.",
    ),
    Contradiction(
        1,
        "scales-well",
        "conclusion",
        (
            Statement(
                "section 7.3",
                "priorities perform as well on five CPUs as on one",
                ("1", "5"),
                words=("consistent",),
            ),
            Statement("table 2", "71 to 127 ticks", ("71", "127"), "Switch Overhead"),
            Statement("table 2", "74 to 121 ticks", ("74", "121"), "Low Process Count"),
            Statement("table 2", "18 to 31 ticks", ("18", "31"), "Process Creation"),
        ),
        "Four of the seven tests take 63 to 79 % longer on five CPUs than on one. Under round-robin the"
        " same four take longer.",
    ),
    Contradiction(
        1,
        "lottery-responsiveness",
        "comparison",
        (
            Statement("section 7.4", "the lottery lags for I/O-bound workloads", words=("lags",)),
            Statement("section 4", "the lottery is measured by shares", words=("proportionality",)),
        ),
        "No completion or response time was measured under the lottery.",
    ),
    Contradiction(
        1,
        "low-process-count",
        "method",
        (
            Statement("section 4.1", "200 short processes", ("200",), words=("Low",)),
            Statement("section 4.3", "3 processes", ("3",), words=("Low",)),
        ),
        "One name for two tests. That of tables 1 and 2 has as many processes as any; study 2 calls it"
        " short tasks.",
    ),
    Contradiction(
        1,
        "where-the-suites-are",
        "number",
        (
            Statement("section 5", "the suites are described in section 6", ("6",)),
            Statement("section 4", "they are described here", words=("timingtests.c",)),
        ),
        "Section 6 is the analysis.",
    ),
)

_STUDY_2 = (
    Contradiction(
        2,
        "switch-other-work",
        "comparison",
        (
            Statement("section 2", "500 processes", ("500",), words=("Switch",)),
            Statement("section 4", "reduced to 200", ("500", "200")),
            Statement("section 5.1", "198 to 76 ticks, also owing to the scheduler", ("198", "76")),
        ),
        "198 ÷ 500 = 0.396 ticks each, 76 ÷ 200 = 0.380: 4 % less, not 62 %.",
    ),
    Contradiction(
        2,
        "mixed-other-measure",
        "comparison",
        (
            Statement("section 4", "the mixed load tells times by pipes now", words=("pipes",)),
            Statement("section 5.1", "54 to 50 ticks beats round-robin", ("54", "50")),
        ),
        "By its size (mixed-what-takes-long) the baseline is the time until all have ended, the other"
        " what children tell of themselves. In study 1, whose programs have the second measure,"
        " round-robin has 50 ticks too.",
    ),
    Contradiction(
        2,
        "mixed-what-takes-long",
        "conclusion",
        (
            Statement(
                "section 2.1", "54 ticks are the sleep of 50; computing adds little", ("54", "50")
            ),
            Statement("section 2", "5 processes of 50 million iterations", ("5", "50")),
            Statement("section 2", "10 of 20 million", ("10", "20")),
            Statement("section 3", "the latter take 44 ticks", ("44",), "CPU-heavy"),
        ),
        "250 million iterations where 200 million take 44 ticks are 55 ticks: the time is that of the"
        " computing processes, and the sleep is hidden behind it. On two CPUs, on which the 44 point,"
        " the ideal is 53.8.",
    ),
    Contradiction(
        2,
        "creation-other-work",
        "comparison",
        (
            Statement("section 2", "50 processes that start a program", ("50",), words=("exec",)),
            Statement("section 5.1", "60 to 18 ticks without it", ("60", "18")),
        ),
        "As its text says: what fell is the work. Nothing follows on the scheduler.",
    ),
    Contradiction(
        2,
        "baseline-with-priorities",
        "method",
        (
            Statement("section 2", "the baseline's processes have priorities", ("0", "10", "50")),
            Statement("section 4", "priorities come with the other scheduler", ("5",)),
        ),
        "Round-robin has no priorities; the baseline's are without effect.",
    ),
)

_STUDY_3 = (
    Contradiction(
        3,
        "throughput-io",
        "number",
        (
            Statement("section 5.3", "153 % over RR, 121 % over lottery", ("153", "121")),
            Statement("table 3", "MLFQ", ("2.234",), "MLFQ"),
            Statement("table 3", "RR", ("0.9212",), "RR"),
            Statement("table 3", "lottery", ("2.006",), "Lottery"),
        ),
        "2.234 ÷ 0.9212 = 2.43, 143 % more; 2.234 ÷ 2.006 = 1.11, 11 % more.",
    ),
    Contradiction(
        3,
        "throughput-mixed",
        "number",
        (
            Statement("section 5.3", "13 % over RR, 72 % over lottery", ("13", "72")),
            Statement("table 3", "MLFQ", ("1.574",), "MLFQ"),
            Statement("table 3", "RR", ("0.5280",), "RR"),
            Statement("table 3", "lottery", ("1.280",), "Lottery"),
        ),
        "1.574 ÷ 0.5280 = 2.98, 198 % more; 1.574 ÷ 1.280 = 1.23, 23 % more.",
    ),
    Contradiction(
        3,
        "throughput-which-gains-more",
        "conclusion",
        (
            Statement(
                "section 5.3",
                "mixed processes gain less than IO-bound ones",
                words=("dramatic", "third"),
            ),
            Statement("table 3", "RR, IO-bound and mixed", ("0.9212", "0.5280"), "RR"),
            Statement("table 3", "MLFQ, IO-bound and mixed", ("2.234", "1.574"), "MLFQ"),
        ),
        "Over RR mixed processes gain more: 198 % against 143 %.",
    ),
    Contradiction(
        3,
        "turnaround-longer-than-the-run",
        "number",
        (
            Statement("section 4.3.2", "40 processes", ("40",)),
            Statement(
                "table 3", "lottery, IO-bound: 2.006 a million cycles", ("2.006",), "Lottery"
            ),
            Statement(
                "table 1", "lottery, IO-bound: mean turnaround of 152.7", ("152.7",), "Lottery"
            ),
        ),
        "40 processes at that rate are done in 19.9 million cycles; none of them can take longer than"
        " that. The same holds for RR, IO-bound (54.34 in 43.4), lottery, mixed (76.25 in 39.1), and"
        " MLFQ, mixed (90.06 in 31.8). Means over ten runs can only be so apart if the runs differ"
        " widely, and then neither mean says much.",
    ),
    Contradiction(
        3,
        "overhead-three-times",
        "number",
        (
            Statement("section 5.4", "almost 3 times less than RR in the mixed workload", ("3",)),
            Statement("table 4", "RR", ("26.74",), "RR"),
            Statement("table 4", "MLFQ", ("14.03",), "MLFQ"),
        ),
        "26.74 ÷ 14.03 = 1.9.",
    ),
    Contradiction(
        3,
        "overhead-lowest",
        "conclusion",
        (
            Statement("section 5.4", "MLFQ has the least", words=("lowest",)),
            Statement("table 4", "lottery, CPU-bound and IO-bound", ("11.86", "27.87"), "Lottery"),
            Statement("table 4", "MLFQ, CPU-bound and IO-bound", ("11.92", "28.41"), "MLFQ"),
        ),
        "In two of three workloads the lottery has less.",
    ),
    Contradiction(
        3,
        "overhead-is-idle-time",
        "method",
        (
            Statement(
                "section 3.2.1", "overhead is the scheduler's work", words=("Overhead", "extra")
            ),
            Statement(
                "section 4.2.5",
                "it is all time between two processes",
                words=("starttime", "scheduler"),
            ),
            Statement("section 5.4", "much of it is waiting for I/O", words=("spinning",)),
        ),
        "What is measured includes idle time. So it is highest where all wait for the disk, 28 to 32 %"
        " in the IO-bound workload, under all three.",
    ),
    Contradiction(
        3,
        "response-lowest",
        "conclusion",
        (
            Statement(
                "section 5.2",
                "MLFQ responds first in all three workloads",
                words=("lowest", "three"),
            ),
            Statement("table 2", "RR, IO-bound", ("0.01236",), "RR"),
            Statement("table 2", "MLFQ, IO-bound", ("0.01899",), "MLFQ"),
        ),
        "In the IO-bound workload RR responds in two thirds of the time.",
    ),
    Contradiction(
        3,
        "turnaround-similar",
        "conclusion",
        (
            Statement("section 5.1", "RR and lottery are similar in all three", ("3",)),
            Statement("table 1", "RR", ("54.34", "29.49"), "RR"),
            Statement("table 1", "lottery", ("152.7", "76.25"), "Lottery"),
        ),
        "Lottery takes 2.8 and 2.6 times as long in two of three; it is not better in the IO-bound one,"
        " as that section says, but worst of all.",
    ),
    Contradiction(
        3,
        "across-the-board",
        "conclusion",
        (
            Statement("section 5", "MLFQ improves everything", words=("improvements",)),
            Statement(
                "section 5.1", "its turnaround is the longest in two workloads", words=("highest",)
            ),
            Statement("table 1", "31.17 and 90.06", ("31.17", "90.06"), "MLFQ"),
        ),
        "Of fifteen cells of tables 1 to 5, MLFQ has the best value in six.",
    ),
    Contradiction(
        3,
        "fairness-order",
        "conclusion",
        (
            Statement(
                "section 6",
                "RR is the fairest, closely followed by lottery; MLFQ is last",
                words=("closely", "worst"),
            ),
            Statement("table 5", "lottery", ("0.8176", "0.5729", "0.5413"), "Lottery"),
            Statement("table 5", "MLFQ", ("0.5829", "0.5441"), "MLFQ"),
            Statement("table 5", "RR", ("0.8102", "0.7493", "0.7103"), "RR"),
        ),
        "In the CPU-bound workload lottery is fairer than RR. In the two others it is far behind RR, and"
        " behind MLFQ.",
    ),
    Contradiction(
        3,
        "not-drawn",
        "number",
        (Statement("section 5.5", "around 38 % are not drawn in n draws among n", ("38",)),),
        "(1 − 1/n)ⁿ → 1/e = 36.8 %, from below.",
    ),
    Contradiction(
        3,
        "tickets-of-b",
        "number",
        (
            Statement(
                "section 3.1.2",
                "B's chance is a fifth of C's and half of its own",
                ("1", "5", "2"),
                words=("Figure",),
            ),
        ),
        "No process has half of its own chance; A must be meant.",
    ),
)

_STUDY_4 = (
    Contradiction(
        4,
        "rising-by-waking",
        "method",
        (
            Statement(
                "section 1",
                "a process that wakes is raised to a higher priority",
                words=("resume", "elevated"),
            ),
            Statement("section 3.1", "it keeps its priority", words=("Rule 4b", "retains")),
            Statement("section 3.2.1", "all are raised every 480 ticks, otherwise none", ("480",)),
        ),
        "As built, a process rises by the boost alone.",
    ),
    Contradiction(
        4,
        "slice-is-allotment",
        "method",
        (
            Statement(
                "section 3.1",
                "a job sinks when it has used its slice up",
                words=("Rule 4", "exhausts"),
            ),
            Statement(
                "section 3.2.1", "turns of 2, 4, 8 and 32 ticks", ("2",), words=("Priority 3",)
            ),
            Statement("section 3.2.1", "it sinks after 8, 16, 32", ("8",), words=("Priority 3",)),
        ),
        "Slice and allotment are two things: on the first level, four turns of 2 ticks make 8.",
    ),
    Contradiction(
        4,
        "interactive-hardly-slower",
        "conclusion",
        (
            Statement("section 4.2", "2 to 40 CPU-bound processes", ("2", "40")),
            Statement(
                "section 4.2",
                "under MLFQ the interactive ones take hardly longer beside more of them",
                words=("increase much",),
            ),
        ),
        "In the authors' own output they take 176.5 ticks beside 2 and 638.5 beside 40: 3.6 times as"
        " long. That is far less than the 13 times of round-robin, and not little.",
    ),
    Contradiction(
        4,
        "sleeps-exactly",
        "conclusion",
        (
            Statement(
                "section 4.3",
                "the sleeper beside 20 others sleeps 20 ticks under round-robin, 5 under MLFQ",
                ("20", "5"),
                words=("exactly",),
            ),
            Statement("section 3.2.1", "turns of the first level last 2 ticks", ("2",)),
            Statement("section 3.2.1", "and its allotment 8", ("8",)),
        ),
        "A sleeper that comes right after the others shares the first level with them until each has"
        " used 8 ticks, 160 in all. Until then it waits for their turns as under round-robin. It sleeps"
        " 5 ticks only if it comes later.",
    ),
)

_STUDY_5 = (
    Contradiction(
        5,
        "same-runs-twice",
        "number",
        (
            Statement("table 5", "CFS, run 2", ("1901.92", "0.52", "1.51"), "CFS 2"),
            Statement("table 5", "WRR, run 2", ("1901.92", "0.52", "1.41"), "WRR 2"),
            Statement("table 5", "CFS, run 3", ("1906.58", "0.52", "1.51"), "CFS 3"),
            Statement("table 5", "WRR, run 3", ("1906.58", "0.52", "1.51"), "WRR 3"),
        ),
        "Runs 2 and 3 have the same throughput to six digits under both, run 3 all three figures. One"
        " may have been copied from the other.",
    ),
    Contradiction(
        5,
        "throughput-within-noise",
        "conclusion",
        (
            Statement("section 6.2", "WRR has the higher throughput", words=("outperforms",)),
            Statement(
                "table 6", "1905.25 and 1906.22", ("1905.25", "1906.22"), "Throughput (events/sec)"
            ),
            Statement("table 5", "WRR, run 1", ("1910.16",), "WRR 1"),
            Statement("table 5", "WRR, run 2", ("1901.92",), "WRR 2"),
        ),
        "0.97 events a second, 0.05 %; the three runs of WRR alone are 8.24 apart.",
    ),
    Contradiction(
        5,
        "latency-of-one-run",
        "conclusion",
        (
            Statement(
                "section 6.4", "CFS has the longest latency, by its tree", ("1.52", "1.67", "2.01")
            ),
            Statement("table 5", "CFS, run 1", ("3.00",), "CFS 1"),
            Statement("table 5", "CFS, run 2", ("1.51",), "CFS 2"),
            Statement("table 5", "CFS, run 3", ("1.51",), "CFS 3"),
        ),
        "One run of three makes the mean. The others have 1.51 ms, less than the mean of WRR, 1.52.",
    ),
    Contradiction(
        5,
        "latency-against-complexity",
        "conclusion",
        (
            Statement(
                "section 6.4",
                "the order follows the algorithms' complexity",
                words=("algorithmic",),
            ),
            Statement("section 3.4.2", "the lottery is the slowest, O(n)", words=("O(n)",)),
            Statement("table 6", "CFS 2.01, lottery 1.67", ("2.01", "1.67"), "Max Latency (ms)"),
        ),
        "By complexity, O(1) < O(log n) < O(n), the lottery would have the longest latency. CFS has.",
    ),
    Contradiction(
        5,
        "lottery-in-constant-time",
        "method",
        (
            Statement(
                "section 1.2",
                "WRR and lottery shall pick in constant time",
                words=("WRR and Lottery", "O(1)"),
            ),
            Statement("section 3.4.2", "the lottery does not", words=("O(n)",)),
        ),
        "One of the two does not reach the aim; the conclusion claims it for WRR only.",
    ),
    Contradiction(
        5,
        "one-thread",
        "method",
        (
            Statement(
                "table 5", "1907.26 events a second of 0.52 ms", ("1907.26", "0.52"), "CFS 1"
            ),
            Statement("section 4.1", "it compares schedulers", words=("three", "policies")),
        ),
        "1907.26 × 0.52 ms = 0.99 s: one thread that always runs. A scheduler has next to nothing to"
        " decide then, and the three are within 1 % of each other.",
    ),
)

CONTRADICTIONS: tuple[Contradiction, ...] = _STUDY_1 + _STUDY_2 + _STUDY_3 + _STUDY_4 + _STUDY_5


def contradictions(study: int) -> list[Contradiction]:
    """Those of one study."""
    return [each for each in CONTRADICTIONS if each.study == study]


def concerning(study: int, place: str) -> list[Contradiction]:
    """Those that a reader of this table or section should know."""
    return [
        each
        for each in contradictions(study)
        if any(statement.place == place for statement in each.statements)
    ]

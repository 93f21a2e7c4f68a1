# SPDX-License-Identifier: MIT
"""What the studies' texts print: their tables, cell by cell, and the numbers of their sections.

Read here on its own, so that tests can compare: nothing comes from schedlab's data file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from schedlab.paths import ROOT

STUDIES = Path(os.environ.get("SCHEDLAB_STUDIES") or ROOT.parent / "shared" / "studies")
"""Where the studies' texts are, on machines that have them."""

Cells = dict[tuple[str, str, str], str]
"""What a table prints, by row, column and quantity."""


# The texts.


@cache
def study_text(number: int) -> str:
    """The text of a study; the test is skipped where it is not there."""
    paths = list(STUDIES.glob(f"{number}-*.txt"))
    if not paths:
        pytest.skip(f"{STUDIES} does not hold study {number}")
    return paths[0].read_text(encoding="utf-8")


@cache
def baselines() -> str:
    """What was measured with the studies' programs."""
    path = STUDIES.parent / "baselines.md"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path.read_text(encoding="utf-8")


@cache
def sections(study: int) -> dict[str, str]:
    """A study's text by the numbers of its sections, without the sections within them."""
    heading = re.compile(r"^(?:#+ )?(\d(?:\.\d+)*) [A-Z*/][^\n]*$", re.MULTILINE)
    text = study_text(study)
    found = list(heading.finditer(text))
    ends = [each.start() for each in found[1:]] + [len(text)]
    return {each[1]: text[each.start() : end] for each, end in zip(found, ends, strict=True)}


def section(study: int, number: str) -> str:
    return sections(study)[number]


def paragraphs(text: str) -> list[str]:
    """Lines between empty ones, as one line. The items of a list are paragraphs of their own.

    One that goes on in lower case is joined: there the page ended.
    """
    blocks = re.split(r"\n\s*\n(?![a-z])|\n(?=- |\d+\. |\| |• )", text)
    return [re.sub(r"\s+", " ", block) for block in blocks]


def numbers(text: str) -> set[str]:
    """As printed, except commas between thousands."""
    joined = re.sub(r"(?<=\d),(?=\d{3})", "", text)
    return set(re.findall(r"(?<![\d.])\d+(?:\.\d+)?", joined))


# The tables as they are printed.


def pipe_rows(text: str) -> list[list[str]]:
    """Cells of a table drawn with bars."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def table_of_times(table: int) -> Cells:
    """Study 1, tables 1 and 2: two numbers a cell."""
    text = study_text(1)
    start = text.rindex(f"\nTable {table}: ")
    end = min(
        place for mark in ("\n5.2 ", "\n\nFigure 1: ") if (place := text.find(mark, start)) > 0
    )
    rows = pipe_rows(text[start:end])
    (heading,) = (row for row in rows if row[0] == "Test")
    cells: Cells = {}
    for row, *values in rows:
        for column, value in zip(heading[1:], values, strict=True):
            pair = re.fullmatch(r"(\d+) [–-] (\d+)", value)
            if pair:
                cells[row, column, "completion"], cells[row, column, "context switches"] = (
                    pair.groups()
                )
    return cells


def table_of_shares(table: int) -> Cells:
    """Study 1, tables 3 to 8: what is expected stands in the title."""
    found = re.search(
        rf"^Table {table}: [^\n]*Expected: ([^)]*)\)$\n+((?:^\|.*$\n)+)",
        study_text(1),
        re.MULTILINE,
    )
    assert found, f"no table {table}"
    heading, _, *rows = pipe_rows(found[2])
    wishes = [wish.strip(" %") for wish in found[1].split(",")]
    cells = {(row, "expected", "share"): wish for (row, *_), wish in zip(rows, wishes, strict=True)}
    for row, *values in rows:
        for column, value in zip(heading[1:], values, strict=True):
            cells[row, column, "share"] = value
    return cells


def table_of_schedulers(table: int) -> Cells:
    """Study 3: the caption comes after the table, whose heading takes two lines."""
    before = study_text(3)[: study_text(3).index(f"\nTable {table}: ")]
    title, *_, first, second, third = pipe_rows(before[before.rindex("\n\n|") :])
    quantity = {
        "Turnaround Time (millions of cycles)": "mean turnaround",
        "Average Response Time (millions of cycles)": "mean response",
        "Throughput (processes / million cycles)": "throughput",
        "Overhead (% time in scheduler)": "overhead",
        "Fairness Index": "fairness",
    }[title[0]]
    return {
        (row, column, quantity): value.rstrip("%")
        for row, *values in (first, second, third)
        for column, value in zip(("CPU-bound", "IO-bound", "Mixed"), values, strict=True)
    }


def table_of_runs(table: int) -> Cells:
    """Study 5, table 5: a scheduler's name stands for its three runs."""
    body = study_text(5)[study_text(5).rindex(f"\nTable {table}: ") :]
    heading, *rows = (line.split("\t") for line in body.splitlines()[3:13])
    assert heading[:2] == ["Scheduler", "Test"]
    cells, scheduler = {}, ""
    for name, run, *values in rows:
        scheduler = name.removeprefix("3*") or scheduler
        for column, value in zip(heading[2:], values, strict=True):
            cells[f"{scheduler} {run}", column, BENCHMARK[column]] = value
    return cells


BENCHMARK = {
    "Events/sec": "throughput",
    "Throughput (events/sec)": "throughput",
    "Avg Latency (ms)": "mean latency",
    "Max Latency (ms)": "maximum latency",
}


def table_of_means(table: int) -> Cells:
    """Study 5, table 6."""
    body = study_text(5)[study_text(5).rindex(f"\nTable {table}: ") :]
    heading, *rows = (line.split("\t") for line in body.splitlines()[3:7])
    return {
        (row, column, BENCHMARK[row]): value
        for row, *values in rows
        for column, value in zip(heading[1:], values, strict=True)
    }


TABLES: dict[tuple[int, int], Callable[[int], Cells]] = {
    **{(1, table): table_of_times for table in (1, 2)},
    **{(1, table): table_of_shares for table in range(3, 9)},
    **{(3, table): table_of_schedulers for table in range(1, 6)},
    (5, 5): table_of_runs,
    (5, 6): table_of_means,
}


# What the texts say: where, and by which words the number is known.

MOST = {"most": "1", "worse": "3"}
SAID: tuple[tuple[int, str, str, str, str, dict[str, str]], ...] = (
    (1, "3.1", "priorities", "default", r"default priority is (\d+)", {}),
    (1, "3.1", "queues", "per CPU", r"with (\d+) priority queues", {}),
    (1, "3.1", "aging", "period", r"called every (\d+) ticks", {}),
    (1, "3.1", "PIDs above", "limit", r"PID > (\d+)", {}),
    (1, "3.1", "run time", "limit", r"over (\d+) ticks", {}),
    (1, "3.2", "decay", "period", r"Every (\d+) scheduling", {}),
    (1, "4.3", "statistics", "after", r"after a (\d+)-tick", {}),
    (2, "2", "tick", "length", r"1 tick = (\d+) ms", {}),
    (2, "5.1", "Mixed load", "first runs", r"runs showed (\d+) ticks", {}),
    (3, "4.1.1", "RR", "quantum", r"quantum of (\d+)ms", {}),
    (3, "4.1.2", "Lottery", "tickets", r"currently set to (\d+)", {}),
    (3, "4.1.3", "priority 3", "quantum", r"are \$(\d), \d, \d, \\infty", {}),
    (3, "4.1.3", "priority 2", "quantum", r"are \$\d, (\d), \d, \\infty", {}),
    (3, "4.1.3", "priority 0", "quantum", r"are \$\d, \d, \d, \\(infty)", {}),
    (3, "4.1.3", "priority 1", "quantum", r"are \$\d, \d, (\d), \\infty", {}),
    (3, "4.3.1", "CPU-bound", "processes", r"forked (\d+) times", {}),
    (3, "4.3.2", "IO-bound", "processes", r"forked (\d+) times", {}),
    (3, "4.3.3", "Mixed", "processes", r"forked (\d+) times", {}),
    (3, "5.3", "MLFQ over RR", "IO-bound", r"IO-bound \w+, being (\d+)% larger than the RR", {}),
    (3, "5.3", "MLFQ over Lottery", "IO-bound", r"IO-bound [^.]*and (\d+)% larger than the L", {}),
    (3, "5.3", "MLFQ over RR", "Mixed", r"mixed [^.]*being (\d+)% larger than the RR", {}),
    (3, "5.3", "MLFQ over Lottery", "Mixed", r"mixed [^.]*and (\d+)% larger than the L", {}),
    (3, "5.4", "RR over MLFQ", "Mixed", r"mixed [^.]*almost (\d) times less", {}),
    (3, "5.5", "Lottery", "any", r"around (\d+)% of the processes", {}),
    (3, "5.6", "MLFQ", "Mixed", r"MLFQ is the (\w+) predictable in terms of response", MOST),
    (3, "5.6", "Lottery", "Mixed", r"lottery \w+ a significantly (\w+) pred\w+ on the mixed", MOST),
    (4, "3.2.1", "tick", "length", r"timer tick\((\d+)ms\)", {}),
    *(
        (4, "3.2.1", f"priority {level}", what, rf"{title}\W.*?Priority {level} +\| (\d+)", {})
        for level in range(4)
        for what, title in (
            ("allotment", "Priority Time-Slice"),
            ("slice", "Round-Robin Time-Slice"),
        )
        if (level, what) != (0, "allotment")
    ),
    (4, "3.2.1", "boost", "period", r"for every (\d+) timer", {}),
    (4, "4", "CPU-bound", "iterations", r"iterations\((\d+),", {}),
    (4, "4", "interactive", "iterations", r"for loop of (\d+) iterations", {}),
    (4, "4", "interactive", "sleep", r"sleeps for (\d+) ticks", {}),
    (4, "4.1", "CPU-bound", "processes", r"started (\d+) CPU", {}),
    (4, "4.1", "RR", "turn", r"runs for (\d+) timer tick", {}),
    (4, "4.1", "boost", "first, before", r"before (\d+) ticks", {}),
    (4, "4.1", "boost", "second, after", r"after (\d+) ticks", {}),
    (4, "4.2", "interactive", "processes", r"iteration, (\d+) interactive", {}),
    (4, "4.2", "CPU-bound", "fewest", r"from (\d+) to \d+", {}),
    (4, "4.2", "CPU-bound", "most", r"from \d+ to (\d+)", {}),
    (4, "4.3", "CPU-bound", "processes", r"starts (\d+) CPU", {}),
    (4, "4.3", "sleeper", "asked", r"just sleeps for (\d+) ticks", {}),
    (4, "4.3", "sleeper", "RR", r"sleeps (\d+) ticks on round-robin", {}),
    (4, "4.3", "sleeper", "MLFQ", r"sleeps for exactly (\d+) ticks on MLFQ", {}),
    (5, "3.3.3", "slice", "per priority", r"my_priority \* (\d+)` ms", {}),
    (5, "3.3.3", "priority", "default", r"my_priority = (\d+)", {}),
    (5, "3.7", "priority", "lowest", r"Set priority \((\d+).\d+\)", {}),
    (5, "3.7", "priority", "highest", r"Set priority \(\d+.(\d+)\)", {}),
)
PLACES = {(3, "5.6"): "figure 4"}
"""Where a section tells of a figure."""


def said() -> dict[tuple[int, str, str, str], str]:
    """All numbers of the texts that we have, by study, place, row and column."""
    found: dict[tuple[int, str, str, str], str] = {}
    for study, number, row, column, pattern, meaning in SAID:
        text = re.sub(r"(?<=\d),(?=\d{3})", "", section(study, number))
        hits = set(re.findall(pattern, text, re.DOTALL))
        assert len(hits) == 1, f"study {study}, section {number}: {pattern} finds {hits}"
        place = PLACES.get((study, number), f"section {number}")
        text_found = hits.pop()
        found[study, place, row, column] = meaning.get(text_found, text_found)
    for number in ("3", "5"):
        for row, value in re.findall(r"Test \d: ([^:]+): Avg (\d+) ticks", section(2, number)):
            found[2, f"section {number}", row, "average"] = value
    return found


Measured = dict[tuple[int, str, str, str, str, str], str]
"""By study, place, row, column, quantity and source."""


@cache
def measured_by_others() -> Measured:
    """The authors' output and the reruns, from the baselines."""
    first, second = baselines().split("## Study 1's programs")[1].split("## Study 4's mixed")
    return rerun_of_study_1(first) | others_of_study_4(second.split("## Simulators")[0])


def rerun_of_study_1(text: str) -> Measured:
    """A table with the switches in brackets, and shares with bars between them."""
    found: Measured = {}
    columns = [(1, 1), (1, 2), (1, 5), (2, 1), (2, 2), (2, 5)]
    titles = {row.lower(): row for row, _, _ in table_of_times(1)}
    for name, *values in pipe_rows(text)[2:]:
        for (table, cpus), value in zip(columns, values, strict=True):
            place, row, column = f"table {table}", titles[name.lower()], cpu_column(cpus)
            time, _, switches = value.rstrip(")").partition(" (")
            found[1, place, row, column, "completion", "rerun"] = time
            if switches:
                found[1, place, row, column, "context switches", "rerun"] = switches
    for cpus, lists in re.findall(r"(\d) CPUs?: ([\d./]+(?: and [\d./]+)?)[.;]", text):
        for shares in (values.rstrip(".").split("/") for values in lists.split(" and ")):
            # Three processes are those of table 3, four groups those of table 4.
            groups = dict.fromkeys(row for row, _, _ in table_of_shares(len(shares)))
            for group, share in zip(groups, shares, strict=True):
                place, column = f"table {len(shares)}", cpu_column(int(cpus))
                found[1, place, group, column, "share", "rerun"] = share
    return found


def others_of_study_4(text: str) -> Measured:
    """A table of the authors, and a sentence on ours."""
    found: Measured = {}
    place, time = "section 4.2", "mean turnaround"
    for processes, *values in pipe_rows(text)[2:]:
        for who, value in zip(FINISHERS, values, strict=True):
            found[4, place, f"{processes} CPU-bound", who, time, "authors"] = value
    for policy, ours in zip(("RR", "MLFQ"), re.split("MLFQ:", text)[:2], strict=True):
        for one, other, processes in re.findall(r"([\d.]+)/([\d.]+) at (\d+)", ours):
            row = f"{processes} CPU-bound"
            found[4, place, row, f"{policy} interactive", time, "rerun"] = one
            found[4, place, row, f"{policy} CPU-bound", time, "rerun"] = other
    for policy, value in re.findall(r"(RR|MLFQ) (\d+)(?: ticks to finish|\.)", text):
        found[4, "section 4.3", "sleeper", policy, "turnaround", "rerun"] = value
    return found


FINISHERS = ("RR interactive", "RR CPU-bound", "MLFQ interactive", "MLFQ CPU-bound")


def cpu_column(cpus: int) -> str:
    return f"{cpus} CPU{'s' if cpus > 1 else ''}"

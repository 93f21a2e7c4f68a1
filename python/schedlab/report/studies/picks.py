# SPDX-License-Identifier: MIT
"""Where the context switches of study 1's tables 1 and 2 come from, on one CPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from schedlab.report.model import Cell, Column, Row, Table
from schedlab.report.studies.texts import cell
from schedlab.report.studies.timing_runs import PRIORITIES, ROUND_ROBIN, Suite, TimingRuns, figure
from schedlab.report.study_tables import NOTHING, Numbers
from schedlab.studies.experiments import TIMING_TESTS
from schedlab.studies.ideal import TIMING_TESTS as WORK

_IN_TURN = "switch"
"""The test in which the parent waits for each process before it starts the next."""


@dataclass(frozen=True)
class Account:
    """Why processes were picked: for what they did, and because a tick ended a turn."""

    test: str
    suite: Suite
    events: float
    ticks: float
    counted: float

    @property
    def foreseen(self) -> float:
        """If each event and each tick is one pick."""
        return self.events + self.ticks


def theirs(runs: TimingRuns, suite: Suite, test: str) -> Account | None:
    """By the study's figures. None in Mixed Load, whose ticks it does not tell.

    Events: each start; the parent, where it waits for each process; and for each tick of a sleep
    one, as xv6 wakes all that sleep at every tick.
    """
    row = TIMING_TESTS[test]
    ticks, counted = figure(suite, row, 1), figure(suite, row, 1, "context switches")
    processes = _mean(runs, runs.processes, suite, test)
    sleeps = _mean(runs, runs.wakeups, suite, test)
    if test == "mixed" or not ticks or not counted or processes is None or sleeps is None:
        return None
    table = int(suite.place.split()[1])
    (work,) = (each for each in WORK[table] if each.row == row)
    parent = processes if test == _IN_TURN else 0
    slept = sleeps * (work.sleeping or work.pause)
    return Account(test, suite, processes + parent + slept, ticks.value, counted.value)


def ours(runs: TimingRuns, suite: Suite, test: str) -> Account | None:
    """By the trace. None if the test was not run, or a run of it failed.

    Events: each start, each wake-up, each pick of the parent, and each priority that is set,
    after which the policy picks anew. Ticks of an idle CPU pick nobody.
    """
    numbers = [
        _mean(runs, each, suite, test)
        for each in (
            runs.processes,
            runs.wakeups,
            runs.parents_picks,
            runs.completion,
            runs.idle,
            runs.picks,
        )
    ]
    if any(each is None for each in numbers):
        return None
    processes, wakeups, parent, ticks, idle, counted = (each or 0.0 for each in numbers)
    set_by = processes if suite == PRIORITIES and test in _SETTING else 0
    return Account(test, suite, processes + wakeups + parent + set_by, ticks - idle, counted)


_SETTING = ("io-bound", "mixed", "starvation")
"""The tests of `prioritytest` in which each process sets a priority."""


def _mean(runs: TimingRuns, numbers: Numbers, suite: Suite, test: str) -> float | None:
    return runs.measured(numbers, suite, test, 1).mean


def accounts(runs: TimingRuns) -> list[tuple[Account | None, Account | None]]:
    """Theirs and ours, of each test under both policies."""
    return [
        (theirs(runs, suite, test), ours(runs, suite, test))
        for suite in (ROUND_ROBIN, PRIORITIES)
        for test in TIMING_TESTS
    ]


def picks_table(runs: TimingRuns) -> Table:
    """What is foreseen beside what was counted."""
    parts = ("starts, wakes, …", "ticks", "sum", "counted")
    columns = (
        Column("policy", align="left"),
        Column("test", align="left"),
        *(Column(part, group) for group in ("study", "here") for part in parts),
        Column("of them to another process", "here"),
    )
    rows, data = [], []
    for suite in (ROUND_ROBIN, PRIORITIES):
        for number, test in enumerate(TIMING_TESTS):
            pair = theirs(runs, suite, test), ours(runs, suite, test)
            first = Cell("" if number else suite.policy)
            others = runs.measured(runs.switches, suite, test, 1)
            rows.append(
                (
                    first,
                    Cell(TIMING_TESTS[test]),
                    *_cells(pair[0], 0),
                    *_cells(pair[1], 1),
                    cell(others, 0),
                )
            )
            data += list(_records(suite, test, pair))
    return Table(
        "study-1-picks",
        "Context switches on one CPU, accounted for",
        columns,
        tuple(rows),
        pl.DataFrame(data, infer_schema_length=None),
        "A context switch is a pick, as the study's kernel counts it. Starts, wakes: how often a"
        " process was started or woken, where the parent waits for each also that one, and here each"
        " priority that was set. Ticks: those at which a process was running. Mixed Load has no sum"
        " there, as the study does not tell when all had ended.",
        (len(TIMING_TESTS),),
    )


def _cells(account: Account | None, decimals: int) -> Row:
    if account is None:
        return (Cell(NOTHING, "muted"),) * 4
    return (
        Cell(f"{account.events:.0f}", "muted"),
        Cell(f"{account.ticks:.{decimals}f}", "muted"),
        Cell(f"{account.foreseen:.0f}"),
        Cell(f"{account.counted:.0f}"),
    )


def _records(
    suite: Suite, test: str, pair: tuple[Account | None, Account | None]
) -> Iterator[dict[str, str | float | None]]:
    for whose, account in zip(("study", "here"), pair, strict=True):
        yield {
            "policy": suite.policy,
            "test": TIMING_TESTS[test],
            "whose": whose,
            "events": account.events if account else None,
            "ticks": account.ticks if account else None,
            "foreseen": account.foreseen if account else None,
            "counted": account.counted if account else None,
        }

# SPDX-License-Identifier: MIT
"""What is to be seen in each of study 1's tables 3 to 8, from the runs."""

from __future__ import annotations

from schedlab.report.studies.lottery_reasons import LotteryReasons
from schedlab.report.studies.lottery_runs import (
    SHIPPED,
    THESIS,
    LotteryRuns,
    competition,
    original,
    share_figure,
)
from schedlab.report.study_tables import measure
from schedlab.report.wording import cpus, listed
from schedlab.studies.experiments import ALL_CPUS
from schedlab.studies.ideal import LOTTERY_GROUPS, unmeetable
from schedlab.studies.shares import LotteryTest


def finding(runs: LotteryRuns, test: LotteryTest) -> str:
    """A list of sentences, in Markdown."""
    special = {6: _lack_of_work, 8: _the_program}
    parts = [
        _cannot_be_met(test),
        special.get(test.table, _on_one_cpu)(runs, test),
        _idle(runs, test),
        _shipped(runs, test),
    ]
    return "\n".join(f"- {part}" for part in parts if part)


def _cannot_be_met(test: LotteryTest) -> str:
    """On how many CPUs expectations are off the ideal, and of whom."""
    off = {count: unmeetable(test.table, count) for count in ALL_CPUS}
    counts = [count for count, rows in off.items() if rows]
    if not counts:
        return "What the study expects can be met here, on each number of CPUs."
    rows = list(dict.fromkeys(row for found in off.values() for row in found))
    return (
        f"On {cpus(counts)}, no scheduler can meet what the study expects of {listed(rows)}: no process"
        " gets more than one CPU, or more than it asks for, and the others share what it leaves."
    )


def _on_one_cpu(runs: LotteryRuns, test: LotteryTest) -> str:
    """How far both are off the tickets where one queue holds all."""
    told = []
    for group, row in test.rows.items():
        ours, theirs = runs.picked(test, group, 1).mean, share_figure(test, row, 1)
        if ours is None or theirs is None:
            return _unknown(runs, test)
        told.append(f"{ours:.1f} ({theirs.text})")
    return (
        "On one CPU the study's program is picked here, and in brackets there, for"
        f" {listed(told)} %; from two CPUs on it depends on who was forked to which CPU."
    )


def _unknown(runs: LotteryRuns, test: LotteryTest) -> str:
    """Of the study's program on one CPU: why there is nothing to say."""
    group = next(iter(test.rows))
    return f"The study's program on one CPU: {runs.picked(test, group, 1).missing}."


def _lack_of_work(runs: LotteryRuns, test: LotteryTest) -> str:
    """Of table 6."""
    why = LotteryReasons(runs, test).ended(1)
    shares = [runs.share(test, group, THESIS, 1).mean for group in test.rows]
    if not why:
        return _unknown(runs, test)
    text = f"**The table measures a lack of work.** {why}"
    if all(each is not None for each in shares):
        text += (
            " While all compete, the same lottery gives "
            + " : ".join(f"{each:.1f}" for each in shares if each is not None)
            + " % on one CPU."
        )
    return text


def _the_program(runs: LotteryRuns, test: LotteryTest) -> str:
    """Of table 8."""
    setup = runs.setup(original(test), THESIS, 1)
    idle = measure(setup, runs.idle).mean
    picks = {
        group: runs.count(original(test), THESIS, group, "selections", 1).mean
        for group in test.rows
    }
    if idle is None or any(each is None for each in picks.values()):
        return _unknown(runs, test)
    members = {
        group: runs.count(original(test), THESIS, group, "processes", 1).mean or 1
        for group in test.rows
    }
    each = {group: (picks[group] or 0) / members[group] for group in test.rows}
    return (
        "**The table is the program, not the scheduler.** Of its processes, those that compute end"
        f" after {each['CPU']:.0f} picks each, those that sleep from tick to tick are picked"
        f" {each['I/O']:.0f} and {each['mixed']:.0f} times each in the window, the short-lived"
        f" {each['short']:.0f} times; the one CPU is idle for {idle:.0f} % of it. Where hardly"
        " anybody has to wait, tickets decide next to nothing."
    )


def _idle(runs: LotteryRuns, test: LotteryTest) -> str:
    """Where the study's lottery leaves CPUs without work while all want to compute."""
    if test.table == 8:
        return ""
    processes = sum(each.processes for each in LOTTERY_GROUPS[test.table])
    found = [
        (count, idle, least)
        for count in ALL_CPUS
        if (idle := measure(runs.setup(competition(test), THESIS, count), runs.idle).mean)
        and idle > 10 + (least := 100 * max(0.0, 1 - processes / count))
    ]
    if not found:
        return ""
    count, idle, least = found[-1]
    at_least = f" ({least:.0f} % are more than the processes can use)" if least else ""
    return (
        f"`{THESIS}` leaves {idle:.0f} % of the time of {cpus([count])} idle{at_least}: when"
        " the processes were forked, all before them were waiting for the start, so that every queue"
        " was empty, and nothing moves them later."
    )


def _shipped(runs: LotteryRuns, test: LotteryTest) -> str:
    """How far ours is off the ideal, at worst."""
    found = [
        (off, count)
        for count in ALL_CPUS
        if (off := runs.off_ideal(test, SHIPPED, count).mean) is not None
    ]
    if not found:
        return ""
    worst, count = max(found)
    text = f"`{SHIPPED}` is {worst:.1f} points off the ideal at worst, on {cpus([count])}"
    chance = runs.by_chance(test, SHIPPED, count)
    if chance is None:
        return text + "."
    return text + f", where independent draws, a tick each, would be {chance:.1f} points off."

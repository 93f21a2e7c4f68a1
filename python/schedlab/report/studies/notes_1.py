# SPDX-License-Identifier: MIT
"""Footnotes of study 1's tables, and texts that its page shares with them. Each is one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from schedlab.base.display.numbers import counted
from schedlab.report.studies.lottery import THESIS
from schedlab.report.studies.page_writer import known, line
from schedlab.report.studies.study_1 import Queries
from schedlab.report.wording import cpus, listed

# --- tables 1 and 2: a suite, a test, a number of CPUs


def about_time(q: Queries, why: str, suite: str, test: str, count: int) -> str:
    """Returns the footnote of a deviating time, by the reason that the queries found."""
    make = TIMES.get(why)
    return make(q, suite, test, count) if make else ""


def _not_the_same_work(q: Queries, suite: str, test: str, count: int) -> str:
    takes = known(
        lambda: (
            f"""it takes {q.without_bursts(count):.1f} ticks, and {q.without_bursts(count, True):.1f} with study costs
            (published: {q.printed(suite, test, count)})."""
        )
    )
    return line(f"""The work differs: the loop of the bursts has no effect, and the study's compiler deletes it.
    Without bursts {takes}""")


def _parent_starves(q: Queries, suite: str, test: str, count: int) -> str:
    by_ticks = known(
        lambda: (
            f"""If tasks age by ticks instead of passes, it takes
            {q.in_a_row(test, count, "complete", q.agings[1], True):.1f} ticks."""
        )
    )
    return line(f"""If the tests run in a row, the process that starts the others has risen to level 0, and level 5
    runs first. So it waits for its children on its CPU and starts the next ones late. {by_ticks} The rest of the
    difference is not explained.""")


def constant(q: Queries, suite: str, test: str = "", count: int = 0) -> str:
    """Returns why Mixed Load reports a constant."""
    all_ended = known(
        lambda: f"On one CPU all have ended after {q.completion(suite, 'mixed', 1):.1f} ticks."
    )
    return line(f"""The study's programs always return the number 50 as the time of this test. According to the text
    it is the shortest time of a process. schedlab's programs report that shortest time; it is a sleeper's, and
    independent of the processes that compute. {all_ended}""")


def sleepers_wait_first(q: Queries, suite: str, test: str = "", count: int = 0) -> str:
    """Returns how long sleepers wait before they start to sleep."""
    waits = [f"{e.ticks:.0f} ticks on {cpus([e.count])}" for e in q.waits_of_sleepers(suite)]
    return line(f"""The processes that will sleep first set the lowest priority for themselves. Then they wait for all
    processes of higher priority on their CPU, at most {listed(waits)}, before they begin to sleep.""")


def stays(q: Queries, suite: str, test: str, count: int = 0) -> str:
    """Returns how far the busiest CPU's work exceeds its share."""
    busiest = [
        f"{stay.busiest:.1f} on {stay.count} CPUs ({stay.ideal:.1f})"
        for stay in q.staying(suite, test)
    ]
    return line(f"""No process changes its CPU after its fork, and the busiest CPU has more than its share of work:
    {listed(busiest)}, in ticks, with the ideal in brackets.""")


TIMES: Mapping[str, Callable[[Queries, str, str, int], str]] = {
    "not_the_same_work": _not_the_same_work,
    "parent_starves": _parent_starves,
    "constant": constant,
    "sleepers_wait_first": sleepers_wait_first,
    "stays": stays,
}

# --- tables 3 to 8: a test, a group, a number of CPUs


def about_share(q: Queries, why: str, test: str, group: str, count: int) -> str:
    """Returns the footnote of a share that differs from the published one, by the
    reason that the queries found.
    """
    make = SHARES.get(why)
    return make(q, test, group, count) if make else ""


def not_to_be_met(q: Queries, test: str, group: str) -> str:
    """Returns why no scheduler can meet the study's expectation, or "" if one can."""
    off = q.ideals_off_expected(test, group)
    if not off:
        return ""
    if not q.all_compute(test):
        return line("""No scheduler can meet this expectation: a process that sleeps or ends uses less than its
        tickets allow, and the others use the rest.""")
    places = [f"on {cpus(row.counts)} (ideal {row.ideal:.1f} %)" for row in off]
    return f"No scheduler can meet this expectation {listed(places)}."


def _chance(q: Queries, test: str, group: str, count: int) -> str:
    chance = q.chance_of_share(test, group)
    if chance is None:
        return ""
    return line(f"""Chance explains the difference: with {chance.draws:.0f} draws per run, the mean of
    {counted(chance.runs, "run")} can differ by {chance.points:.1f} points.""")


def _laid_out(q: Queries, test: str, group: str, count: int) -> str:
    def layouts() -> str:
        picked_layout = " : ".join(f"{q.picked(test, group, count):.1f}" for group in "ABC")
        if_counted = " : ".join(f"{q.picked_if_counted(group, count):.1f}" for group in "ABC")
        return f"""A fork places the new process on the CPU with the fewest waiting tickets; a running process does
        not count. In the measured runs, B runs when C is placed. So C shares B's CPU, and A : B : C are picked for
        {picked_layout} %. If B counted, as it does while it waits between two bursts, they would be picked for
        {if_counted} % (the same program with `placement` 0). {_published_layouts(q, test, count)}"""

    return line(known(layouts))


def _published_layouts(q: Queries, test: str, count: int) -> str:
    if q.printed_as_counted(count):
        return f"""The published A and C agree with this. B's {q.share_printed(test, "B", count)} % cannot be right,
        because the column adds up to {q.printed_sum(test, count):.1f} %."""
    if q.printed_between_layouts(count):
        return (
            "The published shares of A and C, means of five runs, lie between the two. The study does"
            " not say how many runs had each placement."
        )
    return "The published shares of A and C do not lie between the two; this is not explained."


def _work_had_ended(q: Queries, test: str, group: str, count: int) -> str:
    ended = "; ".join(
        f"{e.finished:.3g} of {e.of:.0f} of {e.group} (picked {e.picks_per_task:.0f} times each)"
        for e in q.ended(test, count)
    )
    return line(f"""The program's processes end after a fixed number of yields. On {cpus([count])}, these had ended
    before the end of the window: {ended}. After that, only the others are counted. The CPU's speed decides how many
    end in time.""")


SHARES: Mapping[str, Callable[[Queries, str, str, int], str]] = {
    "chance": _chance,
    "laid_out": _laid_out,
    "work_had_ended": _work_had_ended,
}

# --- findings in tables 3 to 8


def about_table(q: Queries, test: str) -> str:
    """Returns the findings of a table in a sentence or two."""
    if test == "mixed":
        return line(known(lambda: _the_program(q, test)))
    if test == "starve" and q.ended(test, 1):
        shares = known(
            lambda: (
                f"""While all processes compete, the same lottery gives
            {" : ".join(f"{q.share(test, group, THESIS, 1):.1f}" for group in q.lotteries[test].rows)} % on one
            CPU."""
            )
        )
        return f"**The table measures a lack of work.** {_work_had_ended(q, test, '', 1)} {line(shares)}"
    return line(known(lambda: _on_one_cpu(q, test)))


def _on_one_cpu(q: Queries, test: str) -> str:
    picked = [
        f"{q.picked(test, group, 1):.1f} ({q.share_printed(test, group, 1)})"
        for group in q.lotteries[test].rows
    ]
    return f"""On one CPU, the processes are picked for {listed(picked)} % (published shares in brackets). On two or
    more CPUs, the shares depend on which processes were forked to which CPU."""


def _the_program(q: Queries, test: str) -> str:
    computing, sleeping, mixed, short = (
        q.picks_per_task(test, group, 1) for group in ("CPU", "I/O", "mixed", "short")
    )
    return f"""**The table shows the program, not the scheduler.** In the window, processes that compute end after
    {computing:.0f} picks each. Processes that sleep from tick to tick are picked {sleeping:.0f} and {mixed:.0f} times
    each, the short-lived ones {short:.0f} times. The only CPU is idle for {q.idle(q.original(test), 1):.0f} % of the
    window. If hardly any process has to wait, tickets decide hardly anything."""

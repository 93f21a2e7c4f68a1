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
            f"""it takes {q.without_bursts(count):.1f} ticks here, and with forks as slow as theirs
        {q.without_bursts(count, True):.1f} (theirs: {q.printed(suite, test, count)})."""
        )
    )
    return line(f"""Not the same work: the loop of the bursts has no effect, and their compiler deletes it. Without
    bursts {takes}""")


def _parent_starves(q: Queries, suite: str, test: str, count: int) -> str:
    by_ticks = known(
        lambda: (
            f"""Where tasks age by ticks instead of passes, it takes
        {q.in_a_row(test, count, "complete", q.agings[1], True):.1f} ticks."""
        )
    )
    return line(f"""In a row, the process that starts the others has risen to level 0, and level 5 runs first. So on
    its CPU it waits for its children and starts the next ones late. {by_ticks} The rest of the difference is not
    explained.""")


def constant(q: Queries, suite: str, test: str = "", count: int = 0) -> str:
    """Returns why Mixed Load reports a constant."""
    all_ended = known(
        lambda: f"On one CPU all have ended after {q.completion(suite, 'mixed', 1):.1f} ticks."
    )
    return line(f"""The study's programs return the number 50 as the time of this test, whatever happened; according to
    the text it is the shortest time of a process. Ours report that shortest time, which is a sleeper's and says
    nothing about the processes that compute. {all_ended}""")


def sleepers_wait_first(q: Queries, suite: str, test: str = "", count: int = 0) -> str:
    """Returns how long sleepers wait before they start to sleep."""
    waits = [f"{e.ticks:.0f} ticks on {cpus([e.count])}" for e in q.waits_of_sleepers(suite)]
    return line(f"""The processes that are to sleep set the lowest priority for themselves first. Then they wait for
    all of higher priority on their CPU, the longest for {listed(waits)}, and only then begin to sleep.""")


def stays(q: Queries, suite: str, test: str, count: int = 0) -> str:
    """Returns how far the busiest CPU's work exceeds its share."""
    busiest = [
        f"{stay.busiest:.1f} on {stay.count} CPUs ({stay.ideal:.1f})"
        for stay in q.staying(suite, test)
    ]
    return line(f"""Here no process changes its CPU after its fork, and the busiest CPU has more than its share of
    work: {listed(busiest)}, in ticks, with the ideal in brackets.""")


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
        return line("""No scheduler can meet that: a process that sleeps or ends asks for less than its tickets say, and
        leaves it to the others.""")
    places = [f"on {cpus(row.counts)} (ideal {row.ideal:.1f} %)" for row in off]
    return f"No scheduler can meet that {listed(places)}."


def _chance(q: Queries, test: str, group: str, count: int) -> str:
    chance = q.chance_of_share(test, group)
    if chance is None:
        return ""
    return line(f"""No more than chance allows: with {chance.draws:.0f} draws a run, the mean of
    {counted(chance.runs, "run")} may come out {chance.points:.1f} points off.""")


def _laid_out(q: Queries, test: str, group: str, count: int) -> str:
    def layouts() -> str:
        picked_layout = " : ".join(f"{q.picked(test, group, count):.1f}" for group in "ABC")
        if_counted = " : ".join(f"{q.picked_if_counted(group, count):.1f}" for group in "ABC")
        return f"""Which processes share a CPU is settled at the forks, by the tickets that wait: one that runs does
        not count. Here B runs when C is placed. So C is put beside it, and A : B : C are picked for
        {picked_layout} %. If B
        counts, as it does while it waits between two bursts, they are picked for {if_counted} % (the same program with
        `placement` 0). {_published_layouts(q, test, count)}"""

    return line(known(layouts))


def _published_layouts(q: Queries, test: str, count: int) -> str:
    if q.printed_as_counted(count):
        return f"""So were A and C there. B's {q.share_printed(test, "B", count)} % cannot be right: the column adds up
        to {q.printed_sum(test, count):.1f} %."""
    if q.printed_between_layouts(count):
        return "Theirs of A and C, means of five runs, lie between the two. How many were which is not known."
    return "Theirs of A and C do not lie between the two, which is not explained."


def _work_had_ended(q: Queries, test: str, group: str, count: int) -> str:
    ended = "; ".join(
        f"{e.finished:.3g} of {e.of:.0f} of {e.group} (picked {e.picks_per_task:.0f} times each)"
        for e in q.ended(test, count)
    )
    return line(f"""The program's processes end after a set number of yields. Here, on {cpus([count])}, these had ended
    when the window did: {ended}. From then on only the others are counted. The CPU's speed decides how many end in
    time.""")


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
                f"""While all compete, the same lottery gives
            {" : ".join(f"{q.share(test, group, THESIS, 1):.1f}" for group in q.lotteries[test].rows)} % on one CPU."""
            )
        )
        return f"**The table measures a lack of work.** {_work_had_ended(q, test, '', 1)} {line(shares)}"
    return line(known(lambda: _on_one_cpu(q, test)))


def _on_one_cpu(q: Queries, test: str) -> str:
    picked = [
        f"{q.picked(test, group, 1):.1f} ({q.share_printed(test, group, 1)})"
        for group in q.lotteries[test].rows
    ]
    return f"""On one CPU the study's program is picked here, and in brackets there, for {listed(picked)} %; from two
    CPUs on it depends on which processes were forked to which CPU."""


def _the_program(q: Queries, test: str) -> str:
    computing, sleeping, mixed, short = (
        q.picks_per_task(test, group, 1) for group in ("CPU", "I/O", "mixed", "short")
    )
    return f"""**The table is the program, not the scheduler.** Of its processes, those that compute end after
    {computing:.0f} picks each, those that sleep from tick to tick are picked {sleeping:.0f} and {mixed:.0f} times each
    in the window, the short-lived {short:.0f} times; the one CPU is idle for {q.idle(q.original(test), 1):.0f} % of
    it. Where hardly any process has to wait, tickets decide next to nothing."""

# SPDX-License-Identifier: MIT
"""Footnotes of study 1's tables, and texts that its page shares with them. Each is one line."""

from collections.abc import Callable, Mapping
from functools import partial

from schedlab.base.display.numbers import format_count
from schedlab.report.studies.page_writer import line, text_if_measured
from schedlab.report.studies.study_1 import Queries
from schedlab.report.wording import cpus_text, listed
from schedlab.studies.agreement import NEAR_POINTS

# --- tables 1 and 2: a suite, a test, a number of CPUs


def time_footnote(q: Queries, why: str, suite: str, test: str, count: int) -> str:
    """Returns the footnote of a deviating time, by the reason that the queries found."""
    write_footnote = TIME_FOOTNOTES.get(why)
    return write_footnote(q, suite, test, count) if write_footnote else ""


def _different_work_footnote(q: Queries, suite: str, test: str, count: int) -> str:
    """Explains that the study's compiler deletes the bursts, and gives the times without them."""
    takes = text_if_measured(
        lambda: (
            f"""it takes {q.without_bursts(count):.1f} ticks, and {q.without_bursts(count, True):.1f} with study costs
            (published: {q.printed(suite, test, count)})."""
        )
    )
    return line(f"""The work differs: the loop of the bursts has no effect, and the study's compiler deletes it.
    Without bursts {takes}""")


def _starving_parent_footnote(q: Queries, suite: str, test: str, count: int) -> str:
    """Explains that the parent of the tasks starves, and how long."""
    by_ticks = text_if_measured(
        lambda: (
            f"""If tasks age by ticks instead of passes, it takes
            {q.in_sequence(test, count, "complete", q.agings[1], True):.1f} ticks."""
        )
    )
    return line(f"""If the tests run in a row, the process that starts the others has risen to level 0, and level 5
    runs first. So it waits for its children on its CPU and starts the next ones late. {by_ticks} The rest of the
    difference is not explained.""")


def constant_footnote(q: Queries, suite: str, test: str = "", count: int = 0) -> str:
    """Returns why Mixed Load reports a constant."""
    all_ended = text_if_measured(
        lambda: f"On one CPU all have ended after {q.completion(suite, 'mixed', 1):.1f} ticks."
    )
    return line(f"""The study's programs always return the number 50 as the time of this test. According to the text
    it is the shortest time of a process. schedlab's programs report the shortest time of 50 ticks or more, which is
    usually a sleeper's. {_shorter_computing(q, suite)} {all_ended}""")


def _shorter_computing(q: Queries, suite: str) -> str:
    """Returns where a computing process ends before all sleepers, and after how many ticks; "" if nowhere."""
    shorter = [
        f"{time.ticks:.1f} on {cpus_text([time.count])}" for time in q.shorter_than_sleep(suite)
    ]
    if not shorter:
        return ""
    return (
        f"The shortest time of all is that of a process that computes, in ticks: {listed(shorter)}."
    )


def sleepers_footnote(q: Queries, suite: str, test: str = "", count: int = 0) -> str:
    """Returns how long sleepers wait on one CPU before they start to sleep."""
    equal = text_if_measured(
        lambda: (
            f"With equal priorities, all have ended after {q.equal_mixed():.1f} ticks on one CPU."
        )
    )
    waits = [f"{wait.ticks:.0f} ticks" for wait in q.waits_of_sleepers(suite) if wait.count == 1]
    return line(f"""The processes that will sleep first set the lowest priority for themselves. Then they wait for all
    processes of higher priority, on one CPU at most {listed(waits)}, before they begin to sleep. {equal}""")


def delayed_sleeper_footnote(q: Queries, suite: str, test: str = "", count: int = 0) -> str:
    """Returns how long a sleeper waits for its CPU where others are free."""
    waits = [
        f"{wait.ticks:.0f} ticks on {cpus_text([wait.count])}"
        for wait in q.waits_of_sleepers(suite)
        if wait.count > 1
    ]
    return line(f"""A sleeper begins to sleep late: it waits for processes that compute on its CPU, at most
    {listed(waits)}, and no process changes its CPU after its fork. {_balanced_text(q, "mixed")}""")


def imbalance_footnote(q: Queries, suite: str, test: str, count: int = 0) -> str:
    """Returns how far the busiest CPU's work exceeds its share."""
    busiest = [
        f"{stay.busiest:.1f} on {stay.count} CPUs ({stay.ideal:.1f})"
        for stay in q.imbalances(suite, test)
    ]
    return line(f"""No process changes its CPU after its fork, and the busiest CPU has more than its share of work:
    {listed(busiest)}, in ticks, with the ideal in brackets. {_balanced_text(q, test)}""")


def _balanced_text(q: Queries, test: str) -> str:
    """Returns the times of a test with and without balancing."""
    times = [
        f"{time.balanced:.1f} instead of {time.stays:.1f} ticks on {time.count}"
        for time in q.balanced_times(test)
    ]
    return f"With `balancing` 1, the test takes {listed(times)} CPUs."


TIME_FOOTNOTES: Mapping[str, Callable[[Queries, str, str, int], str]] = {
    "not_the_same_work": _different_work_footnote,
    "parent_starves": _starving_parent_footnote,
    "constant": constant_footnote,
    "sleepers_wait_first": sleepers_footnote,
    "sleeper_stays": delayed_sleeper_footnote,
    "stays": imbalance_footnote,
}

# --- tables 3 to 8: a test, a group, a number of CPUs


def share_footnote(q: Queries, why: str, test: str, group: str, count: int) -> str:
    """Returns the footnote of a share that differs from the published one, by the
    reason that the queries found.
    """
    write_footnote = SHARE_FOOTNOTES.get(why)
    return write_footnote(q, test, group, count) if write_footnote else ""


def unattainable_share_text(q: Queries, test: str, group: str) -> str:
    """Returns why no scheduler can meet the study's expectation, or "" if one can."""
    unmeetable_ideals = q.ideals_off_expected(test, group)
    if not unmeetable_ideals:
        return ""
    if not q.all_compute(test):
        return line("""No scheduler can meet this expectation: a process that sleeps or ends uses less than its
        tickets allow, and the others use the rest.""")
    places = [f"on {cpus_text(row.counts)} (ideal {row.ideal:.1f} %)" for row in unmeetable_ideals]
    return f"No scheduler can meet this expectation {listed(places)}."


def _chance_footnote(q: Queries, test: str, group: str, count: int) -> str:
    """Explains that chance permits this difference."""
    chance = q.chance_of_share(test, group)
    if chance is None:
        return ""
    return line(f"""Chance explains the difference: with {chance.draws:.0f} draws per run, the mean of
    {format_count(chance.runs, "run")} can differ by {chance.points:.1f} points.""")


def _layout_footnote(q: Queries, test: str, group: str, count: int) -> str:
    """Explains that the share depends on how selections are counted."""

    def layouts() -> str:
        picked_layout = " : ".join(f"{q.picked(test, group, count):.1f}" for group in "ABC")
        if_counted = " : ".join(f"{q.picked_if_counted(group, count):.1f}" for group in "ABC")
        return f"""A fork places the new process on the CPU with the fewest waiting tickets; a running process does
        not count. In the measured runs, B runs when C is placed. So C shares B's CPU, and A : B : C are picked for
        {picked_layout} %. If B counted, as it does while it waits between two bursts, they would be picked for
        {if_counted} % (the same program with `placement` 0). {_published_layouts_text(q, test, count)}"""

    return line(text_if_measured(layouts))


def _published_layouts_text(q: Queries, test: str, count: int) -> str:
    """Explains which way of counting the published shares follow."""
    if q.printed_as_counted(count):
        return f"""The published A and C agree with this. The column adds up to {q.printed_sum(test, count):.1f} %, so
        B's {q.share_printed(test, "B", count)} % is most likely the wrong one."""
    if q.printed_between_layouts(count):
        return (
            "The published shares of A and C, means of five runs, lie between the two. The study does"
            " not say how many runs had each placement."
        )
    return "The published shares of A and C do not lie between the two; this is not explained."


def _ended_work_footnote(q: Queries, test: str, group: str, count: int) -> str:
    """Explains that tasks finished before the window ended."""
    ended = "; ".join(
        f"{e.finished:.3g} of {e.of:.0f} of {e.group} (picked {e.picks_per_task:.0f} times each)"
        for e in q.ended(test, count)
    )
    return line(f"""The program's processes end after a fixed number of yields. On {cpus_text([count])}, these had ended
    before the end of the window: {ended}. After that, only the others are counted. How many end in time depends on the
    length of a burst, which is calibrated with this table for each number of CPUs.
    {text_if_measured(partial(_endless_work_text, q, test, count))}""")


def _endless_work_text(q: Queries, test: str, count: int) -> str:
    """Returns the shares with and without endless work."""
    groups = q.lotteries[test].rows
    endless = " : ".join(f"{q.picked_if_none_ended(group, count):.1f}" for group in groups)
    picked = " : ".join(f"{q.picked(test, group, count):.1f}" for group in groups)
    return f"With endless work, the groups are picked for {endless} % instead of {picked} %."


SHARE_FOOTNOTES: Mapping[str, Callable[[Queries, str, str, int], str]] = {
    "chance": _chance_footnote,
    "laid_out": _layout_footnote,
    "work_had_ended": _ended_work_footnote,
}

# --- findings in tables 3 to 8


def table_findings(q: Queries, test: str) -> str:
    """Returns the findings of a table in a sentence or two."""
    if test == "mixed":
        return line(text_if_measured(lambda: _program_text(q, test)))
    if test == "starve" and (lacking := q.lacking_work()):
        return _lack_of_work_text(q, test, lacking)
    return line(text_if_measured(lambda: _one_cpu_text(q, test)))


def _lack_of_work_text(q: Queries, test: str, lacking: list[int]) -> str:
    """Returns on which CPUs the processes of a test end too early, and how it shows."""
    others = [count for count in q.counts if count not in lacking]
    placed = f"""On {cpus_text(others)}, with the longer bursts that are calibrated there, endless work changes no share
    by more than {NEAR_POINTS:g} points: the shares depend on which processes were forked to which CPU."""
    return line(f"""**On {cpus_text(lacking)}, the table measures a lack of work.**
    {_ended_work_footnote(q, test, "", lacking[0])} {placed if others else ""}""")


def _one_cpu_text(q: Queries, test: str) -> str:
    picked = [
        f"{q.picked(test, group, 1):.1f} ({q.share_printed(test, group, 1)})"
        for group in q.lotteries[test].rows
    ]
    return f"""On one CPU, the processes are picked for {listed(picked)} % (published shares in brackets). On two or
    more CPUs, the shares depend on which processes were forked to which CPU."""


def _program_text(q: Queries, test: str) -> str:
    computing, sleeping, mixed, short = (
        q.picks_per_task(test, group, 1) for group in ("CPU", "I/O", "mixed", "short")
    )
    return f"""**The table shows the program, not the scheduler.** In the window, processes that compute end after
    {computing:.0f} picks each. Processes that sleep from tick to tick are picked {sleeping:.0f} and {mixed:.0f} times
    each, the short-lived ones {short:.0f} times. The only CPU is idle for {q.idle(q.original(test), 1):.0f} % of the
    window. If hardly any process has to wait, tickets decide hardly anything."""

# SPDX-License-Identifier: MIT
"""The page of study 2: two lists of seven tests, before and after priorities."""

from __future__ import annotations

from functools import partial

from schedlab.base.display.numbers import counted
from schedlab.report.model import Page
from schedlab.report.studies.page_writer import Writer, value_of
from schedlab.report.studies.study_2 import Queries
from schedlab.report.study_tables import GAVE_A_CONSTANT, Comparison
from schedlab.report.wording import listed
from schedlab.studies.causes import cause_of

_CONSTANT = "A constant: the shortest time of a process that sleeps, under any scheduler."


def make(q: Queries) -> Page:
    """Returns the page."""
    page = Writer(q.study, "Study 2: first notes on priorities in xv6")
    rows = q.rows
    page.lead(f"""Its two lists do not compare two schedulers, because
    {listed([rows["switch"], rows["mixed"], rows["creation"]])} did different work in the second list""")
    page.lead(".")
    page.lead(q.failures())
    _in_short(page, q)
    _before_and_after(page, q)
    page.section("Contradictions")
    page.other_doubts()
    return page.page(q.trials)


def _in_short(page: Writer, q: Queries) -> None:
    page.section("In short")
    page.text(f"""
    **Claimed.** Priorities make xv6 faster: {q.fewer_ticks_after()} of {len(q.tests)} tests take fewer ticks than under
    round-robin.""")
    if changes := q.changes():
        least, most = changes[0], changes[-1]
        page.text(f"""
        **Measured.** In the {counted(len(changes), "test")} whose work stayed the same, priorities change
        the time by {least.percent} % ({least.row}) to {most.percent} % ({most.row}).""")
    else:
        page.text("**Measured.** The runs do not show which of the two is faster.")
    page.text("""
    **Teaches.** A comparison of two schedulers needs the same work under both. If the test changes, the
    comparison is between two tests.""")
    page.dotted(
        "study-2-in-short",
        "Both lists, published and measured with study costs",
        "ticks",
        {
            f"{q.rows[test]}, {when}": (
                q.reported_time(when, test, q.cpus, False, True),
                value_of(q.printed(when, test)),
            )
            for test in q.tests
            for when in q.lists
        },
        caption=f"Ticks on {q.cpus} CPUs. {q.how(q.all_experiments())}",
    )


def _before_and_after(page: Writer, q: Queries) -> None:
    page.section("Before and after")
    page.compared(
        "study-2-lists",
        "The two lists",
        ["test", "CPUs"],
        {(q.rows[test], count): (test, count) for test in q.tests for count in q.counts()},
        {title: partial(_comparison, q, when) for when, title in q.lists.items()},
        f"""Before: `rr:table-scan`. After: `priority` with `aging_interval` 0: strict priorities and nothing else.
        The study does not say on how many CPUs it ran; its figures are compared with measurements on {q.cpus} CPUs. A
        tick is {q.tick_ms():.0f} ms in the study and {listed(q.tick_lengths(q.all_experiments()))} in schedlab, with
        the same ratio of work to tick. {q.how(q.all_experiments())}""",
    )
    for test, title in (
        ("switch", "Fewer processes, not faster switches"),
        ("creation", "No program to start"),
    ):
        if q.timed_twice(test):
            page.item(f"**{title}.** {q.rows[test]}, processes:")
            for when in q.lists:
                took, made = (
                    measure(when, test, q.cpus).value for measure in (q.completion, q.processes)
                )
                theirs = q.printed(when, test)
                page.more(f"""{when} {made:.0f} in {theirs} ticks, {value_of(theirs) / made:.2f} each (measured
                {took:.1f}, {took / made:.3f}){";" if when == "before" else "."}""")
    with page.known(page.more):
        without, slow = (q.completion_with_exec(exec_is_slow) for exec_is_slow in (False, True))
        page.more(f"""According to section 5.1, the 42 ticks between 60 and 18 are the cost of `echo hi`, which 50
        processes execute in the first list: {q.longer("exec", "rr:table-scan"):.2f} ticks each. If an exec takes this
        much longer than schedlab's, the test takes {slow:.1f} measured ticks; otherwise {without:.1f}. No other test
        starts a program, so no other figure can confirm this cost.""")
    if q.timed_twice("mixed"):
        page.item(f"""**Mixed load has two different times.** Before, it is the time until all have ended, measured
        {q.completion("before", "mixed", q.cpus):.1f} ticks. After, it is the shortest time of a process that sleeps.
        The time until all have ended is {q.completion("after", "mixed", q.cpus):.1f} measured ticks under
        priorities""")
        if (q.sleepers_wait("after", q.cpus).mean or 0) >= 1:
            page.more(f""": the sleepers first set the lowest priority for themselves, and wait up to
            {q.sleepers_wait("after", q.cpus):.0f} ticks for the others before they begin to sleep.""")
        else:
            page.more(
                """: the five processes that compute run one after another, and one of two CPUs has three of them."""
            )
    page.item("""**The light task was not timed.** The Starvation check ends when all six processes have ended. Here the
    light one takes, from fork to exit,""")
    with page.known(page.more):
        before, after = (
            q.group_time("turnaround_mean_ns", "light", when, "starvation", q.cpus)
            for when in q.lists
        )
        page.more(f"{before:.2f} ticks under round-robin and {after:.2f} under priorities.")
    first_runs = q.first_runs_of_mixed()
    page.compared(
        "study-2-first-runs",
        "The first runs of mixed load under priorities (section 5.1)",
        ["time"],
        {"until all have ended": ()},
        {
            "ticks": lambda: Comparison(
                first_runs,
                q.completion("after", "mixed", q.cpus),
                q.completion("after", "mixed", q.cpus, with_study_costs=True),
                costs_run=q.experiment("after", "mixed", True),
            )
        },
        f"""The study explains its first {first_runs} ticks by "priority misassignment", which pipes corrected: since
        then, each process reports its own time. The time until all have ended is the same in schedlab under the same
        priorities.""",
    )
    if any(q.ran(f"s1-timing-{test}") for test in q.tests):
        page.item("""Study 1 completes this work, with seven tests under both schedulers on one to five CPUs:
        [its table 1](#study-1-table-1).""")


def _comparison(q: Queries, when: str, test: str, count: int) -> Comparison:
    ideal = q.ideal(when, test, count)
    printed = q.printed(when, test, count)
    gave = q.gave_a_constant(printed)
    cause = cause_of(printed) if gave and printed else None
    why = cause.text if cause else _CONSTANT if q.is_constant(when, test) else ""
    return Comparison(
        printed,
        q.reported_time(when, test, count),
        q.reported_time(when, test, count, False, True),
        costs_run=q.experiment(when, test, True),
        ideal=ideal,
        near=q.near(ideal),
        counted=q.is_counted(when, test, count),
        differs="percent",
        notes={"measured": why, "study_costs": GAVE_A_CONSTANT if gave else ""},
    )

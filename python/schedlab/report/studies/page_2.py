# SPDX-License-Identifier: MIT
"""The page of study 2: two lists of seven tests, before and after priorities."""

from __future__ import annotations

from functools import partial

from schedlab.base.display.numbers import format_count
from schedlab.report.model import Page
from schedlab.report.studies.page_writer import Writer, value_of
from schedlab.report.studies.study_2 import Queries
from schedlab.report.study_tables import COSTS_DERIVED_FROM_CELL, FigureComparison
from schedlab.report.wording import listed
from schedlab.studies.causes import cause_of

_CONSTANT_NOTE = "The shortest time of 50 ticks or more: that of a process whose sleep of 50 ticks starts at once."


def make_page(q: Queries) -> Page:
    """Returns the page of study 2."""
    page = Writer(q.study, "Study 2: first notes on priorities in xv6")
    rows = q.rows
    page.lead(f"""Its two lists do not compare two schedulers, because
    {listed([rows["switch"], rows["creation"]])} did different work in the second list, and {rows["mixed"]} reported
    a different time.""")
    page.lead(q.failures())
    _write_summary(page, q)
    _write_before_and_after(page, q)
    page.section("Contradictions")
    page.other_contradictions()
    return page.page(q.trials)


def _write_summary(page: Writer, q: Queries) -> None:
    """Adds the section with the main results."""
    page.section("In short")
    page.text(f"""
    **Claimed.** With priorities, {q.fewer_ticks_after()} of {len(q.tests)} figures are lower than under round-robin.
    The study calls Mixed load faster than round-robin. It ascribes the lower figure of Process creation to the changed
    test, and that of Switch overhead in part.""")
    if changes := q.changes():
        least, most = changes[0], changes[-1]
        page.text(f"""
        **Measured.** In the {format_count(len(changes), "test")} with the same work and the same kind of time,
        priorities change it by {least.percent} % ({least.row}) to {most.percent} % ({most.row}).""")
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


def _write_before_and_after(page: Writer, q: Queries) -> None:
    """Adds the section with the tables before and after priorities."""
    page.section("Before and after")
    page.compared(
        "study-2-lists",
        "The two lists",
        ["test", "CPUs"],
        {(q.rows[test], count): (test, count) for test in q.tests for count in q.counts()},
        {title: partial(_compare_test, q, when) for when, title in q.lists.items()},
        f"""Before: `rr:table-scan`. After: `priority` with `aging_interval` 0: strict priorities and nothing else.
        The study does not say on how many CPUs it ran; its figures are compared with measurements on {q.cpus} CPUs. A
        tick is {q.tick_ms():.0f} ms in the study and {listed(q.tick_lengths(q.all_experiments()))} in schedlab, with
        the same ratio of work to tick. I/O-bound and Short tasks fork batches of 50 (section 2), so I/O-bound's
        ideal is two sleeps of 10 ticks. {q.how(q.all_experiments())}""",
    )
    for test, title in (
        ("switch", "Fewer processes, not faster switches"),
        ("creation", "No program to start"),
    ):
        if q.timed_twice(test):
            page.item(f"**{title}.** {q.rows[test]}, processes:")
            for when in q.lists:
                ticks, processes = (
                    measure(when, test, q.cpus).value for measure in (q.completion, q.processes)
                )
                published = q.printed(when, test)
                page.more(f"""{when} {processes:.0f} in {published} ticks, {value_of(published) / processes:.2f}
                each (measured
                {ticks:.1f}, {ticks / processes:.3f}){";" if when == "before" else "."}""")
    with page.if_measured(page.more):
        without, slow = (q.completion_with_exec(exec_is_slow) for exec_is_slow in (False, True))
        page.more(f"""Section 5.1 names `echo hi`, which 50 processes execute in the first list, as a cause of 60 ticks
        instead of 18. The scheduler changes as well. We ascribe all 42 ticks to `echo hi`:
        {q.extra_ticks("exec", "rr:table-scan"):.2f} ticks each. If an exec takes this much longer than schedlab's, the
        test takes {slow:.1f} measured ticks; otherwise {without:.1f}. No other test starts a program, so no other
        figure can confirm this cost.""")
    if q.timed_twice("mixed"):
        page.item(f"""**Mixed load has two different times.** Before, it is the time until all have ended, measured
        {q.completion("before", "mixed", q.cpus):.1f} ticks. After, it is the shortest time of 50 ticks or more,
        which is a sleeper's. The time until all have ended is {q.completion("after", "mixed", q.cpus):.1f} measured
        ticks under priorities""")
        if (q.sleepers_wait("after", q.cpus).mean or 0) >= 1:
            page.more(f""": the sleepers first set the lowest priority for themselves, and wait up to
            {q.sleepers_wait("after", q.cpus):.0f} ticks for the others before they begin to sleep.""")
        else:
            page.more(
                """: the five processes that compute run one after another, and one of two CPUs has three of them."""
            )
    page.item("""**The light task was not timed.** The Starvation check ends when all six processes have ended. Here the
    light one takes, from fork to exit,""")
    with page.if_measured(page.more):
        before, after = (
            q.group_time("turnaround_mean_ns", "light", when, "starvation", q.cpus)
            for when in q.lists
        )
        page.more(f"{before:.2f} ticks under round-robin and {after:.2f} under priorities.")
    first_runs = q.first_runs_of_mixed()
    page.compared(
        "study-2-first-runs",
        "The first runs of mixed load under priorities (section 5.1)",
        ["time until all have ended"],
        {"priorities of section 2": (False,), "exchanged priorities": (True,)},
        {"ticks": partial(_compare_first_runs, q)},
        f"""The study explains its first {first_runs} ticks by "priority misassignment". It names two corrections:
        pipes, and "proper preemption (CPU priority 0 over I/O priority 10)". Since the pipes, each process reports its
        own time. Exchanged: processes that compute have priority 10, sleepers 0.
        {q.how([q.exchanged])}""",
    )
    with page.if_measured():
        equal, exchanged = q.completion("before", "mixed", q.cpus), q.exchanged_mixed()
        page.item(f"""**The priorities need not have been wrong.** On two CPUs, exchanged priorities take
        {exchanged:.1f} ticks, and round-robin {equal:.1f}. Of these three, only the order of section 2 takes about
        {first_runs}.""")
    largest_range, row = q.widest_range()
    if row:
        page.item(f"""**Tight ranges.** The study reports them without numbers (sections 2.1 and 5.1). Over the seeds of
        these runs, the time of {row} has the largest range: {largest_range:.1f} ticks.""")
    if any(q.ran(f"s1-timing-{test}") for test in q.tests):
        page.item("""Study 1 completes this work, with seven tests under both schedulers on one to five CPUs:
        [its table 1](#study-1-table-1).""")


def _compare_first_runs(q: Queries, exchanged: bool) -> FigureComparison:
    """Compares the first runs of mixed load with one assignment of priorities."""
    if exchanged:
        return FigureComparison(q.first_runs_of_mixed(), q.exchanged_mixed(), is_counted=False)
    return FigureComparison(
        q.first_runs_of_mixed(),
        q.completion("after", "mixed", q.cpus),
        q.completion("after", "mixed", q.cpus, with_study_costs=True),
        costs_run=q.experiment("after", "mixed", True),
    )


def _compare_test(q: Queries, when: str, test: str, count: int) -> FigureComparison:
    """Returns the comparison of a test's published and measured time."""
    ideal = q.ideal(when, test, count)
    printed = q.printed(when, test, count)
    determined_cost = q.determined_a_cost(printed)
    cause = cause_of(printed) if determined_cost and printed else None
    explanation = cause.text if cause else _CONSTANT_NOTE if q.is_constant(when, test) else ""
    return FigureComparison(
        printed,
        q.reported_time(when, test, count),
        q.reported_time(when, test, count, False, True),
        costs_run=q.experiment(when, test, True),
        ideal=ideal,
        near_distance=q.near(ideal),
        is_counted=q.is_counted(when, test, count),
        differs="percent",
        notes={
            "measured": explanation,
            "study_costs": COSTS_DERIVED_FROM_CELL if determined_cost else "",
        },
    )

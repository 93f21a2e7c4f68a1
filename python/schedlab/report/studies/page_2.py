# SPDX-License-Identifier: MIT
"""The page of study 2: two lists of seven tests, before and after priorities."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import ClassVar

from schedlab.base.display.numbers import format_count
from schedlab.report.model import Page
from schedlab.report.studies.page_writer import Writer, line, value_of
from schedlab.report.studies.timing import SLEEPERS, Suite, TimingQueries
from schedlab.report.study_tables import COSTS_DERIVED_FROM_CELL, FigureComparison, Measurement
from schedlab.report.wording import listed
from schedlab.studies.experiment import name_without_cost
from schedlab.studies.experiments import MIXED_SWAPPED
from schedlab.studies.figures import Figure

_CONSTANT_NOTE = line("""The shortest time of 50 ticks or more: that of a process whose sleep of 50 ticks starts at
once. Study 1's programs return 50 as a constant; the programs of these notes may have measured it. As a sleep of 50
ticks gives 50 under any scheduler, it is not counted.""")


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
    page.section("Before and after")
    fork = {
        (when, count): f"{q.extra_ticks('fork', q.suites[when].policy, count):.2f}"
        for when in q.lists
        for count in (1, 5)
    }
    page.text(f"""
    **Study costs**: measured as the study ran the tests, with operations as slow as on its machine. A fork takes longer
    than in schedlab, as in study 1: by {fork["before", 1]} ticks on one CPU and {fork["before", 5]} on five under
    round-robin, by {fork["after", 1]} and {fork["after", 5]} under priorities, interpolated for other numbers of CPUs.
    No figure of study 2 was used for this. An exec takes {q.extra_ticks("exec", "rr:table-scan"):.2f} ticks longer,
    which follows from Process creation before priorities. This cell agrees by definition and is not counted. These runs
    also have the habits of the study's kernel, as boot arguments. {q.habits_text()}.""")
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


def _compare_test(q: Queries, when: str, test: str, cpus: int) -> FigureComparison:
    """Returns the comparison of a test's published and measured time, `when`: before or after."""
    ideal = q.ideal(when, test, cpus)
    printed = q.printed(when, test, cpus)
    determined_cost = q.determined_a_cost(printed)
    comparison = FigureComparison(
        printed,
        q.reported_time(when, test, cpus),
        q.reported_time(when, test, cpus, False, True),
        costs_run=q.experiment(when, test, True),
        ideal=ideal,
        near_distance=q.near(ideal),
        is_counted=q.is_counted(when, test, cpus),
        differs="percent",
        effects=q.effects_on(printed),
    )
    cause = comparison.cause_footnote if determined_cost else ""
    return replace(
        comparison,
        notes={
            "measured": cause or (_CONSTANT_NOTE if q.is_constant(when, test) else ""),
            "study_costs": COSTS_DERIVED_FROM_CELL if determined_cost else "",
        },
    )


_UNCHANGED = ("cpu-heavy", "io-bound", "short", "starvation")


class Queries(TimingQueries):
    """Queries by list, `before` or `after` priorities. The tests are those of study 1's table 1."""

    cpus = 2
    """The study does not state the number.

    Its 44 ticks of CPU-heavy are close to the 46 of study 1 on two CPUs.
    """
    suites: ClassVar = {
        "before": Suite("timing", "section 3", "rr:table-scan", reports_sleepers=False),
        "after": Suite("priority", "section 5", "priority aging_interval=0"),
    }
    rows: ClassVar = {
        "cpu-heavy": "CPU-heavy",
        "switch": "Switch overhead",
        "io-bound": "I/O-bound",
        "mixed": "Mixed load",
        "creation": "Process creation",
        "short": "Short tasks",
        "starvation": "Starvation check",
    }
    not_counted: ClassVar = frozenset({("after", SLEEPERS)})
    """The shortest time of a sleeper is the length of its sleep."""
    exchanged = MIXED_SWAPPED
    lists: ClassVar = {"before": "before (section 3), ticks", "after": "after (section 5), ticks"}

    def printed(self, suite: str, test: str, cpus: int = cpus) -> Figure | None:
        """Returns the published figure on the assumed number of CPUs; None on others."""
        place = self.suites[suite].place
        figure = self.figure(place, self.rows[test], "average", quantity="completion")
        return figure if cpus == self.cpus else None

    def first_runs_of_mixed(self) -> Figure | None:
        """Returns the time of mixed load's first runs under
        priorities, according to section 5.1.
        """
        return self.figure("section 5.1", self.rows["mixed"], "first runs")

    def exchanged_mixed(self) -> Measurement:
        """Returns the time of mixed load until all have ended, with exchanged priorities."""
        return self.ticks(self.exchanged, self.suites["after"].policy, "completion_ns", self.cpus)

    def widest_range(self) -> tuple[float, str]:
        """Returns the largest range of a test's time over the seeds, in ticks, and the test."""
        ranges = [
            (max(values) - min(values), self.rows[test])
            for suite in self.suites
            for test in self.tests
            if len(values := self.completion(suite, test, self.cpus).values) > 1
        ]
        return max(ranges, default=(0.0, ""))

    def completion_with_exec(self, slow: bool) -> Measurement:
        """Returns the time of process creation before priorities, in ticks, with the study costs.

        `slow`: includes the cost of its exec.
        """
        name = self.experiment("before", "creation", with_study_costs=True)
        name = name if slow else name_without_cost(name, "exec")
        return self.ticks(name, self.suites["before"].policy, "completion_ns", self.cpus)

    def is_constant(self, suite: str, test: str) -> bool:
        """Returns True if the reported time of this test is the shortest of 50 ticks or more."""
        return self._reports_sleepers(suite, test, False)

    # --- results

    def fewer_ticks_after(self) -> int:
        """Returns the number of tests with fewer published ticks after than before."""
        pairs = [[self.printed(suite, test) for suite in self.suites] for test in self.tests]
        return sum(bool(old and new and new.value < old.value) for old, new in pairs)

    def changes(self) -> list[SimpleNamespace]:
        """Returns how many percent priorities change each
        unchanged test, in ascending order.
        """
        all_changes = []
        for test in _UNCHANGED:
            old, new = (self.reported_time(suite, test, self.cpus).mean for suite in self.suites)
            if old and new:
                all_changes.append((round(100 * (new / old - 1)), self.rows[test]))
        return [
            SimpleNamespace(percent=f"{percent:+d}" if percent else "0", row=row)
            for percent, row in sorted(all_changes)
        ]

    def timed_twice(self, test: str) -> bool:
        """Returns whether the test was measured before and after."""
        return all(
            measure(suite, test, self.cpus).mean
            for suite in self.suites
            for measure in (self.completion, self.processes)
        )

    # --- runs

    def all_experiments(self) -> list[str]:
        """Returns the experiments of both lists."""
        return [experiment for suite in self.suites for experiment in self.experiments(suite)]

    def counts(self) -> list[int]:
        """Returns the numbers of CPUs."""
        experiments = set(self.all_experiments())
        ran = {setup.cpus for setup in self.collection.repeated if setup.experiment in experiments}
        return sorted(ran | {self.cpus})

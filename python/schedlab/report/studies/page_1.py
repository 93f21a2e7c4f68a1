# SPDX-License-Identifier: MIT
"""The page of study 1: priorities and a lottery in xv6."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import polars as pl

from schedlab.base.display.markdown import code
from schedlab.base.display.numbers import format_count
from schedlab.report.charts import gantt, shares_over_time
from schedlab.report.model import Page
from schedlab.report.studies import notes_1 as notes
from schedlab.report.studies.lottery import SHIPPED, THESIS
from schedlab.report.studies.page_writer import (
    Curve,
    MeasuredCell,
    Quantity,
    Writer,
    line,
    value_of,
)
from schedlab.report.studies.study_1 import Queries
from schedlab.report.study_tables import COSTS_DERIVED_FROM_CELL, FigureComparison, Measurement
from schedlab.report.wording import cpus_text, listed
from schedlab.studies.experiments import IDLE_TESTS

_SUITE_TITLES = {"timing": "table 1: round-robin", "priority": "table 2: priorities"}
_BOTH_SUITES = ("timing", "priority")
_TESTS_OF_FIGURE_1 = ("io-bound", "starvation")
_TIME_NOTE = "Ticks from the first fork to the last exit."


def make_page(q: Queries) -> Page:
    """Returns the page of study 1."""
    page = Writer(q.study, "Study 1: priorities and a lottery in xv6")
    _write_lead(page, q)
    _write_summary(page, q)
    _write_reading_guide(page, q)
    timing, priority, lottery = q.suite_ran("timing"), q.suite_ran("priority"), q.lottery_ran()
    if timing:
        _write_round_robin(page, q)
    if priority:
        _write_priorities(page, q)
    if timing or priority:
        _write_cpu_curves(page, q)
        _write_context_switches(page, q)
    if lottery:
        _write_lottery(page, q)
    page.section("All policies in the same tests")
    page.text("""
    The study's presets come first, then every built-in policy. The comparison shows the winner by
    metric, and whether a difference is significant.""")
    for suite in _SUITE_TITLES:
        if q.suite_ran(suite):
            _write_all_policies(page, q, suite)
    if lottery:
        _write_lottery_policies(page, q)
    _write_proposals(page, q)
    _write_future_work(page, q)
    page.section("Other contradictions")
    page.other_contradictions()
    return page.page(q.trials)


def _quantities_by_cpus(
    q: Queries, cell: Callable[..., Measurement | MeasuredCell | float]
) -> list[Quantity]:
    """Returns a column for each number of CPUs.

    `cell`: a function of that number and the row's key.
    """
    return [Quantity(cpus_text([count]), partial(cell, count)) for count in q.counts]


def _write_lead(page: Writer, q: Queries) -> None:
    page.lead("""Its times mainly show the cost of a fork and the choice of a CPU at the fork, and little about its
    schedulers.""")
    page.lead(q.failures())


def _write_summary(page: Writer, q: Queries) -> None:
    page.section("In short")
    with_priorities, without = (
        "{:.0f} to {:.0f}".format(*q.printed_between(suite, "io-bound"))
        for suite in ("priority", "timing")
    )
    page.text(f"""
    **Claimed.** Priorities serve I/O better than round-robin: the I/O test takes {with_priorities}
    ticks with priorities and {without} without. A lottery shares the CPU by tickets, but less exactly on more CPUs.
    The study gives no largest difference. By its tables, shares differ from the expected ones by up to
    {q.most_off_expected(1):.1f} percentage points on one CPU (table 8) and {q.most_off_expected(5):.1f} on five
    (table 6). The difference in table 8 hardly changes with the number of CPUs. The study built both schedulers into
    xv6, and ran seven tests and six lotteries on one to five CPUs.""")
    with page.if_measured():
        page.text(f"""
        **Measured.** On one CPU, the study's lottery program gives shares that differ from the
        published ones by {q.shares_off_printed():.1f} points. Mixed Load is a constant in the study's programs, so
        its times are not counted below.""")
    page.text("""
    **Teaches.** A comparison of two schedulers needs the same work under both; the study's two I/O
    tests differ. Three of its seven tests mainly fork, so they measure the time of a fork under any scheduler.""")
    _draw_curves(
        page,
        q,
        "study-1-in-short",
        "Measured with study costs, and published",
        {
            f"{q.rows[test]}, {q.policies[suite]}": Curve(
                partial(q.reported_time, suite, test, with_study_costs=True),
                partial(q.printed, suite, test),
            )
            for suite in q.suites
            for test in ("io-bound", "starvation")
        },
        """Ticks from the first fork to the last exit, with study costs. The priority tests run in a row and without
        the bursts that the study's compiler deletes.""",
        policies=False,
    )


def _draw_curves(
    page: Writer,
    q: Queries,
    name: str,
    title: str,
    series: dict[str, Curve],
    caption: str,
    y_title: str = "completion (ticks)",
    ideal: Callable[[int], float] | Mapping[str, Callable[[int], float]] | None = None,
    policies: bool = True,
) -> None:
    """Adds a line chart of times over the number of CPUs."""
    page.curves(
        name,
        title,
        q.counts,
        "CPUs",
        y_title,
        series,
        caption=caption,
        ideal=ideal,
        policies=policies,
    )


def _write_reading_guide(page: Writer, q: Queries) -> None:
    page.section("How to read this page")
    page.item("""**published**: the figures of the study. **rerun**: figures of the study's programs, run again for
    schedlab on an emulator on a host of two CPUs. **measured**: schedlab's figures, the mean over seeds with its 95
    % interval in brackets. **study costs**: measured as the study ran the tests, with forks as slow as on its
    machine, and with its kernel's behaviour (below).
    **ideal**: a bound for any scheduler, if only the processes' own work and sleeps take time.
    **expected**: the shares that the study considers fair.""")
    page.item(
        f"**Ticks.** Study 1 gives no length of a tick; in study 2 (section 2) it is {q.tick_ms():.0f} ms."
    )
    if lengths := q.tick_texts():
        page.more(f"In schedlab it is {listed(lengths)}.")
    if of_program := q.tick_texts(True):
        page.more(f"For the study's lottery program it is {listed(of_program)}.")
    page.more("""Work, sleeps and time slices have the same ratio to a tick, so ticks can be compared. Kernel
    operations do not scale: a fork takes ten times as much of a 1 ms tick as of a 10 ms tick.""")
    page.item("""A
    sleep of n ticks ends at the n-th tick after its start, in schedlab and in the study. So it can be up to a tick
    shorter, and a time can be slightly below the ideal.""")
    page.item("""**Batches.** Study 1's text names none. I/O-bound of table 1 and Low Process Count fork 50 processes
    at a time, as in study 2 (section 2) and in study 1's program.""")
    page.item(f"""The unit of work comes from the study:
    CPU-heavy on one CPU under round-robin is {q.ideal("timing", "cpu-heavy", 1):.0f} ticks of work.""")
    longer = {
        (suite, count): f"{q.extra_ticks('fork', q.policies[suite], count):.2f}"
        for suite in _SUITE_TITLES
        for count in (1, 5)
    }
    page.item(f"""**Study costs.** On the study's machine a fork took longer, relative to a tick, than in schedlab: by
    {longer["timing", 1]} ticks on one CPU and {longer["timing", 5]} on five under round-robin and the lottery, by
    {longer["priority", 1]} and {longer["priority", 5]} under priorities, interpolated for other numbers of CPUs. With
    these values, Switch Overhead, 200 forks in a row, agrees on one CPU and on five. These four cells, and the cell
    that gives the unit of work, agree by definition and are not counted. It is not known why the study's forks take
    longer on more CPUs.""")
    page.more(
        f"""These runs also have the habits of the study's kernel, as boot arguments. {q.habits_text()}."""
    )
    forks = q.printed("timing", "switch", 1)
    rerun = q.printed("timing", "switch", 1, source="rerun")
    page.item(f"""**Machine.** The study ran xv6 for x86 in the emulator QEMU (appendix I); schedlab runs its kernel for
    RISC-V on Spike. The study's machine took {forks} ticks for the 200 forks of Switch Overhead on one CPU, and the
    rerun {rerun} on another host. So the tests that mainly fork also measure the emulator and its host.""")
    page.item(f"""**Colours.** A measured figure is marked good if it is near the ideal: a
    time within {q.near_percent:.0f} % or a tick; a share within 3.5 standard errors, as if each tick of each CPU were
    a draw. With study costs, a figure is marked good if it is near the published one.""")


# --- tables 1 and 2


def _write_times(page: Writer, q: Queries, suite: str, caption: str) -> None:
    """Adds the table of a suite's times and context switches, published and measured."""

    def completion(test: str, until_all_ended: bool, count: int) -> FigureComparison:
        ideal = q.ideal(suite, test, count, until_all_ended)
        about = partial(notes.time_footnote, q, suite=suite, test=test, count=count)
        on_costs = "" if until_all_ended else about(q.why_off_on_their_costs(suite, test, count))
        if (
            not on_costs
            and not until_all_ended
            and q.determined_a_cost(q.printed(suite, test, count))
        ):
            on_costs = COSTS_DERIVED_FROM_CELL
        return FigureComparison(
            None if until_all_ended else q.printed(suite, test, count),
            q.reported_time(suite, test, count, until_all_ended),
            q.reported_time(suite, test, count, until_all_ended, True),
            costs_run=q.costs_run(suite, test),
            rerun=None if until_all_ended else q.printed(suite, test, count, source="rerun"),
            ideal=ideal,
            near_distance=q.near(ideal),
            is_counted=q.is_counted(suite, test, count),
            differs="percent",
            notes={
                "measured": about(q.why_time_off(suite, test, count, until_all_ended)),
                "study_costs": on_costs,
            },
        )

    def switches(test: str, of_other: bool, count: int) -> FigureComparison | None:
        if of_other:
            return None
        printed = partial(q.printed, suite, test, count, "context switches")
        return FigureComparison(
            printed(),
            q.picks(suite, test, count),
            q.picks(suite, test, count, True),
            costs_run=q.costs_run(suite, test),
            effects=q.effects_on(printed()),
            rerun=printed("rerun"),
            decimals=0,
        )

    page.compared(
        f"study-1-{_SUITE_TITLES[suite].partition(':')[0].replace(' ', '-')}",
        f"The study's {_SUITE_TITLES[suite]}",
        ["test", "CPUs"],
        {
            (f"{q.rows[test]}{', until all have ended' if until_all_ended else ''}", count): (
                test,
                until_all_ended,
                count,
            )
            for test in q.tests
            for until_all_ended in ((False, True) if test == "mixed" else (False,))
            for count in q.counts
        },
        {"completion, ticks": completion, "context switches": switches},
        f"""Under `{q.policies[suite]}`. {caption} A context switch is a pick, as in the study, even if the picked
        process was already running.""",
    )


def _suite_conditions(q: Queries, suite: str) -> str:
    """Returns the caption's text on how a suite was run."""
    return q.how(q.experiments(suite), [q.policies[suite]])


def _write_round_robin(page: Writer, q: Queries) -> None:
    """Adds the section on table 1: round-robin."""
    page.section("Round-robin: table 1")
    page.item("""**Three tests measure a fork.** Switch Overhead, Process Creation and Low Process Count mainly fork,
    under any scheduler; I/O-bound only forks and sleeps.""")
    measured, theirs = partial(q.completion, "timing"), partial(q.printed, "timing")
    slow = partial(measured, with_study_costs=True)
    with page.if_measured(page.more):
        page.more(f"""With study costs, Process Creation takes {slow("creation", 1):.1f} ticks on one CPU instead of
        {measured("creation", 1):.1f} (published: {theirs("creation", 1)}), Low Process Count {slow("short", 1):.1f}
        instead of {measured("short", 1):.1f} ({theirs("short", 1)}), I/O-bound {slow("io-bound", 1):.1f} instead of
        {measured("io-bound", 1):.1f} ({theirs("io-bound", 1)}).""")
    page.item(f"**Mixed Load is a constant.** {notes.constant_footnote(q, 'timing')}")
    if worst := q.farthest_from_ideal("timing", "cpu-heavy"):
        page.item(f"""**In CPU-heavy, round-robin is within {100 * (worst.ticks / worst.ideal - 1):.1f}
        % of the ideal**: it takes {worst.ticks:.1f} ticks on {cpus_text([worst.count])}, where {worst.ideal:.1f}
        are needed.""")
    page.item("**In the study, several CPUs make a fork slower.**")
    with page.if_measured(page.more):
        page.more(f"""{q.rows["switch"]} has one process at a time, so the number of CPUs should not matter. On one
        and on five CPUs it takes {measured("switch", 1):.1f} and {measured("switch", 5):.1f} ticks (published:
        {theirs("switch", 1)} and {theirs("switch", 5)}; rerun on a host of two CPUs:
        {theirs("switch", 1, source="rerun")} and {theirs("switch", 5, source="rerun")}). The difference is not
        explained: schedlab's forks take no longer on five CPUs than on one.""")
    _write_times(page, q, "timing", _suite_conditions(q, "timing"))
    page.contradictions_about("table 1")


def _write_priorities(page: Writer, q: Queries) -> None:
    """Adds the section on table 2: priorities."""
    page.section("Priorities: table 2")
    page.item(f"**Mixed Load is a constant.** {notes.constant_footnote(q, 'priority')}")
    if q.waits_of_sleepers("priority"):
        page.item(f"**What the constant hides.** {notes.sleepers_footnote(q, 'priority')}")
        if any(wait.count > 1 for wait in q.waits_of_sleepers("priority")):
            page.more(f"On more CPUs: {notes.delayed_sleeper_footnote(q, 'priority')}")
    run_suites = [suite for suite in q.suites if q.suite_ran(suite)]
    page.item("""**No process starves in the Starvation Check.** The study prints when all six have ended. The test is
    about the light process, which is forked first. On one CPU, its turnaround is:""")
    for suite in run_suites:
        with page.if_measured(page.more):
            time = q.group_time("turnaround_mean_ns", "light", suite, "starvation", 1)
            end = "." if suite == run_suites[-1] else ";"
            page.more(f"{time:.2f} ticks under `{q.policies[suite]}`{end}")
    by_passes = q.proposed[:1]
    if q.turnarounds(by_passes, 1):
        page.item(f"""**Priority 0 is not the highest.** Level 5 runs first. In I/O-bound on one CPU, the mean
        turnarounds of priority 0 and of priority 5 are {_turnarounds_text(q, by_passes, 1)}, in ticks. Processes of
        priority 5 are also forked first, which no run separates from the levels.""")
        if q.turnarounds(by_passes, 2):
            page.more(
                f"""On two CPUs they are {_turnarounds_text(q, by_passes, 2)}: there level 5 has no advantage."""
            )
    in_a_row = q.ran(q.in_a_row_name)
    if in_a_row:
        _write_test_sequence(page, q)
    page.item("""**The process that starts the others starves.** According to the text, the scheduler ages waiting
    tasks every 50 ticks. The code that produced the table counts passes of any CPU through the scheduler instead, and
    idle CPUs pass all the time. Tasks that run or sleep also age. So the program that starts the tests is soon at
    level 0, while its children stay at level 5, which runs first. A child on its CPU keeps it from starting the next
    one.""")
    with page.if_measured(page.more):
        passes, ticks = (
            q.in_sequence("starvation", 5, "complete", aging, True).value for aging in q.agings
        )
        page.more(f"""Run in a row on five CPUs with study costs, the Starvation Check takes {passes:.1f} ticks if
        tasks age by passes, and {ticks:.1f} if they age by ticks (published:
        {q.printed("priority", "starvation", 5)}).""")
    page.more(f"So `{q.agings[0]}` is the table's preset, and `{q.agings[1]}` the text's.")
    for test in ("cpu-heavy", "starvation"):
        if q.imbalances("priority", test):
            sentence = notes.imbalance_footnote(q, "priority", test)
            page.item(f"**{q.rows[test]}**: {sentence[0].lower()}{sentence[1:]}")
    costs_note = q.how([q.experiment_with_study_costs(q.in_a_row_name)], [q.policies["priority"]])
    _write_times(
        page,
        q,
        "priority",
        f"""Measured: each test by itself. {_suite_conditions(q, "priority")} Study costs: all tests in a row, five
        times
        each, without the bursts of I/O-bound. {costs_note}""",
    )
    if in_a_row:
        _write_sequence_tables(page, q)
    _draw_priority_pictures(page, q)
    page.contradictions_about("table 2")


def _turnarounds_text(q: Queries, policies: Sequence[str], count: int = 0) -> str:
    """Returns the sentence on turnarounds of priority 0 and priority 5."""
    turnarounds = q.turnarounds(policies, count)
    rows = turnarounds.of if turnarounds else []
    return listed([f"{e.zero:.1f} and {e.five:.1f} under `{e.policy}`" for e in rows])


def _write_test_sequence(page: Writer, q: Queries) -> None:
    """Adds the section on running all priority tests in sequence, as the study's program does."""
    page.item("""**Tests in a row.** In the column *measured*, each test is a separate run, so that its priorities
    have an effect. The study ran all seven tests in a row, five times each. After the second test, PIDs are above
    100, and its scheduler ignores their priorities. Its compiler also deletes the bursts of I/O-bound. Such a run on
    one CPU takes, in ticks:""")
    for test, name, more, end in (
        ("io-bound", "complete", "", ";"),
        ("mixed", "ticks", "", ";"),
        ("mixed", "complete", " until all have ended", ";"),
        ("starvation", "complete", "", "."),
    ):
        with page.if_measured(page.more):
            page.more(f"""{q.rows[test]}{more} {q.in_sequence(test, 1, name):.0f} instead of
            {q.run_alone(test, name):.0f}{end}""")


def _write_sequence_tables(page: Writer, q: Queries) -> None:
    policy = q.policies["priority"]
    page.measured(
        "study-1-in-a-row",
        "All tests in a row: ticks that each test reports",
        ["test"],
        {q.rows[test]: test for test in q.tests},
        _quantities_by_cpus(q, lambda count, test: q.in_sequence(test, count)),
        f"""Under `{policy}`. The mean of five times, in whole ticks of the kernel's clock, without the bursts of
        I/O-bound.""",
    )

    def printed(test: str, count: int) -> MeasuredCell:
        return MeasuredCell(Measurement((value_of(q.printed("priority", test, count)),)), 0)

    def starvation(count: int, program: str) -> Measurement | MeasuredCell:
        if program == "published":
            return printed("starvation", count)
        return q.in_sequence("starvation", count, "complete", program, True)

    page.measured(
        "study-1-starvation-in-a-row",
        "Starvation Check in a row, under two rules of aging",
        ["what is run"],
        ["published", *q.agings],
        _quantities_by_cpus(q, starvation),
        f"""Ticks until all six have ended, with study costs.
        {q.how([q.experiment_with_study_costs(q.in_a_row_name)])}""",
    )

    alone = q.ran(q.experiment_with_study_costs("s1-priority-cpu-heavy"))
    page.measured(
        "study-1-agings",
        "Two rules of aging: difference from table 2",
        ["policy", "run"],
        {
            (aging, "all in a row" if in_a_row else "by itself"): (aging, in_a_row)
            for aging in q.agings
            for in_a_row in ((False, True) if alone else (True,))
        },
        _quantities_by_cpus(
            q, lambda count, aging, in_a_row: q.off_by_aging(aging, in_a_row, count)
        ),
        """Difference between measured times with study costs and published times, in percent: the mean over the six
        tests that are not a constant. By itself: each test alone, including the bursts of I/O-bound.""",
    )
    rows: dict[str, Callable[[int], Measurement | MeasuredCell]] = {
        "published": partial(printed, "io-bound"),
        "measured, with bursts": partial(q.completion, "priority", "io-bound"),
        "measured, bursts deleted": q.without_bursts,
        "study costs, bursts deleted": partial(q.without_bursts, with_study_costs=True),
        "the same, all tests in a row": lambda count: q.in_sequence(
            "io-bound", count, "complete", policy, True
        ),
    }
    page.measured(
        "study-1-io-bound",
        "I/O-bound of table 2 with and without its bursts",
        ["what is run"],
        rows,
        _quantities_by_cpus(q, lambda count, row: row(count)),
        f"""Ticks until all have ended, under `{policy}`. By itself:
        {q.how([q.bursts_deleted, q.experiment_with_study_costs(q.bursts_deleted)])}""",
    )


def _draw_priority_pictures(page: Writer, q: Queries) -> None:
    """Adds charts of traces under priorities."""
    policy = q.policies["priority"]
    page.picture(
        partial(gantt, colour="group"),
        "study-1-mixed-sleepers",
        f"Mixed Load on one CPU under {policy}",
        q.first_trace(q.experiment("priority", "mixed"), policy, 1),
        caption="""The processes that will sleep 50 ticks (mix-io) have set the lowest priority, and begin to sleep
        only after the computing ones (mix-cpu) have ended. First seed.""",
    )
    if count := q.most_traced("priority", "starvation"):
        page.picture(
            partial(gantt, colour="process"),
            "study-1-idle-beside-busy",
            f"Starvation Check on {cpus_text([count])} under {policy}",
            q.first_trace(q.experiment("priority", "starvation"), policy, count),
            caption="""No process migrates after its fork: some CPUs are idle while processes wait for each other on
            another CPU. First seed.""",
        )


# --- figures 1 and 2, and context switches


def _write_cpu_curves(page: Writer, q: Queries) -> None:
    """Adds the section on figures 1 and 2: times over the number of CPUs."""
    page.section("Figures 1 and 2: over the number of CPUs")
    _draw_curves(
        page,
        q,
        "study-1-figure-1",
        "The study's figure 1: completion time",
        {
            f"{q.rows[test]}, {q.policies[suite]}": Curve(
                partial(q.completion, suite, test), partial(q.printed, suite, test)
            )
            for test in _TESTS_OF_FIGURE_1
            for suite in q.suites
        },
        _TIME_NOTE,
        ideal={
            f"{q.rows[test]}{more}": partial(q.ideal, suite, test, until_all_ended=True)
            for suite, test, more in (
                ("timing", "io-bound", ", rr"),
                ("priority", "io-bound", ", priority"),
                ("timing", "starvation", ""),
            )
        },
        policies=False,
    )
    _draw_curves(
        page,
        q,
        "study-1-figure-2",
        "The study's figure 2: context switches",
        {
            f"{q.rows[test]}, {q.policies[suite]}": Curve(
                partial(q.picks, suite, test),
                partial(q.printed, suite, test, quantity="context switches"),
            )
            for suite in q.suites
            for test in ("io-bound", "mixed")
        },
        "Picks, as in the study, whose kernel wakes all sleeping processes at every tick.",
        "context switches",
        policies=False,
    )
    for test in ("cpu-heavy", "switch", "mixed", "creation", "short"):
        _draw_completion(page, q, test)


def _draw_completion(page: Writer, q: Queries, test: str) -> None:
    is_published = test != "mixed"
    _draw_curves(
        page,
        q,
        f"study-1-completion-{test}",
        q.rows[test],
        {
            q.policies[suite]: Curve(
                partial(q.completion, suite, test),
                partial(q.printed, suite, test) if is_published else lambda count: None,
            )
            for suite in _BOTH_SUITES
        },
        _TIME_NOTE + ("" if is_published else " The study does not say when all had ended."),
        ideal=partial(q.ideal, _BOTH_SUITES[0], test, until_all_ended=True),
    )


def _picks_text(q: Queries, habit: str, suite: str, test: str) -> str:
    """Returns the picks with and without a habit, by number of CPUs. Raises NoMeasurement."""
    return listed(
        [
            f"{q.picks(suite, test, count, True):.0f} instead of {q.picks_without(habit, suite, test, count):.0f}"
            f" on {cpus_text([count])} (published: {q.printed(suite, test, count, 'context switches')})"
            for count in q.counts
        ]
    )


def _write_context_switches(page: Writer, q: Queries) -> None:
    page.section("Where the context switches come from")
    if not q.accounted_tests("published") or not q.accounted_tests("measured"):
        page.text("The necessary runs are missing.")
        return
    page.text(f"""
    On one CPU, the context switches of tables 1 and 2 follow from the test (each start and each
    wake-up is a pick) and from its duration (each tick is a pick). The sum is within {q.near_percent:.0f} % of the
    count in {q.well_accounted_tests("published")} of {q.accounted_tests("published")} published cells and in
    {q.well_accounted_tests("measured")} of {q.accounted_tests("measured")} measured cells. So these counts reflect
    forks and
    ticks, not schedulers.""")
    for suite, test in (("timing", "io-bound"), ("timing", "mixed"), ("priority", "mixed")):
        with page.if_measured():
            counts_text = _picks_text(q, "recheck", suite, test)
            page.item(f"""**xv6 wakes sleepers at each tick**, and they check whether their time is over. With this
            behaviour, {q.rows[test]} of {q.suites[suite].place} has this many picks: {counts_text}.""")
    for test in ("io-bound", "starvation"):
        with page.if_measured():
            counts_text = _picks_text(q, "changes-wait", "priority", test)
            page.item(f"""**A process that sets its priority runs on** in the study's kernel: the counts have no pick
            for it. With that habit, {q.rows[test]} of table 2 has, in picks: {counts_text}.""")
    for test in IDLE_TESTS:
        with page.if_measured():
            counts_text = _picks_text(q, "scan", "timing", test)
            page.item(f"""**Idle CPUs of xv6 scan the table of processes.** So an idle CPU often continues a process
            that a tick has stopped, and its tick stops the process again before a whole tick has passed. With this
            behaviour, {q.rows[test]} of table 1 has this many picks: {counts_text}.""")

    def to_another(suite: str, test: str) -> Measurement:
        return q.number("context_switches", suite, test, 1)

    page.measured(
        "study-1-picks",
        "Context switches on one CPU, accounted for",
        ["policy", "test"],
        {
            (q.policies[suite], q.rows[test]): (suite, test)
            for suite in q.suites
            for test in q.tests
        },
        [
            *(
                Quantity(
                    "starts and wakes" if part == "events" else part,
                    partial(q.switch_account, whose, part),
                    whose,
                    1 if (whose, part) == ("measured", "ticks") else 0,
                    part in ("events", "ticks"),
                )
                for whose in ("published", "measured")
                for part in ("events", "ticks", "sum", "counted")
            ),
            Quantity("of them to another process", to_another, "measured", 0),
        ],
        """A context switch is a pick, as in the study's kernel. Starts and wakes: how often a process was started or
        woken, including the parent if it waits for each child, and, for measured values, each change of a priority.
        Ticks: ticks at which a process was running. Published Mixed Load has no sum, because the study does not say
        when all had ended.""",
    )


# --- tables 3 to 8


def _write_lottery(page: Writer, q: Queries) -> None:
    """Adds the section on tables 3 to 8: the lottery."""
    page.section("The lottery: tables 3 to 8")
    command = q.original_command()
    example = f"({code(command)} and the like)" if command else ""
    page.text(
        line(f"Each test ran in two ways. First, as **the study's program** runs it {example}")
    )
    page.more(""": processes compete as soon as they are forked and yield after each burst, and some have little work.
    The measure is how often each group was picked. Second, as a competition: all start together, and **all compete**
    until the end. The measure is CPU time, which can be compared with the ideal share. `lottery:thesis` is the
    study's lottery, which has a queue for each CPU and never migrates a process; `lottery` is the built-in one. In
    table 6, the work between two yields, a burst, is calibrated for each number of CPUs, so none of its 15 shares
    counts as agreement. The other tables have the burst of one CPU on any number of CPUs.""")
    iteration = q.iteration_ns
    page.more(f"""If a tick is 10 ms, an iteration takes {iteration["table 1"]:.1f} ns by table 1, and
    {iteration["one CPU"]:.1f} to {iteration["five CPUs"]:.0f} ns by these bursts of 5,000 iterations; the difference
    is not explained.""")

    def off(count: int, test: str, program: str) -> Measurement:
        if program in q.lotteries_run:
            return q.off_ideal_share(test, program, count)
        return q.off_printed_shares(test, count, program != "measured")

    whats = {
        "the study's program, difference from the published shares": "measured",
        "the study's program with study costs, difference from the published shares": "study costs",
        **{f"{policy}, all compete, off the ideal": policy for policy in q.lotteries_run},
    }
    page.measured(
        "study-1-shares-off",
        "Differences in percentage points, mean over the groups of a table",
        ["table", "off"],
        {
            (f"{lottery.table}: {lottery.title}", label): (test, what)
            for test, lottery in q.lotteries.items()
            for label, what in whats.items()
        },
        _quantities_by_cpus(q, off),
        "The difference of each group's mean share, averaged over the groups.",
    )
    figure_3 = {
        f"{q.lotteries[test].rows[group]} of table {q.lotteries[test].table}": (test, group)
        for test, group in (("low", "A"), ("starve", "A+B"), ("starve", "E+F+G+H"))
    }
    _draw_curves(
        page,
        q,
        "study-1-figure-3",
        "The study's figure 3: shares under the lottery",
        {
            title: Curve(partial(q.picked, *which), partial(q.share_printed, *which))
            for title, which in figure_3.items()
        },
        "Selections by the study's program, under `lottery:thesis`.",
        "share (%)",
        {title: partial(q.ideal_group_share, *which) for title, which in figure_3.items()},
        policies=False,
    )
    page.contradictions_about("section 4.3")
    for test in ("low", "basic", "switch", "starve", "grouped", "mixed"):
        _write_shares(page, q, test)


def _write_shares(page: Writer, q: Queries, test: str) -> None:
    """Adds the subsection of one lottery test."""
    lottery = q.lotteries[test]
    page.subsection(f"Table {lottery.table}: {lottery.title}")
    if off := q.unmeetable(test):
        groups = list(dict.fromkeys(group for groups in off.values() for group in groups))
        page.item(f"""On {cpus_text(off)}, no scheduler can meet the study's expectation for {listed(groups)}: no
        process
        gets more than one CPU or more than it asks for, and the others share the rest.""")
    else:
        page.item("A scheduler can meet the study's expectation on each number of CPUs.")
    page.item(notes.table_findings(q, test))
    if idle := q.idle_without_need(test):
        page.item(
            f"`lottery:thesis` leaves {idle.idle:.0f} % of the time of {cpus_text([idle.count])} idle"
        )
        if idle.least:
            page.more(f"(the processes cannot use {idle.least:.0f} %)")
        page.more(""": at each fork, all earlier processes were waiting for the start, so every queue was empty; and
        processes never migrate.""")
    if worst := q.worst_of_shipped(test):
        page.item("`lottery` is")
        with page.if_measured(page.more):
            page.more(f"""{q.off_ideal_share(test, SHIPPED, worst):.1f} points off the ideal at worst, on
            {cpus_text([worst])}""")
            if q.all_compute(test):
                page.more(f"""; independent draws, one per tick, would be {q.by_chance(test, SHIPPED, worst):.1f}
                points off""")
            page.more(".")
    _write_shares_table(page, q, test)
    if test == "low":
        page.picture(
            shares_over_time,
            "study-1-two-share-a-cpu",
            "The study's table 3 on two CPUs, over time",
            q.first_trace(q.competition(test), THESIS, 2),
            caption="""All compete, first seed. A process stays on the CPU where it was forked, so longer runs are not
            nearer to the ideal.""",
        )
    if test == "starve":
        page.picture(
            partial(shares_over_time, sliding_ticks=5),
            "study-1-work-runs-out",
            "The study's table 6 on one CPU, over time",
            q.first_trace(q.original(test), THESIS, 1),
            caption="""The study's program, first seed. The processes with most tickets finish first, and then the
            others get all the time.""",
        )
    page.contradictions_about(f"table {lottery.table}")


def _write_shares_table(page: Writer, q: Queries, test: str) -> None:
    """Adds the table of one lottery test: shares of selections and of CPU time."""
    lottery = q.lotteries[test]

    def selections(group: str, count: int) -> FigureComparison:
        about = partial(notes.share_footnote, q, test=test, group=group, count=count)
        return FigureComparison(
            q.share_printed(test, group, count),
            q.picked(test, group, count),
            q.picked(test, group, count, True),
            costs_run=q.original(test, True),
            expected=q.expected(test, group) if count == 1 else None,
            rerun=q.share_printed(test, group, count, "rerun"),
            is_counted=not q.determined_a_cost(q.share_printed(test, group, count)),
            differs="points",
            notes={
                "expected": notes.unattainable_share_text(q, test, group) if count == 1 else "",
                "measured": about(q.why_off(test, group, count)),
                "study_costs": about(q.why_off(test, group, count, True)),
            },
        )

    def cpu_time(policy: str, group: str, count: int) -> FigureComparison:
        why = """Derived from the processes' demand in these runs, including system calls; it may differ slightly
        under another policy."""
        return FigureComparison(
            measured=q.share(test, group, policy, count),
            ideal=q.ideal_share(test, group, policy, count),
            near_distance=q.near_share(test, group, policy, count),
            shows_ideal=policy == SHIPPED,
            notes={"ideal": " ".join(why.split()) if q.by_demands(test, policy, count) else ""},
        )

    page.compared(
        f"study-1-table-{lottery.table}",
        f"The study's table {lottery.table}: {lottery.title}",
        ["group", "CPUs"],
        {
            (title, count): (group, count)
            for group, title in lottery.rows.items()
            for count in q.counts
        },
        {
            "% of selections, the study's program": selections,
            **{
                f"% of CPU time, all compete, {policy}": partial(cpu_time, policy)
                for policy in q.lotteries_run
            },
        },
        q.how([q.original(test), q.competition(test)], q.lotteries_run),
    )


# --- all policies, and the study's proposals


def _write_all_policies(page: Writer, q: Queries, suite: str) -> None:
    def completion(count: int, test: str, policy: str) -> MeasuredCell:
        if policy == "ideal":
            return MeasuredCell(Measurement((q.ideal(suite, test, count, True),)), muted=True)
        return MeasuredCell(q.completion(suite, test, count, policy))

    page.measured(
        f"study-1-policies-{suite}",
        f"The {suite} tests under all policies: ticks until all have ended",
        ["test", "policy"],
        {
            (q.rows[test], policy): (test, policy)
            for test in q.tests
            for policy in ("ideal", *q.policies_run(q.experiment(suite, test)))
        },
        _quantities_by_cpus(q, completion),
        "Policies without a row were not run.",
    )


def _write_lottery_policies(page: Writer, q: Queries) -> None:
    """Adds the table of the lottery tests under all policies."""
    page.measured(
        "study-1-policies-lottery",
        "The lottery tests under all policies: points off the ideal share",
        ["test", "policy"],
        {
            (f"{lottery.table}: {lottery.title}", policy): (test, policy)
            for test, lottery in q.lotteries.items()
            for policy in q.policies_run(q.competition(test))
        },
        _quantities_by_cpus(q, lambda count, test, policy: q.off_ideal_share(test, policy, count)),
        """The ideal follows from the tickets, also under policies without tickets. A time slice of `wrr` is 10 ms for
        each unit of weight, 50 ms by default, so few processes run in a short window. Policies without a row were not
        run.""",
    )


def _write_proposals(page: Writer, q: Queries) -> None:
    page.section("What the study proposes (section 8)")
    page.text(f"""
    Section 8 of the study proposes improvements. schedlab has all of them except finer locks: as tunables that can be
    set while the system runs, as the policy `hybrid`, and as system calls.

    - **Section 8.1**: measured together, `priority:proposed` against `priority`.
        - Age faster while a process waits for over 100 ticks: tunables `stalled_after` and `stalled_interval`.
        - Adjust priorities by behaviour, up for an I/O-bound process and down for a process that computes: tunable
          `behaviour`. The study uses `wait_ticks`; schedlab counts ticks asleep.
        - Place new processes by the sum of 10 − priority: tunable `placement`.
        - Fewer levels, and a bitmap of the non-empty ones: tunable `level_width`; the bitmap is in all presets of
          `priority`. Tunable `scan` looks at each level's list instead, as the study does.
    - **Section 8.2**: tunables of `lottery:thesis`. Tables 3 to 8 compare `lottery`, which has some of them by
      default, with `lottery:thesis`. The page of proposals has each alone, and all together.
        - Migrate processes so that the CPUs' sums of tickets stay equal: `balance`, 1 as proposed, 2 for fair shares,
          as in `lottery`.
        - Let counts of selections decay faster, and let no process wait beyond a limit: `decay_interval`,
          `recent_penalty`, `wait_limit`.
        - A first time slice for each new process within 10 ticks: `newcomer_limit`.
        - A better random number generator, such as a Mersenne Twister: `generator` 4; 3 is a linear congruential one.
        - More tickets for a process that waits for I/O, fewer for a process that computes: `adaptation`. In
          `lottery`, `compensation` has this effect for processes that sleep.
    - **Section 8.3**
        - Levels of priority, and a lottery within each: the policy `hybrid`, measured against `priority`. A call of
          `setpriority` or `settickets_pid` with a PID of -n sets them for all processes of group n.
        - Balance the load of all CPUs every 500 ticks: `priority:thesis`, tunable `balancing`; `lottery:thesis`,
          tunables `balance` and `balance_interval`. `priority` balances at each tick, measured together with the
          others against `{q.policies["priority"]}`.
        - A system call for figures of processes and CPUs: `getstats`, `getpinfo`, `getcpustats`, `sched_status`, and
          the event trace, from which this report is made. The trace corresponds to section 3.1's `sched_log`, which
          records events for debugging and is off in the study's tests.
        - Finer locks for the queues and for single processes, or none: in xv6, one lock guards the table of processes.
          In schedlab each run queue has a lock, each process has one, and the tree of processes has one. CPUs wait for
          the locks of run queues for at most 0.43 % of their time if all CPUs share one queue (1.4 % on an emulator
          with caches), and for at most 0.01 % under the study's schedulers, which have a queue for each CPU. For the
          locks of processes they wait for at most 0.03 % (`./schedlab dev bench contention`), or 5.2 % if Spike runs
          each CPU for turns of 5,000 instructions. Finer locks could gain no more.""")
    if changes := q.selection_overhead():
        page.item(f"""**Selection overhead**, which fewer levels and a bitmap potentially halve (section 8.1): compared
        with eleven lists that are scanned, a decision of the schedlab kernel takes fewer instructions, by
        {listed([f"{percent:.1f} % ({test})" for test, percent in changes.items()])}.""")
    for count in (1, 2):
        with page.if_measured():
            fairness = {name: q.fairness_with(name, count) for name in q.generators}
            page.item(f"""**Generators**, {cpus_text([count])}: fairness of shares by tickets (Jain's index) is
            {listed([f"{value:.4f} with {name}" for name, value in fairness.items()])}. In order:
            {q.order(fairness, falling=True)} (≈: not significant).""")
    if q.suite_ran("priority"):
        _write_proposed_priorities(page, q)
    if q.lottery_ran():
        for count in q.counts:
            if both := q.both_lotteries(count):
                page.item(f"""`lottery` and `lottery:thesis` on {cpus_text([count])}: shares differ from the ideal by
                {both.new:.1f} points instead of {both.old:.1f} (mean over {both.tables} of {len(q.lotteries)}
                tables).""")
        page.text("""
        This competition is schedlab's: a gate holds all processes until the last is forked, so every
        queue is empty at each fork. The study's program has no gate, so these differences do not show what the
        proposals would gain in it.""")


def _write_future_work(page: Writer, q: Queries) -> None:
    """Adds the subsection on the servers that the study plans."""
    setups = [(name, count) for name, count in q.networks.items() if q.ran(name)]
    if not setups:
        return
    page.section("Network-bound work and energy (section 9)")
    page.text("""
    Section 9 names both as future work, besides multilevel feedback queues and real-time scheduling. `mlfq` is in the
    table below, `edf` in the one after it. A network card's interrupts deliver packets. Each of eight
    servers takes a packet, computes for it, and waits a tick for another machine; another process always computes.
    Energy is a proxy: the CPUs' busy time, a tenth of their idle time, and 20 µs for each wake-up of a CPU from
    idle.""")
    columns = {
        "wake-up latency, median (ms)": ("wakeup_latency_median_ns", 1e-6),
        "99th percentile (ms)": ("wakeup_latency_p99_ns", 1e-6),
        "CPU wake-ups": ("switches_from_idle", 1),
        "idle (CPU-s)": ("idle_ns", 1e-9),
        "energy, proxy (CPU-s)": ("energy_proxy_ns", 1e-9),
    }

    def served(name: str, policy: str) -> Measurement:
        """Returns the CPU time of the servers, in seconds."""
        value = pl.col("running_ns").first() * 1e-9
        return q.of(name, policy, value, q.of_group("server"))

    def summed_up(column: str, factor: float, name: str, policy: str) -> Measurement:
        return q.summary(name, policy, column, factor)

    page.measured(
        "study-1-network",
        "Eight network-bound servers and a process that computes",
        ["CPUs", "policy"],
        {
            (count, policy): (name, policy)
            for name, count in setups
            for policy in q.policies_of(name)
        },
        [
            Quantity("CPU time of servers (s)", served),
            *(Quantity(title, partial(summed_up, *what)) for title, what in columns.items()),
        ],
        q.how([name for name, _ in setups]),
        digits=2,
    )
    if q.ran(q.real_time):
        page.text("""
        Two tasks with deadlines need 91 % of one CPU: 4.9 of each 10 ms, and 5.9 of each 14 ms. `edf` runs the task
        with the earliest deadline first.""")
        page.measured(
            "study-1-real-time",
            "Real-time scheduling: missed deadlines, %",
            ["policy"],
            q.policies_of(q.real_time),
            [Quantity(task, partial(q.missed, task)) for task in ("fast", "slow")],
            q.how(q.real_time),
        )


def _write_proposed_priorities(page: Writer, q: Queries) -> None:
    def completion(policy: str, test: str, count: int) -> Measurement:
        return q.completion("priority", test, count, policy)

    page.measured(
        "study-1-proposed-completion",
        "The priority tests with the proposals of section 8: ticks until all have ended",
        ["test", "CPUs"],
        {
            (q.rows[test], count): (test, count)
            for test in q.tests
            for count in q.counts
            if q.other_policy_ran(test, count)
        },
        [
            *(Quantity(policy, partial(completion, policy)) for policy in q.proposed),
            Quantity("ideal", partial(q.ideal, "priority", until_all_ended=True), muted=True),
        ],
        """`priority` is the built-in policy, without the study's quirks; `priority:proposed` also has the proposals
        of section 8.1. Tests that ran only under `priority:passes` have no row.""",
    )
    by_passes, shipped, proposed, hybrid = q.proposed
    for before, after in ((by_passes, proposed), (shipped, proposed), (shipped, hybrid)):
        _write_changes(page, q, before, after)
    if turnarounds := q.turnarounds(q.proposed):
        page.item(f"""The effect of priorities: in I/O-bound on {cpus_text([turnarounds.count])}, the mean
        turnarounds of
        priority 0 and of priority 5 are {_turnarounds_text(q, q.proposed)}, in ticks.""")


def _write_changes(page: Writer, q: Queries, before: str, after: str) -> None:
    """Adds a sentence on how times change from one policy to another."""
    changes = q.changes(before, after)
    if not changes.setups:
        page.item(f"`{after}` and `{before}` were not both run, so they cannot be compared.")
        return
    page.item(f"`{after}` compared with `{before}`, in ticks until all have ended:")
    setups = format_count(changes.setups, "configuration")
    if not changes.shorter and not changes.longer:
        page.more(f"none of {setups} changes by over {q.notable_percent:.0f} %.")
        return
    page.more(f"""in {len(changes.shorter)} of {setups} shorter by over {q.notable_percent:.0f} %, in
    {len(changes.longer)}
    longer.""")
    for what, most in (("Shortened", changes.shorter[:1]), ("Lengthened", changes.longer[:1])):
        for change in most:
            page.more(
                f"""{what} most: {q.rows[change.test]} on {cpus_text([change.count])}, {change.old:.1f} →
            {change.new:.1f}."""
            )

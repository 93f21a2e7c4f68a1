# SPDX-License-Identifier: MIT
"""The page of study 3: three schedulers under six metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from schedlab.report.charts import levels
from schedlab.report.model import Cell, Page
from schedlab.report.studies.page_writer import (
    MeasuredCell,
    Quantity,
    Statement,
    Writer,
    line,
    value_of,
)
from schedlab.report.studies.study_3 import METRICS, Queries
from schedlab.report.study_tables import Comparison, Measured
from schedlab.report.wording import listed
from schedlab.studies.experiment import TICK_NS
from schedlab.studies.figures import Figure


def make(q: Queries) -> Page:
    """Returns the page."""
    page = Writer(q.study, "Study 3: three schedulers, six metrics")
    with page.known(page.lead):
        page.lead(f"""Of the fifteen best values of its tables, the feedback queue (MLFQ) has {q.best("MLFQ"):.0f} in
        the measurements, {q.best_in_texts("MLFQ"):.0f} of them significantly. Two of the five tables rank workloads,
        not schedulers.""")
    page.lead(q.failures())
    _in_short(page, q)
    _what_was_measured(page, q)
    _samples(page, q)
    page.section("Tables 1 to 5")
    _cpu_time(page, q)
    for write in (_turnaround, _response, _throughput, _overhead, _fairness):
        write(page, q)
    _predictability(page, q)
    _claims(page, q)
    if q.ran_reading():
        _two_readings(page, q)
    if q.remedies():
        _drawbacks(page, q)
    _inversion(page, q)
    page.section("The built-in policies")
    page.text("""
    The same work on three CPUs. Turnarounds of the CPU-bound workload depend on the parent, as explained above.""")
    page.measured(
        "study-3-policies",
        "Mean turnaround and response, ticks",
        ["policy"],
        q.shipped,
        [
            Quantity(name, partial(q.metric, name, workload), workload, METRICS[name].digits)
            for workload in q.workloads
            for name in ("turnaround", "response")
        ],
    )
    return page.page(q.trials)


def _per_scheduler(
    q: Queries, measure: Callable[[str], Measured], decimals: int = 1, unit: str = ""
) -> str:
    """Returns a measurement under each scheduler: `20.4 (RR), 16.1 (Lottery) and 14.4 (MLFQ)`."""
    return listed(
        [f"{measure(scheduler):.{decimals}f}{unit} ({scheduler})" for scheduler in q.schedulers]
    )


def _in_short(page: Writer, q: Queries) -> None:
    page.section("In short")
    rr, mlfq = (q.printed("throughput", "Mixed", scheduler) for scheduler in ("RR", "MLFQ"))
    page.text(f"""
    **Claimed.** A feedback queue improves on round-robin and a lottery in performance, at the cost of fairness. In
    turnaround, response, throughput, overhead and fairness of three workloads, it has {q.best_printed("MLFQ")} of the
    fifteen best values, and in the mixed workload {value_of(mlfq) / value_of(rr):.1f} times round-robin's
    throughput.""")
    mixed = partial(q.metric, workload="Mixed")
    with page.known():
        times = (
            mixed("throughput", scheduler="MLFQ").value / mixed("throughput", scheduler="RR").value
        )
        page.text(f"""
        **Measured.** In the mixed workload, a new process waits {mixed("response", scheduler="MLFQ"):.2f} ticks for
        its first time slice under MLFQ (round-robin: {mixed("response", scheduler="RR"):.2f}) and ends after
        {mixed("turnaround", scheduler="MLFQ"):.1f} ({mixed("turnaround", scheduler="RR"):.1f}); the throughput is
        {times:.2f} times round-robin's.""")
    page.text("""
    **Teaches.** Throughput and overhead of such a test depend on when the last process was forked and on how long
    CPUs were idle. A scheduler decides which process waits, which response and turnaround show.""")
    page.dotted(
        "study-3-in-short",
        "Mean turnaround of the three workloads",
        "million cycles, or ticks",
        {
            f"{workload}, {scheduler}": (
                q.metric("turnaround", workload, scheduler),
                value_of(q.printed("turnaround", workload, scheduler)),
            )
            for workload in q.workloads
            for scheduler in q.schedulers
        },
        caption=f"Published: million cycles; measured: ticks. {_how(q)}",
    )


def _how(q: Queries) -> str:
    return q.how(q.workloads.values(), q.schedulers.values())


def _what_was_measured(page: Writer, q: Queries) -> None:
    page.section("What was measured")
    page.text(f"""
    - **Workloads.** *CPU-bound*: 40 processes that compute. *IO-bound*: 40 processes that create and write a file.
      *Mixed*: 50 processes, two thirds of which compute; they are forked in groups of five, with a sleep after each
      group. The study gives only the numbers of processes. Their work was derived from its tables.
    - **Units.** The clock of the study's kernel counts a million cycles from one timer tick to the next. So *a
      million cycles are a tick*, and this page uses both units.
    - **Schedulers.** Round-robin over the process table (`rr:table-scan`); a lottery with 100 tickets for each
      process (`lottery:equal-lfsr`); a feedback queue with quanta of 1, 2 and 4 ticks, an unlimited quantum on the
      lowest level, and no boost (`mlfq:four-quanta`).
    - **CPUs.** Three, the default of xv6's makefile. This is our assumption: the study does not say how many it had.
    - **Time slices.** Section 4.1.3 checks the quantum when a process returns to the scheduler. This page assumes
      that it returns at each tick, as in xv6. [Two readings](#two-readings-of-the-time-slice) shows the other
      reading.
    - **Study costs.** *Study costs* has forks that take longer, as on the machines of studies 1 and 4: by
      {q.longer("fork", "RR", 3):.2f} ticks under round-robin, {q.longer("fork", "Lottery", 3):.2f} under the lottery
      and {q.longer("fork", "MLFQ", 3):.2f} under MLFQ. With these, the throughput of the CPU-bound workload equals
      the study's. If slow forks also explained the study's other figures, the measured figures would be near them.
    - **Seeds.** The study printed means of ten runs. The measured runs differ in their seeds, which change the times
    of the forks and the lottery's draws. In brackets: the 95 % interval of the mean.""")


def _samples(page: Writer, q: Queries) -> None:
    """Adds its figures 1 and 2. Their only published numbers are the tickets."""
    rr, lottery = "s3-sample-rr", "s3-sample-lottery"
    if not q.ran(rr) or not q.ran(lottery):
        return
    page.section("Sample schedules: figures 1 and 2")
    page.schedule(
        "study-3-figure-1",
        "Round-robin of three tasks: the study's figure 1",
        q.first_trace(rr, "RR", 1),
        caption=f"""Published: the order A, B, C of section 3.1.1. It gives no lengths, so each time slice is drawn as
        one tick. {q.how(rr)}""",
        published=q.sample_order(),
    )
    page.dotted(
        "study-3-figure-2",
        "Lottery of three tasks: the study's figure 2",
        "share of the CPU, %",
        {
            f"{group}, {tickets}": (q.sample_share(lottery, group), 100 * tickets / 8)
            for group, tickets in (("A", 2), ("B", 1), ("C", 5))
        },
        caption=f"""Published: the probabilities of section 3.1.2; B's is a fifth of C's and half of A's. Each row: a
        task and its tickets. {q.how(lottery)}""",
    )


def _cpu_time(page: Writer, q: Queries) -> None:
    time, overhead = "% of the CPUs' time", "overhead, %"
    page.measured(
        "study-3-cpu-time",
        "Use of the CPUs' time",
        ["workload, scheduler"],
        {
            f"{workload}, {scheduler}": (workload, scheduler)
            for workload in q.workloads
            for scheduler in q.schedulers
        },
        [
            Quantity("the processes", partial(q.part_of_time, "running_ns"), time),
            Quantity("the parent", partial(q.part_of_time, "root_running_ns"), time),
            Quantity("idle", partial(q.part_of_time, "idle_ns"), time),
            Quantity("scheduler", q.overhead, overhead),
            Quantity(
                "scheduler and idle, as in the study", partial(q.metric, "overhead"), overhead
            ),
        ],
        f"The first three add up to 100 %; the scheduler's time is part of them. {_how(q)}",
        digits=2,
    )


def _table(page: Writer, q: Queries, name: str, unit: str) -> None:
    number = METRICS[name].table
    page.compared(
        f"study-3-table-{number}",
        f"{name.capitalize()}, {unit}: the study's table {number}",
        ["scheduler"],
        list(q.schedulers),
        {workload: partial(_comparison, q, name, workload) for workload in q.workloads},
        q.how(q.workloads.values()),
    )


def _comparison(q: Queries, name: str, workload: str, scheduler: str) -> Comparison:
    ideal = q.ideal(name, workload, scheduler)
    return Comparison(
        q.printed(name, workload, scheduler),
        q.metric(name, workload, scheduler),
        q.metric(name, workload, scheduler, True),
        costs_run=q.on_their_costs(q.workloads[workload]),
        ideal=ideal.mean if isinstance(ideal, Measured) else ideal,
        decimals=METRICS[name].digits,
        counted=not q.gave_a_constant(q.printed(name, workload, scheduler)),
        notes={
            "study_costs": "The costs are derived from this cell, so it agrees by definition."
            if q.gave_a_constant(q.printed(name, workload, scheduler))
            else "",
            "ideal": _about_ideal(q, name) if workload == "CPU-bound" else "",
        },
    )


def _about_ideal(q: Queries, name: str) -> str:
    if name == "turnaround":
        return line(f"""Three CPUs that run nothing else run each process to its end, in the order of arrival of these
        runs. For equal processes, no schedule without preemption has a lower mean. If all arrived at once:
        {q.batch.least_turnaround:.1f}; if they also shared the CPUs equally: {q.batch.shared_turnaround:.1f}.""")
    if name == "throughput":
        return (
            f"40 processes of {q.work} ticks on three CPUs that run nothing else; all processes"
            " are present at the start."
        )
    return "Equal processes with equal turnarounds." if name == "fairness" else ""


def _turnaround(page: Writer, q: Queries) -> None:
    page.subsection("Turnaround")
    _table(page, q, "turnaround", "million cycles, or ticks")
    page.text("**CPU-bound.**")
    with page.known(page.more):
        page.more(f"""The last process is forked {_per_scheduler(q, partial(q.last_fork, "CPU-bound"))}
        ticks after the first: the parent that forks them competes with its children for the CPUs, and waits for
        {_per_scheduler(q, partial(q.parent_waits, "CPU-bound"))} ticks in all. If the children start later, fewer run
        at a time, and each ends sooner. So a scheduler gets a short turnaround by making the parent wait. The ideal,
        which has the same arrivals, is also shorter. The study says neither when its processes started nor how long
        they computed.""")
    with page.known():
        slow = partial(q.metric, "turnaround", "CPU-bound", costs=True)
        theirs = partial(q.printed, "turnaround", "CPU-bound")
        page.text(f"""
        Slow forks do not explain the study's turnarounds. With study costs, the throughput agrees, but children start
        one at a time and end after {slow(scheduler="RR"):.1f} ticks (RR), {slow(scheduler="Lottery"):.1f} (Lottery)
        and {slow(scheduler="MLFQ"):.1f} (MLFQ); published: {theirs("RR")}, {theirs("Lottery")} and {theirs("MLFQ")}.
        So the study's processes started closer together. This is not explained.""")
    page.text("**IO-bound.**")
    with page.known(page.more):
        blocked, waiting, running = (
            partial(q.mean_time, f"{state}_ns", "IO-bound")
            for state in ("blocked", "waiting", "running")
        )
        page.more(f"""A process is blocked for {_per_scheduler(q, blocked)} ticks, waits for a CPU for
        {_per_scheduler(q, waiting)} and
        runs for {_per_scheduler(q, running, 2)}.""")
    if most := q.mostly_blocked_on():
        page.more(f"""Of the blocked time, {most.part:.0f} % is spent waiting for the {most.cause} (round-robin, seed
        {most.seed}). This wait is long under any scheduler.""")
    page.text("**Mixed.**")
    with page.known(page.more):
        page.more(f"""Processes that compute take {_per_scheduler(q, partial(q.group_turnaround, "cpu"))} ticks, and
        processes that write {_per_scheduler(q, partial(q.group_turnaround, "io"))}.""")
        if below := q.waits_below_the_top():
            page.more(f"""Under MLFQ, processes that compute spend {below.part:.0f} % of their waiting time below the
            highest level (seed {below.seed}): they have used up their first quantum, and processes that are new or
            return from the disk run first.""")
    page.dotted(
        "study-3-figure-3",
        "Turnaround of the IO-bound workload: the study's figure 3",
        "mean turnaround, ticks",
        {
            scheduler: (
                q.metric("turnaround", "IO-bound", scheduler),
                value_of(q.printed("turnaround", "IO-bound", scheduler)),
            )
            for scheduler in q.schedulers
        },
        caption="Mean turnaround of 40 processes that write a file.",
    )
    page.doubts("table 1")


def _response(page: Writer, q: Queries) -> None:
    page.subsection("Response")
    _table(page, q, "response", "million cycles, or ticks")
    page.text("""
    **CPU-bound and mixed.** Under MLFQ a new process starts on the highest level, ahead of all processes that have
    run for a tick. Under the other two policies it waits behind them.""")
    with page.known():
        idle = partial(q.part_of_time, "idle_ns", "IO-bound")
        page.text(f"""
        **IO-bound.** The CPUs are idle for {_per_scheduler(q, idle, 0, " %")} of the time, so a new process usually
        gets a CPU at once under any policy: {_per_scheduler(q, partial(q.thousandths, "response", "IO-bound"), 0)}
        thousandths of a tick.""")
    rr, lottery = (q.printed("response", "IO-bound", scheduler) for scheduler in ("RR", "Lottery"))
    page.more(f"""In the study, the lottery's response was {value_of(lottery) / value_of(rr):.0f} times round-robin's.
    The measurements do not show this; the published figure is not explained.""")
    page.doubts("table 2")


def _throughput(page: Writer, q: Queries) -> None:
    page.subsection("Throughput")
    _table(page, q, "throughput", "processes in a million cycles, or in a tick")
    with page.known():
        page.text(f"""
        **CPU-bound.** {_per_scheduler(q, q.throughput_of_ideal, 1, " % of the ideal")}. The rest is the parent's time
        and the idle time (see the table above), and the time to start and end a process. The study's figure for
        round-robin is lower by the time in which its CPUs schedule and idle; the processes' work was derived from
        this figure.""")
    with page.known():
        page.text(f"""
        **Mixed.** The throughput counts until the last process has ended, so it depends on when the last process is
        forked. The parent waits for a CPU for {_per_scheduler(q, partial(q.parent_waits, "Mixed"))} ticks in all, and
        forks its last child {_per_scheduler(q, partial(q.last_fork, "Mixed"))} ticks after the first. It sleeps often
        and gets a new quantum each time, so it stays on a high level under MLFQ. The run ends sooner because the
        parent runs first.""")
    page.doubts("table 3")


def _overhead(page: Writer, q: Queries) -> None:
    page.subsection("Overhead")
    _table(page, q, "overhead", "% of the CPUs' time, including idle time")
    with page.known():
        parts = [
            f"{q.overhead(workload, 'RR'):.2f} of {q.metric('overhead', workload, 'RR'):.1f} % ({workload})"
            for workload in q.workloads
        ]
        page.text(f"""
        The study's overhead is all time between two processes, including idle time. Under round-robin, the scheduler
        itself takes {listed(parts)}. During the rest, there was nothing to run. So the table ranks workloads and
        schedulers by idle time; the table of the CPUs' time above separates the two. The amount of idle time in the
        published figures is not known.""")
    page.doubts("table 4")


def _fairness(page: Writer, q: Queries) -> None:
    page.subsection("Fairness")
    _table(page, q, "fairness", "Jain's index")
    page.text(
        "Jain's index of turnaround is 1 if all processes take equally long, even if their work differs."
    )
    with page.known(page.more):
        page.more(f"""In the mixed workload, processes that compute take
        {_per_scheduler(q, partial(q.group_turnaround, "cpu"))} ticks and processes that write
        {_per_scheduler(q, partial(q.group_turnaround, "io"))}. The index is high if the computing processes wait
        until they take as long as the others. It does not show that the CPU was shared more evenly.""")
    page.doubts("table 5")


def _predictability(page: Writer, q: Queries) -> None:
    page.section("Predictability: figures 4 and 5")
    page.text("""
    The study draws box plots of response times and uses their interquartile range as predictability. It prints no
    numbers; its text says of figure 4 that MLFQ varies least and the lottery most.""")
    page.show(q.response_chart("Mixed", 4), q.response_chart("CPU-bound", 5))
    page.measured(
        "study-3-predictability",
        "Interquartile range of response, ticks",
        ["scheduler"],
        {
            **{f"{name} ({policy})": name for name, policy in q.schedulers.items()},
            **{policy: policy for policy in q.shipped},
        },
        [Quantity(workload, partial(q.spread, workload)) for workload in q.workloads],
        f"""Over the processes of a run; the mean over runs. Below the study's three: the built-in policies.
        {q.how(q.workloads.values())}""",
        digits=3,
    )


def _claims(page: Writer, q: Queries) -> None:
    page.section("What the study claims")
    page.text("""
    Section 5 of the study derives these statements from its tables. The column *published tables* computes the same
    statement from the printed figures; *measured* computes it from the runs of this report, seed by seed. ≈ marks a
    difference that is not significant (95 %, seed by seed).""")
    page.statements(
        "study-3-claims",
        "Statements of section 5",
        ["section", "the study says", "workload", "figure", "published tables", "measured"],
        _statements(q),
        shared=2,
    )
    page.other_doubts()


def _statements(q: Queries) -> Iterator[tuple[Statement, ...]]:
    for workload in ("IO-bound", "Mixed"):
        for other in ("RR", "Lottery"):
            yield (
                "5.3",
                f"MLFQ's throughput is larger than {other}'s by, %",
                workload,
                q.figure("section 5.3", f"MLFQ over {other}", workload),
                f"{q.gain_printed('throughput', workload, 'MLFQ', other):.0f}",
                q.gain(
                    *(q.metric("throughput", workload, scheduler) for scheduler in ("MLFQ", other))
                ),
            )
    responses = [
        value_of(q.printed("response", "CPU-bound", scheduler)) for scheduler in ("Lottery", "RR")
    ]
    yield (
        "5.2",
        "Lottery's mean response is longer than RR's (ratio)",
        "CPU-bound",
        None,
        f"{responses[0] / responses[1]:.2f}",
        MeasuredCell(
            q.ratio(
                *(q.metric("response", "CPU-bound", scheduler) for scheduler in ("Lottery", "RR"))
            ),
            2,
        ),
    )
    yield (
        "5.2",
        "because RR guarantees each process a first turn: the longest response (ratio)",
        "CPU-bound",
        None,
        None,
        MeasuredCell(
            q.ratio(
                *(q.longest_response("CPU-bound", scheduler) for scheduler in ("Lottery", "RR"))
            ),
            2,
        ),
    )
    printed = [value_of(q.printed("overhead", "Mixed", scheduler)) for scheduler in ("RR", "MLFQ")]
    yield (
        "5.4",
        "ratio of RR's overhead to MLFQ's",
        "Mixed",
        q.figure("section 5.4", "RR over MLFQ", "Mixed"),
        f"{printed[0] / printed[1]:.1f}",
        q.ratio(*(q.metric("overhead", "Mixed", scheduler) for scheduler in ("RR", "MLFQ"))),
    )
    for what, column in (
        ("", "overhead_with_idle_share"),
        (": the scheduler's own part", "overhead_share"),
    ):
        yield (
            "5.4",
            f"boosts raise MLFQ's overhead (ratio){what}",
            "Mixed",
            None,
            None,
            MeasuredCell(
                q.ratio(*(q.boosted_overhead(column, which) for which in ("on", "off"))), 2
            ),
        )
    why = """Computed for n = 40, not measured: (1 − 1/n)ⁿ, which rises to 1/e = 36.8 % as n grows. In a run, the
    number of waiting processes changes from draw to draw."""
    undrawn = Cell(f"{100 * (1 - 1 / 40) ** 40:.1f}", why=line(why))
    drawn: Figure | None = q.figure("section 5.5", "Lottery", "any")
    yield "5.5", "processes not drawn in n draws among n, %", None, drawn, None, undrawn
    for rank in ("narrowest", "widest"):
        whose = q.whose_spread(rank)
        place = q.spread_rank(whose)
        yield (
            "5.6",
            f"{whose} has the {rank} spread of response (rank)",
            "Mixed",
            q.figure("figure 4", whose, "Mixed"),
            None,
            Cell(place, why=q.spreads_text()) if isinstance(place, str) else place,
        )
    for section, statement, workloads, name, falling in (
        ("5.1", "MLFQ has the longest turnaround", ("CPU-bound", "Mixed"), "turnaround", True),
        ("5.1", "RR and lottery have similar turnarounds", q.workloads, "turnaround", True),
        ("5.2", "MLFQ responds first", q.workloads, "response", False),
        ("5.4", "MLFQ has the least overhead", q.workloads, "overhead", False),
        ("6", "RR is the fairest, then lottery, MLFQ last", q.workloads, "fairness", True),
    ):
        for workload in workloads:
            published, measured = (
                order(name, workload, falling) for order in (q.order_published, q.order_measured)
            )
            yield section, statement, workload, None, published, measured
    best = MeasuredCell(q.best("MLFQ"), 0)
    statement = "MLFQ improves results across the board (best of 15 cells)"
    yield "5", statement, "all", None, str(q.best_printed("MLFQ")), best


def _two_readings(page: Writer, q: Queries) -> None:
    page.section("Two readings of the time slice")
    page.text("""
    The study decrements a quantum at each tick and checks it when the process returns to the scheduler (section 4.1.3).
    It does not say when a process returns. *At each tick*, as in xv6, a time slice is one tick and tasks of one level
    alternate (`mlfq:four-quanta`): the tables above. *When its quantum ends*, a time slice lasts 1, 2 or 4 ticks, and
    has no end on the lowest level (`mlfq:whole-quanta`). The study prints the last row.""")
    readings = {
        "at each tick": q.schedulers["MLFQ"],
        "when its quantum ends": q.uninterrupted_quanta,
    }

    def published(name: str, workload: str) -> MeasuredCell:
        return MeasuredCell(
            Measured((value_of(q.printed(name, workload, "MLFQ")),)), METRICS[name].digits
        )

    def value(name: str, workload: str, policy: str | None) -> Measured | MeasuredCell:
        return q.reading(name, workload, policy) if policy else published(name, workload)

    page.measured(
        "study-3-readings",
        "MLFQ under both readings, and the published figures",
        ["a process returns"],
        {**readings, "published": None},
        [
            Quantity(workload, partial(value, name, workload), name, METRICS[name].digits)
            for name in METRICS
            for workload in q.workloads
        ],
        f"Turnaround and response in ticks, throughput per tick, overhead in %. {_how(q)}",
    )


def _drawbacks(page: Writer, q: Queries) -> None:
    page.section("Remedies for the drawbacks that the study names")
    page.text("""
    Section 3.1.3 names tasks that its feedback queue serves badly, and four remedies that the study had no time to
    build: a quantum that counts over several rounds, and raising a task that does much I/O, that has starved, or that
    a higher task waits for. The simulator runs each remedy alone under the study's queue, in a test where it has an
    effect. The last column is the built-in `mlfq`, which has a boost, allotments over all rounds, and credit.""")
    page.measured(
        "study-3-drawbacks",
        "Each remedy alone, in a test where it has an effect",
        ["remedy", "metric"],
        {
            (
                remedy.proposes,
                f"{remedy.test.shows}, {'%' if remedy.test.column == 'share' else 'ticks'}",
            ): remedy.test
            for remedy in q.remedies()
        },
        [
            Quantity("without", lambda test: q.drawback(test, test.off)),
            Quantity("with it", lambda test: q.drawback(test, test.on)),
            Quantity("built-in mlfq", q.shipped_queue),
        ],
        f"A share in %, or a time in ticks. {q.how([remedy.test.label for remedy in q.remedies()])}",
        digits=2,
    )

    def draw(name: str, title: str, group: str, ticks: tuple[int, int], caption: str) -> None:
        begin, end = (tick * TICK_NS for tick in ticks)
        trace = q.drawback_trace(group, "on")
        page.picture(
            levels, name, title, trace, caption=caption, begin_ns=begin, end_ns=end, unit="ticks"
        )

    measured = q.drawback_of
    page.item("""**The adversary** computes nine tenths of a tick and sleeps for 20 µs, so that it never runs at a
    tick and never uses up its quantum.""")
    with page.known(page.more):
        page.more(f"""It gets {measured("gamer", "off"):.1f} % of the CPU next to three processes that compute. If its
        quantum counts over all rounds, in nanoseconds used, it gets {measured("gamer", "on"):.1f} %.""")
    draw(
        "study-3-gamer",
        "The adversary is demoted if its quantum counts over several rounds",
        "gamer",
        (0, 40),
        "First seed. The adversary uses up its quanta like the others.",
    )
    page.item("""**The late interactive task** first computes for 300 ticks, which demotes it to the lowest level.
    Then it alternately computes for a fifth of a tick and sleeps for three ticks.""")
    with page.known(page.more):
        page.more(f"""There it waits {measured("late", "off"):.1f} ticks after a wake-up, behind the processes that
        compute. If blocking raises a task by a level, it waits {measured("late", "on"):.1f} ticks.""")
    page.item("""**The starved task** computes, while new tasks keep arriving, each of which ends within its first
    quantum.""")
    with page.known(page.more):
        page.more(f"""It gets {measured("old", "off"):.2f} % of the CPU: its first quanta, after which all new tasks
        run before it. If it is raised to the top after 100 ticks of waiting, it gets {measured("old", "on"):.2f}
        %.""")
    draw(
        "study-3-starved",
        "The starved task, raised to the top after 100 ticks",
        "old",
        (90, 130),
        "First seed. New tasks follow each other on the two highest levels.",
    )
    page.item("""**The urgent task** needs a lock that a task at the lowest level holds, while short tasks arrive and
    end.""")
    with page.known(page.more):
        page.more(f"""It ends after {measured("urgent", "off"):.0f} ticks, or after {measured("urgent", "on"):.0f}
        ticks if the lock's holder is served at the level of the task that waits for the lock.""")


def _inversion(page: Writer, q: Queries) -> None:
    if not q.inverted_policies():
        page.section("Priority inversion")
        page.text("Not run.")
        return
    page.section("Priority inversion, which the study had no time to test")
    page.text(f"""
    The study names the problem and could not test it (section 4.3.3). In schedlab's test, one process of the highest
    rank, the **reader**, sleeps a tick, asks for a byte over a pipe and waits for it, five times. The **writer**, of
    the lowest rank, computes {q.byte_ticks:.0f} ticks and writes the byte. Four **hogs** of ranks between the two
    compute 50 ticks each and need neither. A rank sets priority, tickets and weight, so that each policy finds its
    attribute. All run on one CPU. If the writer were served with the reader's rank, each wait would last its
    {q.byte_ticks:.0f} ticks.""")
    wait, hogs = "a wait, ticks", "hogs while it waits"
    page.measured(
        "study-3-inversion",
        "The reader's waits for a byte",
        ["policy"],
        q.inverted_policies(),
        [
            *(
                Quantity(which, partial(q.wait, which=which), wait)
                for which in ("mean", "first", "longest")
            ),
            Quantity("ideal", lambda policy: q.byte_ticks, wait, 0),
            Quantity("of the time, %", q.hogs_part, hogs),
            Quantity("longest time slice, ticks", q.hogs_turn, hogs),
            Quantity("reader's response, ticks", q.readers_response),
        ],
        f"""From the traces: a wait is the time from the reader's block on the pipe until it runs again. *Response*:
        the time from its fork until it first runs, before its first wait. {q.how("s3-inversion")}""",
    )
    for policy in (
        "priority",
        "rr:table-scan",
        "mlfq:four-quanta",
        q.uninterrupted_quanta,
        "lottery",
        "stride",
        "wrr",
    ):
        if policy in q.inverted_policies():
            page.item(f"{_INVERTED[policy]}:")
            with page.known(page.more):
                page.more(_inverted(q, policy))
    page.show(q.inversion_picture("priority"), q.inversion_picture("rr:table-scan"))


_INVERTED = {
    "priority": "**Strict priorities** (`priority`)",
    "rr:table-scan": "**Round-robin** (`rr:table-scan`) has no ranks, and so no inversion",
    "mlfq:four-quanta": "**The study's feedback queue** (`mlfq:four-quanta`)",
    "mlfq:whole-quanta": "**The same with time slices of a whole quantum** (`mlfq:whole-quanta`)",
    "lottery": "**By tickets** (`lottery`)",
    "stride": "**By tickets** (`stride`)",
    "wrr": "**Weighted round-robin** (`wrr`)",
}


def _inverted(q: Queries, policy: str) -> str:
    """Returns the findings of a policy's traces. Raises NotMeasured."""
    if policy == "priority":
        return f"""in the first wait of {q.wait(policy, "first"):.1f} ticks, hogs have the CPU for
        {q.hogs_in_first(policy):.1f}: all the rest of their work, which no process of a higher rank needs. The policy
        does not know that the reader waits for the writer. The last wait, when the hogs have ended, is
        {q.wait(policy, "last"):.1f} ticks."""
    if policy == "rr:table-scan":
        return f"""the writer gets time slices like the hogs (of at most {q.hogs_turn(policy):.1f} ticks), and a wait
        is {q.wait(policy, "mean"):.1f} ticks."""
    if policy == "mlfq:four-quanta":
        return f"""a wait takes up to {q.wait(policy, "longest"):.1f} ticks. Writer and hogs are all demoted to the
        lowest level, where they alternate tick by tick."""
    if policy == q.uninterrupted_quanta:
        return f"""a wait takes up to {q.wait(policy, "longest"):.1f} ticks. Writer and hogs are all demoted to the
        lowest level, whose quantum has no end: there a hog has the CPU for up to {q.hogs_turn(policy):.1f} ticks
        without a break."""
    if policy == "wrr":
        ended_note = ", after the hogs have ended. So the waits are those of an idle machine."
        return f"""a wait takes {q.wait(policy, "mean"):.1f} ticks, but before its first wait the reader waits
        {q.readers_response(policy):.1f} ticks for its first time
        slice{ended_note if q.no_hog_was_left(policy) else "."}"""
    return f"""while the reader is blocked, its tickets do not count, and the writer has 1 of 41, or {100 / 41:.1f} %.
    In the first wait of {q.wait(policy, "first"):.1f} ticks, the hogs have {q.hogs_part_of_first(policy):.1f} % of
    the time."""

# SPDX-License-Identifier: MIT
"""The page of study 3: three schedulers under six metrics."""

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
from schedlab.report.study_tables import COSTS_DERIVED_FROM_CELL, FigureComparison, Measurement
from schedlab.report.wording import listed
from schedlab.studies.experiment import TICK_NS
from schedlab.studies.figures import Figure


def make_page(q: Queries) -> Page:
    """Returns the page of study 3."""
    page = Writer(q.study, "Study 3: three schedulers, six metrics")
    with page.if_measured(page.lead):
        page.lead(f"""Of the fifteen best values of its tables, the feedback queue (MLFQ) has {q.best("MLFQ"):.0f} in
        the measurements, {q.best_in_texts("MLFQ"):.0f} of them significantly. The overhead of table 4 includes idle
        time; in the measurements it is mostly idle time, not the scheduler's work.""")
    page.lead(q.failures())
    _write_summary(page, q)
    _write_method(page, q)
    _write_figures_1_and_2(page, q)
    page.section("Tables 1 to 5")
    _write_cpu_time(page, q)
    for write in (
        _write_turnaround,
        _write_response,
        _write_throughput,
        _write_overhead,
        _write_fairness,
    ):
        write(page, q)
    _write_predictability(page, q)
    _write_claims(page, q)
    if q.other_reading_ran():
        _write_interpretations(page, q)
    if q.remedies():
        _write_drawbacks(page, q)
    _write_starvation(page, q)
    _write_fifo(page, q)
    _write_inversion(page, q)
    page.section("The built-in policies")
    page.text("""
    The same work on three CPUs. Turnarounds of the CPU-bound workload depend on the times of the forks, as explained
    above.""")
    page.measured(
        "study-3-policies",
        "Mean turnaround and response, ticks",
        ["policy"],
        q.built_in,
        [
            Quantity(name, partial(q.metric, name, workload), workload, METRICS[name].digits)
            for workload in q.workloads
            for name in ("turnaround", "response")
        ],
    )
    return page.page(q.trials)


def _text_by_scheduler(
    q: Queries, measure: Callable[[str], Measurement], decimals: int = 1, unit: str = ""
) -> str:
    """Returns a measurement under each scheduler: `20.4 (RR), 16.1 (Lottery) and 14.4 (MLFQ)`."""
    return listed(
        [f"{measure(scheduler):.{decimals}f}{unit} ({scheduler})" for scheduler in q.schedulers]
    )


def _write_summary(page: Writer, q: Queries) -> None:
    page.section("In short")
    rr, mlfq = (q.printed("throughput", "Mixed", scheduler) for scheduler in ("RR", "MLFQ"))
    claimed = q.figure("section 5.3", "MLFQ over RR", "Mixed")
    page.text(f"""
    **Claimed.** A feedback queue improves on round-robin and a lottery in performance, at the cost of fairness. In
    turnaround, response, throughput, overhead and fairness of three workloads, it has {q.best_printed("MLFQ")} of the
    fifteen best values. In the mixed workload its throughput is {value_of(claimed):.0f} % larger than round-robin's
    (section 5.3); by table 3 it is {value_of(mlfq) / value_of(rr):.1f} times as large.""")
    mixed = partial(q.metric, workload="Mixed")
    with page.if_measured():
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
        caption=f"Published: million cycles; measured: ticks. {_run_conditions(q)}",
    )


def _run_conditions(q: Queries) -> str:
    """Returns the caption's text on how the runs were made."""
    return q.how(q.workloads.values(), q.schedulers.values())


def _write_method(page: Writer, q: Queries) -> None:
    """Adds the section on workloads and policies."""
    page.section("What was measured")
    page.text(f"""
    - **Workloads.** *CPU-bound*: 40 processes that compute; the study's also print a line at their end. *IO-bound*: 40
      processes that create and write a file. *Mixed*: 50 processes, two thirds of which compute; they are forked in
      groups of five, with a sleep after each group. The study gives only the numbers of processes. The rest was derived
      from its tables: {q.work} ticks of work from the throughput and overhead of round-robin, CPU-bound, in tables 3
      and 4; the sleep, which is at most 3 ticks, from the throughput of MLFQ, Mixed; and the files from the range of
      the throughputs of IO-bound in table 3. Within these limits, 2 ticks and 32 KiB are our assumptions.
    - **Units.** *We assume that a million cycles are a tick.* The study's cycles are counts of a clock; xv6 for RISC-V
      sets its timer to a million of them, 100 ms in QEMU. If the study set its timer to the 10 ms that it names, a
      million cycles are ten ticks, and its processes compute 29 ticks instead of 2.9.
    - **Schedulers.** Round-robin over the process table (`rr:table-scan`); a lottery with 100 tickets for each
      process (`lottery:equal-lfsr`); a feedback queue with quanta of 1, 2 and 4 ticks, an unlimited quantum on the
      lowest level, and no boost (`mlfq:four-quanta`).
    - **CPUs.** Three, the default of xv6's makefile. This is our assumption: the study does not say how many it had.
      It ran in QEMU inside a Docker container (section 4).
    - **Overhead.** Section 4.2.5 divides by the cycles since boot. This would include the idle time before the
      workload. This page divides by the time of the workload.
    - **Time slices.** Section 4.1.3 checks the quantum when a process returns to the scheduler. This page assumes
      that it returns at each tick, as in xv6. [Readings](#readings-of-the-time-slice) shows two others.
    - **Study costs.** *Study costs* has forks that take longer, as on the machines of studies 1 and 4: by
      {q.extra_ticks("fork", "RR", 3):.2f} ticks under round-robin, {q.extra_ticks("fork", "Lottery", 3):.2f} under
      the lottery
      and {q.extra_ticks("fork", "MLFQ", 3):.2f} under MLFQ. With these, the throughput of the CPU-bound workload equals
      the study's. If slow forks also explained the study's other figures, the measured figures would be near them.
    - **Seeds.** The study printed means of ten runs. The measured runs differ in their seeds, which change the times
    of the forks and the lottery's draws. In brackets: the 95 % interval of the mean.""")


def _write_figures_1_and_2(page: Writer, q: Queries) -> None:
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
        caption=f"""Published: the probabilities of section 3.1.2: B's is a fifth of C's, and half of A's. The text has
        "half that of B"; A must be meant. Each row: a task and its tickets. {q.how(lottery)}""",
    )


def _write_cpu_time(page: Writer, q: Queries) -> None:
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
        f"The first three add up to 100 %; the scheduler's time is part of them. {_run_conditions(q)}",
        digits=2,
    )


def _write_metric_table(page: Writer, q: Queries, name: str, unit: str) -> None:
    """Adds the study's table of a metric: published, measured and ideal values."""
    number = METRICS[name].table
    page.compared(
        f"study-3-table-{number}",
        f"{name.capitalize()}, {unit}: the study's table {number}",
        ["scheduler"],
        list(q.schedulers),
        {workload: partial(_compare_metric, q, name, workload) for workload in q.workloads},
        q.how(q.workloads.values()),
    )


def _compare_metric(q: Queries, name: str, workload: str, scheduler: str) -> FigureComparison:
    """Returns the comparison of one cell of the study's tables."""
    ideal = q.ideal(name, workload, scheduler)
    return FigureComparison(
        q.printed(name, workload, scheduler),
        q.metric(name, workload, scheduler),
        q.metric(name, workload, scheduler, True),
        costs_run=q.experiment_with_study_costs(q.workloads[workload]),
        ideal=ideal.mean if isinstance(ideal, Measurement) else ideal,
        decimals=METRICS[name].digits,
        is_counted=not q.determined_a_cost(q.printed(name, workload, scheduler)),
        notes={
            "study_costs": _calibration_text(q, name, workload, scheduler),
            "ideal": _ideal_text(q, name) if workload == "CPU-bound" else "",
        },
    )


def _calibration_text(q: Queries, name: str, workload: str, scheduler: str) -> str:
    """Returns the note of a cell that determined a cost or a size of the workload; otherwise ""."""
    if not q.determined_a_cost(q.printed(name, workload, scheduler)):
        return ""
    if (name, workload) == ("throughput", "CPU-bound"):
        return COSTS_DERIVED_FROM_CELL
    return "Not counted: a size of the workload is derived from this cell."


def _ideal_text(q: Queries, name: str) -> str:
    """Returns the caption's text on the ideal of a metric."""
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


def _write_turnaround(page: Writer, q: Queries) -> None:
    page.subsection("Turnaround")
    _write_metric_table(page, q, "turnaround", "million cycles, or ticks")
    page.text("**CPU-bound.**")
    with page.if_measured(page.more):
        page.more(f"""The last process is forked {_text_by_scheduler(q, partial(q.last_fork, "CPU-bound"))}
        ticks after the first: the parent that forks them competes with its children for the CPUs. The ideal has the
        same times of forks. The study says neither when its processes started nor how long they computed.""")
    with page.if_measured():
        slow = partial(q.metric, "turnaround", "CPU-bound", costs=True)
        theirs = partial(q.printed, "turnaround", "CPU-bound")
        page.text(f"""
        If the children start later, fewer run at a time, and each ends sooner. With study costs, forks take longer:
        the throughput agrees with the study, but children start one at a time and end after
        {slow(scheduler="RR"):.1f} ticks (RR), {slow(scheduler="Lottery"):.1f} (Lottery) and
        {slow(scheduler="MLFQ"):.1f} (MLFQ); published: {theirs("RR")}, {theirs("Lottery")} and {theirs("MLFQ")}. So
        slow forks do not explain the study's turnarounds. They are not explained.""")
    page.text("**IO-bound.**")
    with page.if_measured(page.more):
        blocked, waiting, running = (
            partial(q.mean_time, f"{state}_ns", "IO-bound")
            for state in ("blocked", "waiting", "running")
        )
        page.more(f"""A process is blocked for {_text_by_scheduler(q, blocked)} ticks, waits for a CPU for
        {_text_by_scheduler(q, waiting)} and
        runs for {_text_by_scheduler(q, running, 2)}.""")
    if most := q.mostly_blocked_on():
        page.more(f"""Of the blocked time, {most.part:.0f} % is spent waiting for the {most.cause} (round-robin, seed
        {most.seed}). This wait is long under any scheduler.""")
    page.more(f"""In the study, MLFQ's turnaround is {q.printed("turnaround", "IO-bound", "MLFQ")}, although section
    5.2 calls it one round-robin queue. The measurements do not show this; the published figure is not explained.""")
    page.text("**Mixed.**")
    with page.if_measured(page.more):
        page.more(f"""Processes that compute take {_text_by_scheduler(q, partial(q.group_turnaround, "cpu"))} ticks, and
        processes that write {_text_by_scheduler(q, partial(q.group_turnaround, "io"))}.""")
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
    page.contradictions_about("table 1")


def _write_response(page: Writer, q: Queries) -> None:
    page.subsection("Response")
    _write_metric_table(page, q, "response", "million cycles, or ticks")
    page.text("""
    **CPU-bound and mixed.** Under MLFQ a new process starts on the highest level, ahead of all processes that have
    run for a tick. Under round-robin it waits for its turn among them. Under the lottery, it has the
    same chance as each of them.""")
    with page.if_measured():
        idle = partial(q.part_of_time, "idle_ns", "IO-bound")
        page.text(f"""
        **IO-bound.** The CPUs are idle for {_text_by_scheduler(q, idle, 0, " %")} of the time, so a new process usually
        gets a CPU at once under any policy: {_text_by_scheduler(q, partial(q.thousandths, "response", "IO-bound"), 0)}
        thousandths of a tick.""")
    rr, lottery = (q.printed("response", "IO-bound", scheduler) for scheduler in ("RR", "Lottery"))
    page.more(f"""In the study, the lottery's response was {value_of(lottery) / value_of(rr):.0f} times round-robin's.
    The measurements do not show this; the published figure is not explained.""")
    page.contradictions_about("table 2")


def _write_throughput(page: Writer, q: Queries) -> None:
    page.subsection("Throughput")
    _write_metric_table(page, q, "throughput", "processes in a million cycles, or in a tick")
    with page.if_measured():
        page.text(f"""
        **CPU-bound.** {_text_by_scheduler(q, q.throughput_of_ideal, 1, " % of the ideal")}. The rest is the
        parent's time
        and the idle time (see the table above), and the time to start and end a process. The study's figure for
        round-robin is lower by the time in which its CPUs schedule and idle; the processes' work was derived from
        this figure.""")
    with page.if_measured():
        page.text(f"""
        **Mixed.** The throughput counts until the last process has ended, so it depends on when the last process is
        forked. The parent forks its last child {_text_by_scheduler(q, partial(q.last_fork, "Mixed"))} ticks after the
        first. It sleeps often and gets a new quantum each time, so it stays on a high level under MLFQ.""")
    page.contradictions_about("table 3")


def _write_overhead(page: Writer, q: Queries) -> None:
    page.subsection("Overhead")
    _write_metric_table(page, q, "overhead", "% of the CPUs' time, including idle time")
    with page.if_measured():
        texts = [
            f"{q.overhead(workload, 'RR'):.2f} of {q.metric('overhead', workload, 'RR'):.1f} % ({workload})"
            for workload in q.workloads
        ]
        page.text(f"""
        The study's overhead is all time between two processes, including idle time. Under round-robin, the scheduler
        itself takes {listed(texts)}. During the rest, there was nothing to run. So the measured table ranks workloads
        and schedulers by idle time; the table of the CPUs' time above separates the two. The amount of idle time in the
        published figures is not known.""")
    page.contradictions_about("table 4")


def _write_fairness(page: Writer, q: Queries) -> None:
    page.subsection("Fairness")
    _write_metric_table(page, q, "fairness", "Jain's index")
    page.text(
        "Jain's index of turnaround is 1 if all processes take equally long, even if their work differs."
    )
    with page.if_measured(page.more):
        page.more(f"""In the mixed workload, processes that compute take
        {_text_by_scheduler(q, partial(q.group_turnaround, "cpu"))} ticks and processes that write
        {_text_by_scheduler(q, partial(q.group_turnaround, "io"))}. The index is high if the computing processes wait
        until they take as long as the others. It does not show that the CPU was shared more evenly.""")
    page.contradictions_about("table 5")


def _write_predictability(page: Writer, q: Queries) -> None:
    """Adds the section on the spread of response times."""
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
            **{policy: policy for policy in q.built_in},
        },
        [Quantity(workload, partial(q.spread, workload)) for workload in q.workloads],
        f"""Over the processes of a run; the mean over runs. This is our reading: section 4.2.6 does not say whether
        the ranges are of one run or of all ten. Below the study's three: the built-in policies.
        {q.how(q.workloads.values())}""",
        digits=3,
    )


def _write_claims(page: Writer, q: Queries) -> None:
    """Adds the table of the study's statements with the measured figures."""
    page.section("What the study claims")
    page.text("""
    Section 5 of the study derives these statements from its tables. The column *published tables* computes the same
    statement from the printed figures; *measured* computes it from the runs of this report, seed by seed. ≈ marks a
    difference that is not significant (95 %, seed by seed).""")
    page.text("""
    Section 2 lists schedulers of Windows, Linux and macOS. This is background, which schedlab does not repeat.""")
    page.statements(
        "study-3-claims",
        "Statements of section 5",
        ["section", "the study says", "workload", "figure", "published tables", "measured"],
        _statements(q),
        page.command,
        shared=2,
    )
    page.other_contradictions()


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
    for statement, names in (
        (
            "boosts raise MLFQ's overhead (ratio)",
            {"overhead": "", "scheduler": ": the scheduler's own part"},
        ),
        (
            "boosts increase the other metrics (ratio)",
            {
                "turnaround": ": turnaround",
                "response": ": response",
                "throughput": ": throughput",
                "fairness": ": fairness",
                "spread": ": interquartile range of response (predictability)",
            },
        ),
    ):
        for name, what in names.items():
            ratio = MeasuredCell(q.boost_ratio(name), 2)
            yield "5.4", f"{statement}{what}", "Mixed", None, None, ratio
    why = """Computed for n = 40, not measured: (1 − 1/n)ⁿ, which rises to 1/e = 36.8 % as n grows. In a run, the
    number of waiting processes changes from draw to draw."""
    undrawn = Cell(f"{100 * (1 - 1 / 40) ** 40:.1f}", why=line(why))
    drawn: Figure | None = q.figure("section 5.5", "Lottery", "any")
    yield "5.5", "processes not drawn in n draws among n, %", None, drawn, None, undrawn
    for rank in ("narrowest", "widest"):
        whose = q.scheduler_of_spread(rank)
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


def _write_interpretations(page: Writer, q: Queries) -> None:
    """Adds the section on the interpretations of the study's time slices."""
    page.section("Readings of the time slice")
    page.text("""
    The study decrements a quantum at each tick and checks it when the process returns to the scheduler (section 4.1.3).
    It does not say when a process returns. *At each tick*, as in xv6, a time slice is one tick and tasks of one level
    alternate (`mlfq:four-quanta`): the tables above. *When its quantum ends*, a time slice lasts 1, 2 or 4 ticks, and
    has no end on the lowest level (`mlfq:whole-quanta`). Section 4.1.3 also sets a quantum only at creation and at a
    demotion. *At each tick, quantum kept* reads this literally: a process that blocks keeps what is left of its quantum
    (`release` 0). The other rows follow section 3.1.3. The study prints the last row.""")
    readings = {
        "at each tick": q.schedulers["MLFQ"],
        "when its quantum ends": q.uninterrupted_quanta,
        "at each tick, quantum kept": q.unrefreshed_quanta,
    }

    def published(name: str, workload: str) -> MeasuredCell:
        return MeasuredCell(
            Measurement((value_of(q.printed(name, workload, "MLFQ")),)), METRICS[name].digits
        )

    def value(name: str, workload: str, policy: str | None) -> Measurement | MeasuredCell:
        return q.reading(name, workload, policy) if policy else published(name, workload)

    page.measured(
        "study-3-readings",
        "MLFQ under three readings, and the published figures",
        ["a process returns"],
        {**readings, "published": None},
        [
            Quantity(workload, partial(value, name, workload), name, METRICS[name].digits)
            for name in METRICS
            for workload in q.workloads
        ],
        f"Turnaround and response in ticks, throughput per tick, overhead in %. {_run_conditions(q)}",
    )


def _write_drawbacks(page: Writer, q: Queries) -> None:
    """Adds the section on the drawbacks that the study names, and their remedies."""
    page.section("Remedies for the drawbacks that the study names")
    page.text("""
    Section 3.1.3 names tasks that its feedback queue serves badly, and four remedies that the study had no time to
    build: a quantum that counts over several rounds, and raising a task that does much I/O, that has starved, or that
    a higher task waits for. The simulator runs each remedy alone under the study's queue, and three of them together,
    without raising by I/O. The last column is the built-in `mlfq`, which has a boost, allotments over all rounds, and
    credit.""")
    if without := q.remedies_without_effect():
        page.more(
            f"""In {without} of the {len(q.remedies())} rows, the remedy has no significant effect."""
        )
    page.measured(
        "study-3-drawbacks",
        "The remedies, alone and together",
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
            Quantity("built-in mlfq", q.built_in_queue),
        ],
        f"A share in %, or a time in ticks. {q.how([remedy.test.label for remedy in q.remedies()])}",
        digits=2,
    )

    def draw(name: str, title: str, group: str, ticks: tuple[int, int], caption: str) -> None:
        begin, end = (tick * TICK_NS for tick in ticks)
        trace = q.drawback_trace(group, "on")
        levels_then = partial(levels, begin_ns=begin, end_ns=end)
        page.picture(levels_then, name, title, trace, caption=caption)

    measured = q.drawback_of
    page.item("""**The adversary** computes nine tenths of a tick and sleeps for 20 µs, so that it never runs at a
    tick and never uses up its quantum.""")
    with page.if_measured(page.more):
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
    with page.if_measured(page.more):
        page.more(f"""There it waits {measured("late", "off"):.1f} ticks after a wake-up, behind the processes that
        compute. If blocking raises a task by a level, it waits {measured("late", "on"):.1f} ticks.""")
    page.item("""**The starved task** computes, while new tasks keep arriving. Each new task ends within its first
    quantum.""")
    with page.if_measured(page.more):
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
    with page.if_measured(page.more):
        page.more(f"""It ends after {measured("urgent", "off"):.0f} ticks, or after {measured("urgent", "on"):.0f}
        ticks if the lock's holder is served at the level of the task that waits for the lock. Section 3.1.3 speaks of
        communication between tasks. This remedy has a run with a lock only: the holder of a lock is known, and the
        process that will write into a pipe is not.""")


def _write_starvation(page: Writer, q: Queries) -> None:
    """Adds the section on starvation under the study's three schedulers."""
    if not q.ran(q.barrage):
        return
    page.section("Starvation: sections 3.1.2, 3.1.3 and 5.5")
    page.text("""
    Section 3.1.2 says that a lottery can avoid starvation, section 3.1.3 that the feedback queue starves tasks at the
    bottom, and section 5.5 that the lottery starves some at random. The study runs no test of it. In schedlab's test,
    an *old* task computes, while *new* ones arrive without end. Each new task ends within its first quantum.""")
    with page.if_measured(page.more):
        page.more(f"""The old task gets {_text_by_scheduler(q, partial(q.under_barrage, "share"), 2, " %")} of the CPU.
        The longest wait under the lottery is {q.under_barrage("wait", "Lottery"):.0f} ticks: a task that is not drawn
        waits, and will be drawn in one of the next draws. So the lottery does not starve it.""")
    page.measured(
        "study-3-starvation",
        "A task that computes, while new tasks keep arriving",
        ["scheduler"],
        {f"{name} ({policy})": name for name, policy in q.schedulers.items()},
        [
            Quantity("of the CPU, %", partial(q.under_barrage, "share"), "the old task"),
            Quantity("longest wait, ticks", partial(q.under_barrage, "wait"), "the old task"),
            Quantity("mean response, ticks", partial(q.under_barrage, "response"), "the new tasks"),
        ],
        q.how(q.barrage),
        digits=2,
    )


def _write_fifo(page: Writer, q: Queries) -> None:
    """Adds the section on first-in-first-out, which the study names and does not run."""
    ran = {name: workload for name, workload in q.fifo.items() if q.ran(name)}
    if not ran:
        return
    page.section("First in, first out: section 1")
    page.text("""
    Section 1 says that a FIFO scheduler performs poorly and is often unfair. The study does not run one. Here
    `rr slice=1000` is one: no task uses up its time slice.""")
    page.measured(
        "study-3-fifo",
        "Round-robin, and first in, first out",
        ["workload", "policy"],
        {
            (workload, f"{title} ({policy})"): (name, policy)
            for name, workload in ran.items()
            for title, policy in q.fifo_policies.items()
        },
        [
            Quantity(metric, partial(q.metric_of, metric), digits=METRICS[metric].digits)
            for metric in ("turnaround", "response", "throughput", "fairness")
        ],
        f"Times in ticks, throughput per tick, fairness as Jain's index of turnaround. {q.how(list(ran))}",
    )
    for name, workload in ran.items():
        turnaround, fairness = (
            q.order(
                {
                    title: q.metric_of(metric, name, policy)
                    for title, policy in q.fifo_policies.items()
                },
                falling,
            )
            for metric, falling in (("turnaround", False), ("fairness", True))
        )
        with page.if_measured(page.item):
            page.item(f"**{workload}**, best first: turnaround {turnaround}; fairness {fairness}.")


def _write_inversion(page: Writer, q: Queries) -> None:
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
            page.item(f"{_INVERSION_TITLES[policy]}:")
            with page.if_measured(page.more):
                page.more(_inversion_text(q, policy))
    page.show(q.inversion_picture("priority"), q.inversion_picture("rr:table-scan"))


_INVERSION_TITLES = {
    "priority": "**Strict priorities** (`priority`)",
    "rr:table-scan": "**Round-robin** (`rr:table-scan`) has no ranks, and so no inversion",
    "mlfq:four-quanta": "**The study's feedback queue** (`mlfq:four-quanta`)",
    "mlfq:whole-quanta": "**The same with time slices of a whole quantum** (`mlfq:whole-quanta`)",
    "lottery": "**By tickets** (`lottery`)",
    "stride": "**By tickets** (`stride`)",
    "wrr": "**Weighted round-robin** (`wrr`)",
}


def _inversion_text(q: Queries, policy: str) -> str:
    """Returns the findings of a policy's traces. Raises NoMeasurement."""
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
